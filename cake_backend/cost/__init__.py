"""Predicted time of a schedule on a board, and the order of candidates: the timing reading of the walk.

`predict` times one program; `rank` sorts several into groups, and says which it does not rank and why. A prediction is in cycles; it
has seconds only where the clock under its load is known, and is never reported as a measurement.
"""

from __future__ import annotations

from cake_backend.cost.predict import predict
from cake_backend.cost.prediction import Prediction
from cake_backend.cost.rank import Ranking, rank

__all__ = ["Prediction", "Ranking", "predict", "rank"]
