"""A load role that does more than issue: all of its lanes wait, one starts the copies, and the others have returned from the wait by then."""

from pathlib import Path

import numpy as np
from vertical import BF16, agree, compiles, generated, passes, program, simulated

from cake_ir.derive.issue import issue_roles
from cake_verify.gates import verify_text
from cake_verify.proposals import applied

BESIDE = """
@cake.schedule(target="sm_90a")
def beside(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], bias: LM.gmem1d[LM.f32, "N"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 8 == 0 and N % 64 == 0)
    pool = lm.smem(2 * 16384 + 512)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    row = pool.view(offset=32768, shape=(64,), dtype=lm.f32, stage=2)
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, LAST))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    rows = lm.pipeline(stages=2)
    ready = lm.barrier(pipeline=rows, prod=[load], cons=[math], arrive="warp")
    taken = lm.barrier(pipeline=rows, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), N // 64))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            r = lm.step(rows)
            lm.wait(taken, stage=r)
            row[r].store(lm.load(bias, coords=(t.n * 64,), shape=(64,), form="vec"))
            lm.arrive(ready, stage=r)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 64, t.n * 64), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a[s], b[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            r = lm.step(rows)
            lm.wait(ready, stage=r)
            add = row[r].load(form="colvec", like=acc)
            lm.arrive(taken, stage=r)
            lm.store(C, acc + add, coords=(t.n * 64, t.m * 64), clip=True)
"""
ONE, TWO = (BESIDE.replace("LAST", last) for last in ("5", "6"))


def test_the_lanes_of_one_warp_meet_before_one_of_them_starts_a_phase(tmp_path: Path) -> None:
    passes(ONE)
    assert "load" not in issue_roles(program(ONE))
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, s).astype(BF16) for s in ((100, 200), (128, 200)))
    bias = rng.integers(-9, 10, 128).astype(np.float32)
    tensors, scalars = {"A": x, "B": y, "bias": bias, "C": np.zeros((100, 128), np.float32)}, {"M": 100, "N": 128, "K": 200}
    got = simulated(ONE, tensors, scalars, ctas=1, every=True)
    agree(got, generated(ONE, tensors, scalars, tmp_path, clusters=1))
    assert (got["C"] == x.astype(np.float32) @ y.astype(np.float32).T + bias).all()
    code = compiles(ONE).split("\n")
    armed = next(i for i, line in enumerate(code) if "if (thread == 0) mbarrier_expect_tx" in line)
    assert "__syncwarp();" in code[armed - 1] and "mbarrier_wait(empty" in code[armed - 2]


def test_two_warps_have_to_meet_themselves_and_the_fix_says_where() -> None:
    (error,) = verify_text(TWO).errors
    assert error.code == "S020" and "other threads of `load` may still wait" in error.message
    mended = applied(TWO, error.fixes[0].edits)
    assert "    load_meet = lm.named_barrier(load)\n" in mended
    passes(mended)
    declared = TWO.replace("    rows = lm.pipeline", "    both = lm.named_barrier(load)\n    rows = lm.pipeline")
    passes(applied(declared, verify_text(declared).errors[0].fixes[0].edits))
