"""Names that a loop hands on from one to the next: convolutions and stencils."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency.d051_shifted_registers import PAGE

SMOOTH = PAGE.passing
CORPUS = Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus"


def found(text: str, **given: object) -> list[str]:
    return [d.code for d in verify_text(text, params=given or None).errors]


def changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


CONV = """
@cake.schedule(target=("sm_80", "sm_90a"))
def conv(lm, U: LM.gmem2d[LM.bf16, "T", 256], W: LM.gmem2d[LM.f32, 3, 256].const, OLD: LM.gmem2d[LM.bf16, 2, 256], Y: LM.gmem2d[LM.bf16, "T", 256], T: LM.i32, *, SPAN=8):
    lm.launch(grid="tiles")
    lm.assume(T > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, SPAN),), names=("s",))
    with work:
        for t in lm.tiles(sched):
            w0 = lm.load(W, coords=(0, 0), shape=(256,), form="vec")
            w1 = lm.load(W, coords=(0, 1), shape=(256,), form="vec", like=w0)
            w2 = lm.load(W, coords=(0, 2), shape=(256,), form="vec", like=w0)
            begin = t.s * SPAN
            if begin == 0:
                b = lm.cast(lm.load(OLD, coords=(0, 0), shape=(256,), form="vec", like=w0), lm.f32)
                a = lm.cast(lm.load(OLD, coords=(0, 1), shape=(256,), form="vec", like=w0), lm.f32)
            else:
                b = lm.cast(lm.load(U, coords=(0, begin - 2), shape=(256,), form="vec", like=w0), lm.f32)
                a = lm.cast(lm.load(U, coords=(0, begin - 1), shape=(256,), form="vec", like=w0), lm.f32)
            for r in lm.range(lm.min(SPAN, T - begin)):
                u = lm.cast(lm.load(U, coords=(0, begin + r), shape=(256,), form="vec", like=w0), lm.f32)
                lm.store(Y, lm.cast(b * w0 + a * w1 + u * w2, lm.bf16), coords=(0, begin + r))
                b = a
                a = u
"""
ALWAYS_OLD = CONV[: CONV.index("            if begin")] + """\
            b = lm.cast(lm.load(OLD, coords=(0, 0), shape=(256,), form="vec", like=w0), lm.f32)
            a = lm.cast(lm.load(OLD, coords=(0, 1), shape=(256,), form="vec", like=w0), lm.f32)
""" + CONV[CONV.index("            for r in") :]
ZEROS = changed(ALWAYS_OLD, ("lm.cast(lm.load(OLD, coords=(0, 0), shape=(256,), form=\"vec\", like=w0), lm.f32)", 'lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0, like=w0)'),
                ("lm.cast(lm.load(OLD, coords=(0, 1), shape=(256,), form=\"vec\", like=w0), lm.f32)", 'lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0, like=w0)'))  # fmt: skip
GUARDED = changed(ZEROS, ("            for r in", """\
            if t.s > 0:
                b = lm.cast(lm.load(U, coords=(0, begin - 2), shape=(256,), form="vec", like=w0), lm.f32)
                a = lm.cast(lm.load(U, coords=(0, begin - 1), shape=(256,), form="vec", like=w0), lm.f32)
            for r in"""))  # fmt: skip


@pytest.mark.parametrize("text", [SMOOTH, CONV, ZEROS, GUARDED, changed(GUARDED, ("t.s > 0", "begin >= SPAN"))])
def test_registers_that_start_with_the_rows_before_the_first_round(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(("old", "new"), [
    ("here = lm.load(X, coords=(0, 1)", "here = lm.load(X, coords=(0, 2)"), ("above = lm.load(X, coords=(0, 0)", "above = lm.load(X, coords=(0, 1)"),
    ("lm.range(T - 2)", "lm.range(1, T - 2)"), ("coords=(0, i + 2)", "coords=(0, i + 1)"),
])  # fmt: skip
def test_a_start_at_another_row_of_what_the_rounds_read(old: str, new: str) -> None:
    assert "D051" in found(changed(SMOOTH, (old, new)))


def test_the_edit_reads_what_the_rounds_before_would_have_read() -> None:
    text = changed(SMOOTH, ("here = lm.load(X, coords=(0, 1)", "here = lm.load(X, coords=(0, 2)"))
    (error,) = verify_text(text).errors
    assert applied(text, error.fixes[0].edits) == SMOOTH
    good = (CORPUS / "stencil_halo.py").read_text("utf-8")
    for old in ("tile[s].rows(first, 1)", "tile[s].rows(first + 1, 1)"):
        (error,) = verify_text(changed(good, (old, "tile[s].rows(0, 1)"))).errors
        assert error.code == "D051" and found(applied(changed(good, (old, "tile[s].rows(0, 1)")), error.fixes[0].edits)) == []


def test_a_history_that_every_tile_shares() -> None:
    (error,) = verify_text(ALWAYS_OLD).errors
    assert error.code == "D051" and "`t.s` = 1" in error.message and "`OLD`" in error.message
    own = changed(ALWAYS_OLD.replace("OLD, coords=(0, ", "OLD, coords=(0, 2 * t.s + "), ("LM.gmem2d[LM.bf16, 2, 256]", 'LM.gmem2d[LM.bf16, "H", 256]'), ("T: LM.i32,", "T: LM.i32, H: LM.i32,"),
                  ("    lm.assume(T > 0)\n", "    lm.assume(T > 0)\n    lm.assume(H == 2 * lm.cdiv(T, SPAN))\n"))  # fmt: skip
    assert found(own) == []
    whole = changed(ALWAYS_OLD, ("lm.cdiv(T, SPAN)", "1"), ("lm.min(SPAN, T - begin)", "T"), ("begin = t.s * SPAN", "begin = t.s * 0"))
    assert "D051" not in found(whole)


def test_a_condition_that_leaves_out_the_second_tile() -> None:
    for cond in ("t.s > 1", "t.s >= 2", "begin > SPAN"):
        (error,) = verify_text(changed(GUARDED, ("t.s > 0", cond))).errors
        assert error.code == "D051" and "`t.s` = 1" in error.message, cond
    assert found(changed(CONV, ("begin == 0", "begin <= SPAN"))) == ["D051"]


def test_one_value_under_two_names() -> None:
    early = changed(SMOOTH, ("                above = here\n", ""), ("                lm.store(Y", "                above = here\n                lm.store(Y"))
    (error,) = verify_text(early).errors
    assert error.code == "D051" and "one value" in error.message
