"""Schedules that the safety rules' examples are made from, beside those of `cake_verify.rules.examples`."""

from __future__ import annotations

from cake_verify.rules.examples import LOOP, edit

NAMED = edit(LOOP, ("A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.tma2d[LM.bf16],", 'A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],'))
"""The GEMM with its tensors' axes named."""

EXCHANGE = """
@cake.schedule(target="sm_90a")
def exchange(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(16384)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")
        tile.store(x)
        lm.sync(cta)
        y = tile.load(form="vec")
        lm.store(Y, y, coords=(0, 0))
"""
"""A tile changes hands between the lanes of one role through shared memory."""

PINGPONG = """
@cake.schedule(target="sm_90a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], K: LM.i32):
    lm.assume(K > 0)
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=32768, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 8), members=2)
    load = lm.role(warps=range(8, 12))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    turn = lm.turns(math)
    kt = lm.cdiv(K, 64)
    with load:
        for k in lm.range(kt):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(k * 64, 0), stage=s, barrier=full)
            b.tma_load(B, coords=(k * 64, 0), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for k in lm.range(kt):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.wait(turn)
            lm.mma(acc, a[s].rows(64 * math.index, 64), b[s], init=(k == 0))
            lm.arrive(turn)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
        lm.store(C, acc, coords=(0, 64 * math.index))
"""
"""Two members share every slot and take turns at the tensor cores."""

SEQUENCES = """
@cake.schedule(target="sm_90a")
def double(lm, X: LM.tma2d[LM.bf16], Y: LM.tma2d[LM.bf16], CU: LM.gmem1d[LM.i32], NSEQ: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(32768)
    rows = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    out = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    oring = lm.pipeline(stages=2)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(NSEQ,), names=("seq",))
    with load:
        for t in lm.tiles(sched):
            bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
            for i in lm.range(lm.cdiv(eos - bos, 64)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                rows.tma_load(X, coords=(0, bos + i * 64), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
            for i in lm.range(lm.cdiv(eos - bos, 64)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = rows[s].load(form="acc")
                lm.arrive(empty, stage=s)
                o = lm.step(oring)
                lm.store_wait(pending=1)
                lm.sync(cta)
                out[o].store(x + x)
                lm.fence_proxy()
                lm.sync(cta)
                out[o].tma_store(Y, coords=(0, bos + i * 64), rows=lm.min(64, eos - bos - i * 64))
        lm.store_wait(pending=0)
"""
"""Packed sequences of unequal length, 64 rows at a time."""

RING80 = """
@cake.schedule(target="sm_80")
def sums(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.f32], K: LM.i32):
    pool = lm.smem(24576)
    a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, stage=2, swizzle="64b")
    b = pool.view(offset=8192, shape=(128, 32), dtype=lm.bf16, stage=2, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    kt = lm.cdiv(K, 32)
    with work:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
        for k in lm.range(kt):
            s = lm.step(ring)
            a.cp_async(A, coords=(k * 32, 0), stage=s)
            b.cp_async(B, coords=(k * 32, 0), stage=s)
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(cta)
            for kk in lm.static_range(2):
                x = a[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                y = b[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                lm.mma(acc, x, y)
        lm.store(C, acc, coords=(0, 0))
"""
"""cp.async into two slots, read with ldmatrix after all threads have met."""

CHAIN = """
@cake.schedule(target="sm_90a")
def chain(lm, X: LM.gmem2d[LM.f32, "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], FLAGS: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.g), shape=(512,))
            if t.g > 0:
                lm.spin(FLAGS, t.g - 1, 1)
                x = x + lm.load(Y, coords=(0, t.g - 1), shape=(512,))
            lm.store(Y, x, coords=(0, t.g))
            lm.signal(FLAGS, t.g, 1)
"""
"""A running sum down the rows: every block waits for the one that has the row before."""

ADDED = """
@cake.schedule(target="sm_90a")
def added(lm, X: LM.gmem2d[LM.f32, "G", 512], T: LM.gmem2d[LM.f32, 1, 512].zeroed, Y: LM.gmem2d[LM.f32, 1, 512], DONE: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(G <= 32)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lm.atomic(T, lm.load(X, coords=(0, t.g), shape=(1, 512)), coords=(0, 0), order="any")
            lm.signal(DONE, t.g, 1)
            if t.g == 0:
                for i in lm.range(G):
                    lm.spin(DONE, i, 1)
                lm.store(Y, lm.load(T, coords=(0, 0), shape=(1, 512)), coords=(0, 0))
"""
"""Every block adds to one row; when all have said so, the first one reads it. At most 32 blocks, so that all are resident."""

CARRY = """
@cake.schedule(target="sm_90a")
def carry(lm, X: LM.gmem2d[LM.f32, "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], LAST: LM.gmem2d[LM.f32, "G", 512], FLAGS: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.g), shape=(512,))
            if t.g > 0:
                lm.spin(FLAGS, t.g - 1, 1)
                x = x + lm.load(LAST, coords=(0, t.g - 1), shape=(512,))
            lm.store(Y, x, coords=(0, t.g))
            lm.store(LAST, x, coords=(0, t.g))
            lm.signal(FLAGS, t.g, 1)
"""
"""A running sum that is handed on through a workspace of its own."""

TURNS = """
@cake.schedule(target="sm_90a")
def turns(lm, X: LM.gmem3d[LM.f32, "P", "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], TURN: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32, P: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G, P), names=("g", "p"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.g, t.p), shape=(512,))
            lm.spin(TURN, t.g, t.p)
            if t.p > 0:
                x = x + lm.load(Y, coords=(0, t.g), shape=(512,))
            lm.store(Y, x, coords=(0, t.g))
            lm.signal(TURN, t.g, t.p + 1)
"""
"""Blocks take turns at adding their parts to a row."""
