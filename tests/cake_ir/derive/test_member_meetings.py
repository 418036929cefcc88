"""Releases that need their member to meet because no product has held its warps together."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.derive.member_meetings import idle_releases
from cake_ir.derive.named_ids import named_ids
from cake_ir.program import Program

TEXT = """
@cake.schedule(target="sm_90a")
def tile(lm, A: LM.tma2d[LM.bf16, "M", 64], B: LM.tma2d[LM.bf16, 64, 64], N: LM.gmem1d[LM.i32, "T"], C: LM.gmem2d[LM.f32, "M", 64], M: LM.i32, T: LM.i32, KT: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(M == T * 64)
    pool = lm.smem(8192 + 2 * 8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ar, br = lm.pipeline(stages=1), lm.pipeline(stages=2)
    a_full = lm.barrier(pipeline=ar, prod=[load], cons=[math], arrive="tx")
    a_empty = lm.barrier(pipeline=ar, prod=[math], cons=[load], arrive="member", primed=True)
    b_full = lm.barrier(pipeline=br, prod=[load], cons=[math], arrive="tx")
    b_empty = lm.barrier(pipeline=br, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(T,), names=("t",))
    with load:
        for t in lm.tiles(sched):
            n = lm.ld(N, t.t)
            s = lm.step(ar)
            lm.wait(a_empty, stage=s)
            a.tma_load(A, coords=(0, t.t * 64), stage=s, barrier=a_full)
            for k in lm.range(n):
                r = lm.step(br)
                lm.wait(b_empty, stage=r)
                b.tma_load(B, coords=(0, 0), stage=r, barrier=b_full)
    with math:
        for t in lm.tiles(sched):
            n = lm.ld(N, t.t)
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            s = lm.step(ar)
            lm.wait(a_full, stage=s)
            for k in lm.range(n):
                r = lm.step(br)
                lm.wait(b_full, stage=r)
                lm.mma(acc, a[s], b[r])
                lm.mma_wait(pending=0)
                lm.arrive(b_empty, stage=r)
            lm.arrive(a_empty, stage=s)
            lm.store(C, acc, coords=(0, t.t * 64))
"""
UNTIL = TEXT.replace("            n = lm.ld(N, t.t)\n", "").replace("lm.range(n)", "lm.range(KT)")


def program(text: str) -> Program:
    found = specialise(parse(text).schedules[0]).program
    assert found is not None
    return found


def lines(p: Program, text: str) -> list[str]:
    return [text.splitlines()[p.ops[i].span.line - 1].strip() for i in sorted(idle_releases(p))]


def test_a_loop_whose_rounds_are_read_from_memory_may_have_none() -> None:
    p = program(TEXT)
    assert lines(p, TEXT) == ["lm.arrive(a_empty, stage=s)"]
    assert any(n.kind == "member" for n in named_ids(p))


@pytest.mark.parametrize(("assumed", "meets"), [("", True), ("KT >= 0", True), ("KT > 0", False), ("KT >= 2", False)])
def test_an_assumption_that_the_loop_runs_spares_the_meeting(assumed: str, meets: bool) -> None:
    text = UNTIL.replace("    pool = ", f"    lm.assume({assumed})\n    pool = ") if assumed else UNTIL
    p = program(text)
    assert bool(idle_releases(p)) == meets
    assert any(n.kind == "member" for n in named_ids(p)) == meets


def test_a_release_behind_a_branch_around_the_product_meets() -> None:
    text = TEXT.replace("                lm.mma(acc, a[s], b[r])\n                lm.mma_wait(pending=0)\n",
                        "                if k > 2:\n                    lm.mma(acc, a[s], b[r])\n                    lm.mma_wait(pending=0)\n")  # fmt: skip
    assert lines(program(text), text) == ["lm.arrive(b_empty, stage=r)", "lm.arrive(a_empty, stage=s)"]


@pytest.mark.parametrize("policy", ["late:mma", "uniform", "lag:0", "lag:3", "drift"])
def test_warps_of_a_tile_without_a_round_are_not_left_behind(policy: str) -> None:
    counts = np.array([2, 0, 0, 0, 1, 0, 0, 3], np.int32)
    t = len(counts)
    a = np.ones((t * 64, 64), np.float32).astype(ml_dtypes.bfloat16)
    tensors = {"A": a, "B": a[:64].copy(), "N": counts, "C": np.full((t * 64, 64), np.nan, np.float32)}
    for seed in range(3):
        run = simulate(program(TEXT), tensors, {"M": t * 64, "T": t, "KT": 0}, ctas=1, policy=policy, seed=seed)
        assert run.ok, run.faults
        assert np.array_equal(run.outputs["C"][::64, 0], 64.0 * counts)
