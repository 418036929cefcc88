"""Small right kernels that rules refused once, or could not decide: texts of their own, each with what it becomes where it is wrong."""

from __future__ import annotations

import pytest

from cake_verify import verify_text

FLIP = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def flip(lm, X: LM.gmem2d[LM.bf16, "T", 256], Y: LM.gmem2d[LM.bf16, "T", 256], T: LM.i32):
    """The rows of a sequence the other way round."""
    lm.launch(grid="tiles")
    lm.assume(T % 4 == 0)
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="grid", tiles=(T // 4,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            row = t.t * 4 + work.index
            x = lm.load(X, coords=(0, row), shape=(256,))
            lm.store(Y, x, coords=(0, T - 1 - row))
'''

APPEND = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def append(lm, X: LM.gmem2d[LM.bf16, "T", 128], CACHE: LM.gmem2d[LM.bf16, "S", 128].inout, T: LM.i32, S: LM.i32, POS: LM.i32):
    """The rows of a step go behind those that a cache has."""
    lm.launch(grid="tiles")
    lm.assume(POS >= 0 and POS + T <= S)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            lm.store(CACHE, lm.load(X, coords=(0, t.t), shape=(128,)), coords=(0, POS + t.t))
'''

ROPE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def rope(lm, X: LM.gmem2d[LM.f32, "T", 256].inout, C: LM.gmem2d[LM.f32, "T", 128], S: LM.gmem2d[LM.f32, "T", 128], T: LM.i32):
    """Rotary embedding in place, neighbours form a pair."""
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            c = lm.load(C, coords=(0, t.t), shape=(128,))
            s = lm.load(S, coords=(0, t.t), shape=(128,), like=c)
            i = lm.iota(c, 0)
            a = lm.load(X, coords=(2 * i, t.t), shape=(128,), like=c)
            b = lm.load(X, coords=(2 * i + 1, t.t), shape=(128,), like=c)
            lm.store(X, a * c - b * s, coords=(2 * i, t.t))
            lm.store(X, b * c + a * s, coords=(2 * i + 1, t.t))
'''

HIGHEST = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def highest(lm, Q: LM.gmem2d[LM.bf16, "S", 64], K: LM.gmem2d[LM.bf16, "S", 64], Y: LM.gmem2d[LM.f32, 2, "S"], S: LM.i32):
    """The largest score of each row up to the diagonal; two blocks share the keys of a tile of rows."""
    lm.launch(grid="tiles")
    lm.assume(S % 64 == 0)
    pool = lm.smem(64 * 64 * 2)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(S // 64, 2), names=("m", "h"))
    with work:
        for t in lm.tiles(sched):
            q = lm.load(Q, coords=(0, t.m * 64), shape=(64, 64), form="a")
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            top = lm.rowvec(o, init=-lm.inf)
            half = lm.cdiv(t.m + 1, 2)
            for j in lm.range(t.h * half, lm.min((t.h + 1) * half, t.m + 1)):
                lm.sync(each)
                ks.cp_async(K, coords=(0, j * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(each)
                s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(s, q, ks.ldmatrix(form="b"))
                x = lm.where(lm.iota(s, 1, base=j * 64) <= lm.iota(s, 0, base=t.m * 64), s, -lm.inf)
                top = lm.max(top, lm.reduce(x, "max", axis=1))
            lm.store(Y, top, coords=(t.m * 64, t.h))
'''

PEELED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def highest(lm, Q: LM.gmem2d[LM.bf16, "S", 64], K: LM.gmem2d[LM.bf16, "S", 64], Y: LM.gmem1d[LM.f32, "S"], S: LM.i32):
    """The tile on the diagonal by itself, in front of those on its left."""
    lm.launch(grid="tiles")
    lm.assume(S % 64 == 0)
    pool = lm.smem(64 * 64 * 2)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(S // 64,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            q = lm.load(Q, coords=(0, t.m * 64), shape=(64, 64), form="a")
            ks.cp_async(K, coords=(0, t.m * 64))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(each)
            d = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            lm.mma(d, q, ks.ldmatrix(form="b"))
            top = lm.reduce(lm.where(lm.iota(d, 1) <= lm.iota(d, 0), d, -lm.inf), "max", axis=1)
            for j in lm.range(lm.cdiv(t.m * 64, 64)):
                lm.sync(each)
                ks.cp_async(K, coords=(0, j * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(each)
                s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(s, q, ks.ldmatrix(form="b"))
                x = lm.where(lm.iota(s, 1, base=j * 64) <= lm.iota(s, 0, base=t.m * 64), s, -lm.inf)
                top = lm.max(top, lm.reduce(x, "max", axis=1))
            lm.sync(each)
            lm.store(Y, top, coords=(t.m * 64,))
'''

ROOM = '''
@cake.schedule(target="sm_90a")
def widen(lm, A: LM.tma2d[LM.bf16, "M", "K"], C: LM.gmem2d[LM.bf16, "M", "ROOM"], M: LM.i32, K: LM.i32, ROOM: LM.i32):
    """Into a buffer with room for more: columns from the right, which the other ones are left alone by."""
    lm.launch(grid="persistent")
    lm.assume(K > 64 and K % 8 == 0 and ROOM >= K + 64)
    pool = lm.smem(16384)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64),), names=("m",))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=((kt - 1 - k) * 64, t.m * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = a[s].load(form="acc")
                lm.arrive(empty, stage=s)
                lm.store(C, x, coords=((kt - 1 - k) * 64, t.m * 64), clip=True)
'''

GOOD = {"flip": FLIP, "append": APPEND, "ring": APPEND.replace("POS + t.t)", "(POS + t.t) % S)"), "rope": ROPE, "rope by shifts": ROPE.replace("2 * i + 1", "(i << 1) + 1").replace("2 * i,", "i << 1,"), "shared keys": HIGHEST, "peeled": PEELED, "room": ROOM}


@pytest.mark.parametrize("name", GOOD)
def test_right_kernels_pass(name: str) -> None:
    verdict = verify_text(GOOD[name])
    assert verdict.verdict == "pass", [(d.code, d.message) for d in verdict.diagnostics]


def test_the_partner_s_row_is_another_one_s() -> None:
    assert [d.code for d in verify_text(FLIP.replace("T - 1 - row", "t.t * 4 + 3 - work.index")).errors] == ["Q018"]


def test_a_mask_one_element_behind_a_peeled_loop() -> None:
    wrong = PEELED.replace("base=j * 64) <= lm.iota(s, 0, base=t.m * 64)", "base=j * 64) <= lm.iota(s, 0, base=t.m * 64) + 1")
    assert {d.code for d in verify_text(wrong).errors} & {"D037", "D045"}


def test_pairs_that_overlap_are_not_decided() -> None:
    assert verify_text(ROPE.replace("2 * i + 1", "i + 1")).verdict == "undecided"
