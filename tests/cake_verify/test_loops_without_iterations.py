"""What stands in a loop that has no iteration is never done: nothing is wrong with it, whatever it would do."""

from __future__ import annotations

import pytest

from cake_ir.frontend import parse, specialise
from cake_verify.analyses import ranges
from cake_verify.gates import verify_text

BEGIN = """
@cake.schedule(target="sm_90a")
def some(lm, X: LM.gmem2d[LM.f32, 8, 512], Y: LM.gmem2d[LM.f32, 8, 512], M: LM.i32, *, N=1):
    lm.launch(grid="tiles")
    {assume}
    work = lm.role(warps=range(0, 4))
    with work:
        x = lm.load(X, coords=(0, 0), shape=(512,))
        for i in lm.range({bounds}):
            {body}
        lm.store(Y, x, coords=(0, 0))
"""
OUTSIDE = ("x = x + lm.load(X, coords=(0, i + 7), shape=(512,))", "lm.store(Y, x, coords=(0, i - 2))", "lm.store(Y, x, coords=(0, 9))", "lm.store(Y, x, coords=(8, 1))")


def codes(bounds: str, body: str, assume: str = "", n: int = 1) -> list[str]:
    verdict = verify_text(BEGIN.format(bounds=bounds, body=body, assume=assume or "lm.assume(M >= 0)"), params={"N": n})
    return [d.code for d in verdict.errors]


@pytest.mark.parametrize("body", OUTSIDE)
def test_an_access_outside_the_tensor_that_no_iteration_makes_is_no_fault(body: str) -> None:
    assert codes("1, N", body) == []
    assert codes("1, N", body, n=2) == ["S033"]


@pytest.mark.parametrize("body", OUTSIDE)
def test_an_assumption_may_say_that_there_is_no_iteration(body: str) -> None:
    assert codes("3, M", body, "lm.assume(M <= 3)") == []
    assert codes("1, 3", f"for j in lm.range(4, 2):\n                {body.replace('i ', 'j ')}") == []


def test_a_variable_of_two_loops_has_the_values_of_the_one_that_runs() -> None:
    text = BEGIN.format(bounds="1, N", body="pass", assume="lm.assume(M >= 0)").replace(
        "        lm.store(Y", "        for i in lm.range(2, 5):\n            lm.store(Y, x, coords=(0, i))\n        lm.store(Y"
    )
    program = specialise(parse(text, "t").schedules[0], {}, "sm_90a").program
    assert program is not None
    (store, _) = [s for s in ranges.live(program) if s.op.name == "store"]
    entry = store.op.operands["coords"][1]  # type: ignore[index]  # a pair of numbers, by the text
    found = ranges.of(program, "work", entry)
    assert (found.lo, found.hi, found.tight) == (2, 4, True)


COPIES = """
@cake.schedule(target="sm_90a")
def copies(lm, X: LM.tma2d[LM.f32, "R", "C"], Y: LM.gmem2d[LM.f32, 8, 64], R: LM.i32, C: LM.i32, *, N=1):
    lm.launch(grid="tiles")
    pool = lm.smem(2 * 256)
    row = pool.view(offset=0, shape=(1, 64), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    with load:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            row.tma_load(X, coords=(i * 64, 0), stage=s, barrier=full)
        for i in lm.range(1, 1):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            row.tma_load(X, coords=(i * 3, 0), stage=s, barrier=full)
    with work:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.store(Y, row[s].load(form="vec"), coords=(0, i))
            lm.arrive(empty, stage=s)
"""


def test_a_copy_that_is_never_made_may_start_anywhere() -> None:
    assert verify_text(COPIES, params={"N": 8}).errors == ()
    assert [d.code for d in verify_text(COPIES.replace("lm.range(1, 1)", "lm.range(1, 2)"), params={"N": 8}).errors] == ["H024"]
