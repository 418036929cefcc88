"""Mutated schedules: every text gets a verdict, never a traceback, and spans that lie in the text."""

import json
import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cake_ir.targets import TARGETS
from cake_verify import portability, verify_text
from cake_verify.rules import examples

HERE = Path(__file__).parents[1]
TEXTS = [
    *(p.read_text("utf-8") for p in sorted((HERE / "examples").glob("*.py"))),
    *(p.read_text("utf-8") for p in sorted((HERE / "cake_ir" / "printer").glob("*.txt"))),
    examples.TILE, examples.LOOP, examples.MULTICAST, examples.SYNC_MMA, examples.TENSOR_MEMORY, examples.NEAREST, examples.PLAN,
]  # fmt: skip
TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
WORDS = sorted({t for text in TEXTS for t in TOKEN.findall(text) if not t.isspace()})
ODD = ["2**31", "-1", "0", "None", "True", "'a'", "[]", "()", "lm.inf", "1.5", "9" * 30, "\u00e4", "\u202e", "\\", '"', "#", "\t", "lm.step(ring)"]


@st.composite
def mutants(draw):
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        lines = text.split("\n")
        tokens = TOKEN.findall(text)
        kind = draw(st.integers(0, 6))
        i, j = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        k, n = draw(st.integers(0, len(tokens) - 1)), draw(st.integers(0, len(tokens) - 1))
        if kind == 0:
            del lines[i]
        elif kind == 1:
            lines.insert(j, lines[i])
        elif kind == 2:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 3:
            tokens[k] = draw(st.sampled_from(WORDS + ODD))
        elif kind == 4:
            tokens[k] = tokens[n]
        elif kind == 5:
            del tokens[k]
        else:
            tokens.insert(k, draw(st.sampled_from(WORDS + ODD)))
        text = "\n".join(lines) if kind < 3 else "".join(tokens)
    return text


@settings(max_examples=250, deadline=5000)
@given(mutants(), st.sampled_from([None, None, *TARGETS]))
def test_a_mutant_gets_a_verdict(text, target):
    verdict = verify_text(text, target=target)
    assert verdict.verdict in ("pass", "fail", "undecided")
    json.dumps(verdict.to_json(limit=None), allow_nan=False)
    verdict.to_text()
    for d in verdict.diagnostics:
        assert d.code != "N999", (d.message, d.facts)
        for span in (d.span, *(s for s, _ in d.related), *(e.span for f in d.fixes for e in f.edits)):
            assert 1 <= span.line <= span.end_line <= len(verdict.lines) + 1
            assert 1 <= span.column <= len(verdict.lines[min(span.line, len(verdict.lines)) - 1]) + 2
            assert (span.line, span.column) <= (span.end_line, span.end_column)


@settings(max_examples=150, deadline=2000)
@given(st.text(max_size=400))
def test_any_text_at_all_gets_a_verdict(text):
    verdict = verify_text(text)
    assert verdict.verdict == "fail" and verdict.diagnostics


@settings(max_examples=25, deadline=5000)
@given(mutants())
def test_a_mutant_gets_a_portability_report(text):
    assert set(portability(text)) == set(TARGETS)
