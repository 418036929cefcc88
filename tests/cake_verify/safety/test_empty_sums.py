"""Sums that a loop without rounds leaves at zero, and what is divided by them."""

from __future__ import annotations

from pathlib import Path

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d042_empty_sum import PAGE

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_an_empty_split_of_a_sequence_is_asked_for() -> None:
    text = (CORPUS / "mla_decode_split.py").read_text("utf-8")
    asked, log = ("lm.where(den > 0.0, lm.rcp(den), 0.0)", "lm.where(den > 0.0, m + lm.log2(den), -lm.inf)")
    for old, new in ((asked, "lm.rcp(den)"), (log, "m - lm.log2(den)")):
        assert text.count(old) == 1
        (error,) = verify_text(text.replace(old, new), suggest=False).errors
        assert error.code == "D042" and "`den` may still be 0 here" in error.message


def test_the_logarithm_of_no_exponentials_is_minus_infinity() -> None:
    text = (CORPUS / "mla_decode_split.py").read_text("utf-8")
    assert codes(text.replace("lm.where(den > 0.0, m + lm.log2(den), -lm.inf)", "m + lm.log2(den)")) == []


def test_where_no_sequence_is_empty_nobody_has_to_ask() -> None:
    bare = PAGE.failing.replace("LEN, 0, T + 1", "LEN, 1, T + 1")
    assert codes(PAGE.failing) == ["D042"] and codes(bare) == []
    assert codes(PAGE.failing.replace("    lm.assume_values(LEN, 0, T + 1)\n", "")) == []


def test_a_condition_or_a_least_value_is_an_answer() -> None:
    store = next(line for line in PAGE.failing.splitlines() if "lm.store(Y" in line)
    assert codes(PAGE.failing.replace(store, store.replace("lm.rcp(weight)", "lm.rcp(lm.max(weight, 1e-20))"))) == []
    head = "            total = lm.frag("
    start, end = PAGE.failing.index(head), PAGE.failing.index(store) + len(store)
    inner = PAGE.failing[start:end].replace("\n", "\n    ")
    assert codes(PAGE.failing[:start] + "            if lm.ld(LEN, t.b) > 0:\n    " + inner + PAGE.failing[end:]) == []
