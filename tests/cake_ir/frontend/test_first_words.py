"""What people write who come from other languages is answered with the words of this one."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied

TEXT = """
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem1d[LM.{dtype}, "N"], Y: LM.gmem1d[LM.f32, "N"], N: LM.i32, *, B=128):
    lm.launch(grid={grid})
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, B),), names=("n",))
    with work:
        for t in lm.tiles(sched):
            x = {read}
            lm.store(Y, x, coords=(t.n * B,), clip=True)
"""
READ = "lm.load(X, coords=(t.n * B,), shape=(B,), clip=True)"


def first(read: str = READ, dtype: str = "f32", grid: str = '"tiles"') -> tuple[str, str, str]:
    text = TEXT.format(read=read, dtype=dtype, grid=grid)
    d = verify_text(text).errors[0]
    return d.message, d.help, applied(text, d.fixes[0].edits) if d.fixes else ""


def test_an_operation_of_another_module_is_one_of_lm() -> None:
    message, help_, fixed = first(READ.replace("lm.", "tl."))
    assert message == "`tl` is not defined" and "called on `lm`" in help_ and verify_text(fixed).verdict == "pass"


def test_a_tensor_is_read_by_an_operation() -> None:
    assert "lm.load(X, coords=..)" in first("X[t.n]")[1]


@pytest.mark.parametrize(("dtype", "meant"), [("float32", "did you mean `f32`?"), ("half", "did you mean `f16`?"), ("f64", "the widest float is `f32`"), ("bfloat16", "did you mean `bf16`?")])
def test_a_dtype_of_another_language_is_translated(dtype: str, meant: str) -> None:
    assert first(dtype=dtype)[:2] == (f"`{dtype}` is not a dtype", meant)


@pytest.mark.parametrize(("grid", "shown"), [("(1,)", "`(1,)`"), ("3", "`3`"), ('"tile"', "`tile`")])
def test_an_option_that_is_none_is_shown(grid: str, shown: str) -> None:
    message, help_, _ = first(grid=grid)
    assert message == f"`grid` cannot be {shown}" and "`tiles`" in help_


def test_rows_are_taken_from_views_and_fragments() -> None:
    assert first("lm.rows(X, 0, 1)")[:2] == ("`rows` is a method of a view or a fragment", "write `view.rows(first, number)`")


def test_a_number_that_does_not_exist_is_laid_at_its_role() -> None:
    text = TEXT.format(read=READ.replace("t.n * B", "t.n * B // (N - N)"), dtype="f32", grid='"tiles"')
    verdict = verify_text(text)
    assert verdict.verdict == "undecided" and "with work" in text.split("\n")[verdict.diagnostics[0].span.line - 1]


@pytest.mark.parametrize("mark", ["out", "output", "const.out"])
def test_a_mark_that_is_none_is_left_out(mark: str) -> None:
    text = TEXT.format(read=READ, dtype="f32", grid='"tiles"').replace('Y: LM.gmem1d[LM.f32, "N"]', f'Y: LM.gmem1d[LM.f32, "N"].{mark}')
    d = verify_text(text).errors[0]
    assert (d.code, d.message) == ("N017", f"`.{mark.rpartition('.')[2]}` is no mark of a parameter") and "an output by being stored to" in d.help
    assert verify_text(applied(text, d.fixes[0].edits)).verdict == ("pass" if "const" not in mark else verify_text(text.replace(".const.out", ".const")).verdict)


def test_coordinates_outermost_first_are_exchanged_in_what_is_read_and_written() -> None:
    text = """
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], ROWS: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(ROWS,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.r, 0), shape=(1024,), form="vec")
            lm.store(Y, x, coords=(t.r, 0))
"""
    (d,) = verify_text(text).errors
    assert (d.code, d.help, d.fixes[0].title) == ("Q001", "coordinates are innermost first", "exchange `t.r` and `0`")
    assert applied(text, d.fixes[0].edits) == text.replace("(t.r, 0)", "(0, t.r)") and verify_text(applied(text, d.fixes[0].edits)).verdict == "pass"


def test_exchanged_coordinates_keep_the_names_of_tunables() -> None:
    text = """
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], ROWS: LM.i32, *, TALL=16):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(ROWS,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.r * TALL, 0), shape=(TALL, 1024), form="vec")
            lm.store(Y, x, coords=(t.r * TALL, 0))
"""
    (d,) = verify_text(text).errors
    assert (d.code, d.fixes[0].title) == ("Q001", "exchange `t.r * TALL` and `0`")
    assert applied(text, d.fixes[0].edits) == text.replace("(t.r * TALL, 0)", "(0, t.r * TALL)")
