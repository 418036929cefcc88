"""Diagnosis: from the record of a run to findings, each with its evidence, an edit, a gain bound and a route.

Routes: the candidate (edit this), the verifier (the gates missed it: a check is worth proposing), the cost model, the lowering, the
vocabulary, the environment. Absent evidence is named as absent.
"""

from __future__ import annotations

from cake_backend.diagnose.assemble import diagnose
from cake_backend.diagnose.finding import CATALOGUE, ROUTES, Finding, Gain

__all__ = ["CATALOGUE", "ROUTES", "Finding", "Gain", "diagnose"]
