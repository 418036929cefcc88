"""What diagnostics of mutated schedules have in common: their form, their places, and edits that can be applied as they are."""

from __future__ import annotations

import ast
import random
import re

import pytest

from bench.verify.cases import CASES
from bench.verify.mutate import Mutant, Subject, mutants
from cake_verify import verify_text
from cake_verify.proposals import applied


def sample(each: int) -> list[Mutant]:
    """Some mutants of each class, of different schedules."""
    by: dict[str, list[Mutant]] = {}
    for name in ("gemm_multicast_m", "attention_varlen", "kmeans_resident_norms", "tcgen05_gemm", "cp_async_single_sync", "gemm_pingpong", "decode_gemm", "gemm_cluster_sync",
                 "gated_linear_attention", "gemm_grouped", "layernorm_short_rows", "gelu_one_role"):  # fmt: skip
        for m in mutants(Subject(CASES[name])):
            by.setdefault(m.cls, []).append(m)
    rng = random.Random(3)
    return [m for cls in sorted(by) for m in rng.sample(by[cls], min(each, len(by[cls])))]


SAMPLE = sample(3)


@pytest.mark.parametrize("cls", sorted({m.cls for m in SAMPLE}))
def test_a_diagnostic_says_one_thing_at_a_place_in_the_text_with_edits_that_apply(cls: str) -> None:
    for m in (m for m in SAMPLE if m.cls == cls):
        case = CASES[m.subject]
        verdict = verify_text(m.text, params=case.params, target=case.target)
        lines = m.text.split("\n")
        shown = [d for d in verdict.shown() if d.severity == "error"]
        assert len(shown) <= 5, m.key
        assert len({(d.code, d.span, d.message) for d in shown}) == len(shown), m.key
        for d in shown:
            told = (m.key, d.code, d.message)
            assert d.message and not d.message.endswith("."), told
            assert d.message[0] in "`'\"" or not d.message[0].isupper() or d.message.split()[0].rstrip("s") in ("MMA", "TMA", "CTA"), told
            assert not re.search(r"`\w*_\d+\.", d.message), told  # a name that only the program has
            assert len(d.trace) <= 12, told
            assert len(d.related) <= 6, told
            for span in (d.span, *(s for s, _ in d.related), *(e.span for f in d.fixes for e in f.edits)):
                assert 1 <= span.line <= span.end_line <= len(lines), told
                assert span.column <= len(lines[span.line - 1]) + 1 and span.end_column <= len(lines[span.end_line - 1]) + 1, told
            for fix in d.fixes:
                assert fix.grade in ("certain", "likely", "idea") and fix.edits, told
                ast.parse(applied(m.text, fix.edits))
