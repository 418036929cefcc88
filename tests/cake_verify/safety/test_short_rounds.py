"""Loops over tiles that a length cuts: they come to the tile in which it ends, in the loop or behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency.d036_ragged_length import PAGE

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"


@pytest.mark.parametrize(("name", "loop"), [("kv_append", "lm.range(lm.cdiv(n, ROWS))"), ("attention_token_table", "lm.range(lm.cdiv(n, BN))")])
def test_a_loop_that_never_comes_to_the_tile_that_is_cut_is_told_and_mended(name: str, loop: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(loop) == 1
    bad = good.replace(loop, loop[:-1] + " - 1)")
    (error,) = verify_text(bad).errors
    assert error.code == "Q012" and error.span.line == good[: good.index(loop)].count("\n") + 1
    assert verify_text(applied(bad, error.fixes[0].edits)).verdict == "pass"


LOOP = PAGE.passing[PAGE.passing.index("        for j in lm.range(lm.cdiv(n, 128)):\n            s = lm.step(ring)\n            lm.wait(full") : PAGE.passing.index("        lm.store(Y")]
LAST = LOOP.replace("        for j in lm.range(lm.cdiv(n, 128)):\n", "").replace("\n    ", "\n")[4:].replace("j * 128", "(lm.cdiv(n, 128) - 1) * 128")


def test_a_last_tile_behind_the_loop_may_be_cut_there() -> None:
    peeled = PAGE.passing.replace(LOOP, LOOP.replace("lm.cdiv(n, 128)", "lm.cdiv(n, 128) - 1") + LAST)
    assert peeled.count("lm.mma(") == 2
    assert "Q012" not in {e.code for e in verify_text(peeled).errors}
    assert "Q012" not in {e.code for e in verify_text(PAGE.passing).errors}


def changed(name: str, old: str, new: str) -> list[tuple[str, str]]:
    text = (CORPUS / f"{name}.py").read_text("utf-8")
    assert text.count(old) == 1
    return [(d.code, d.message) for d in verify_text(text.replace(old, new), suggest=False).errors]


def test_a_split_of_a_sequence_comes_to_its_last_tile() -> None:
    ((code, message),) = changed("decode_split_table", "lm.range(first, end)", "lm.range(first, end - 1)")
    assert code == "Q012" and "ends 1 round before the length" in message


def test_a_loop_that_brings_a_tensor_comes_to_its_end() -> None:
    for name, old, new in (("moe_align", "lm.range(lm.cdiv(P, CHUNK))", "lm.range(lm.cdiv(P, CHUNK) - 1)"), ("gemm_int4_groups", "lm.range(GR)", "lm.range(GR - 1)")):
        code, message = changed(name, old, new)[0]
        assert code == "Q012" and "nothing reads the rest of it" in message


def test_a_part_of_a_tensor_may_be_somebody_elses() -> None:
    assert changed("qk_norm_rope", "HQ + HK <= HEADS", "HQ + HK == HEADS - 1") == []
