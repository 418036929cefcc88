"""Reported cases of data consistency: layouts, swizzles, descriptors, operands."""

from __future__ import annotations

from reported import Bad, Case, Good, edit

TILE = '''
@cake.schedule(target="sm_90a")
def tile(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(24576 + 1024)
    pad = pool.view(offset=0, shape=(32,), dtype=lm.f32)
    a = pool.view(offset=1024, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=1024 + 8192, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    own = lm.named_barrier(math)
    with load:
        s = lm.step(ring)
        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)
        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with math:
        pad.store(lm.load(C, coords=(0, 0), shape=(1, 32)))
        lm.sync(own)
        lm.store(C, pad.load(form="vec"), coords=(0, 64))
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.mma(acc, a, b, init=True)
        lm.mma_wait(pending=0)
        lm.store(C, acc, coords=(0, 0))
'''
"""One output tile, and a small array in front of the swizzled tiles."""

PLAIN = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(1024 + 32768)
    x = pool.view(offset=128, shape=(64, 64), dtype=lm.bf16)
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    with load:
        s = lm.step(ring)
        x.tma_load(X, coords=(0, 0), stage=s, barrier=full)
    with work:
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.store(Y, x.load(form="vec"), coords=(0, 0))
'''
"""A tile without a swizzle at 128 bytes."""

WIDE = edit(PLAIN, ("offset=128, shape=(64, 64), dtype=lm.bf16", 'offset=1024, shape=(64, 128), dtype=lm.bf16, swizzle="128b"'))
"""A view of two panels: one box each."""

NARROW_SPAN = edit(WIDE, ("shape=(64, 128)", "shape=(64, 24)"), ('swizzle="128b"', 'swizzle="32b"'))

BULK = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.f32)
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    with load:
        s = lm.step(ring)
        x.bulk_load(X, offset=0, n=4096, stage=s, barrier=full)
    with work:
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.store(Y, x.load(form="vec"), coords=(0,))
'''
"""A copy of bytes in address order into a view without a swizzle."""

BULK_OUT = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32]):
    pool = lm.smem(16384)
    dq = pool.view(offset=0, shape=(64, 64), dtype=lm.f32, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    with work:
        dq.store(lm.load(X, coords=(0, 0), shape=(64, 64), form="acc"))
        lm.fence_proxy()
        lm.sync(own)
        dq.bulk_store(Y, coords=(0, 0), rows=64)
        lm.store_wait(pending=0)
'''
TENSOR_OUT = edit(BULK_OUT, ("Y: LM.gmem2d", "Y: LM.tma2d"), ("dq.bulk_store(Y, coords=(0, 0), rows=64)", "dq.tma_store(Y, coords=(0, 0))"))

NARROW = edit(
    TILE, ("pool = lm.smem(24576 + 1024)", "pool = lm.smem(16384)"), ("shape=(128, 64), dtype=lm.bf16", "shape=(24, 64), dtype=lm.bf16"), ("shape=(64, 128), dtype=lm.f32", "shape=(64, 24), dtype=lm.f32"),
)  # fmt: skip
"""N = 24: a multiple of 8 and not of 16."""
N28 = edit(NARROW, ("shape=(24, 64)", "shape=(28, 64)"), ("shape=(64, 24)", "shape=(64, 28)"))
N_MAJOR = edit(NARROW, ('shape=(24, 64), dtype=lm.bf16, swizzle="128b"', 'shape=(64, 24), dtype=lm.bf16, swizzle="32b"'), ("lm.mma(acc, a, b,", "lm.mma(acc, a, b.T,"))

CHUNKS = edit(
    TILE, ("pool = lm.smem(24576 + 1024)", "pool = lm.smem(9216 + 24576)"), ("shape=(128, 64), dtype=lm.bf16", "shape=(64, 192), dtype=lm.bf16"),
    ("shape=(64, 128), dtype=lm.f32", "shape=(64, 64), dtype=lm.f32"), ("lm.mma(acc, a, b,", "lm.mma(acc, a, b.cols(64, 64).T,"),
)  # fmt: skip
"""B of 192 columns in three swizzled panels, of which one is multiplied."""
CUT = edit(CHUNKS, ("b.cols(64, 64).T", "b.cols(96, 96).T"), ("shape=(64, 64), dtype=lm.f32, form", "shape=(64, 96), dtype=lm.f32, form"))
HALF_SPAN = edit(CUT, ('shape=(64, 192), dtype=lm.bf16, swizzle="128b"', 'shape=(64, 192), dtype=lm.bf16, swizzle="64b"'))

SCALED = '''
@cake.schedule(target="sm_90a")
def f(lm, A: LM.tma2d[LM.e4m3], SFA: LM.gmem1d[LM.f32].const, C: LM.gmem2d[LM.f32], M: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(8192)
    a = pool.view(offset=0, shape=(64, 128), dtype=lm.e4m3)
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    one = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=one, prod=[load], cons=[work], arrive="tx")
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128)), raster="m", swizzle=4)
    with load:
        for t in lm.tiles(sched):
            s = lm.step(one)
            a.tma_load(A, coords=(t.n * 128, t.m * 64), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            s = lm.step(one)
            lm.wait(full, stage=s)
            x = lm.cast(a.load(form="vec"), lm.f32)
            scale = lm.ld(SFA, t.m)
            lm.store(C, x * scale, coords=(t.n * 128, t.m * 64), clip=True)
'''
"""A tile and its scale by the same tile coordinate."""
RAW_ID = edit(SCALED, ("lm.ld(SFA, t.m)", "lm.ld(SFA, lm.cta_id() % lm.cdiv(M, 64))"))

SUB_VIEW = edit(PLAIN, ("coords=(0, 0), stage=s", "coords=(8, 0), stage=s"))
SUB_TENSOR = edit(PLAIN, ("x.tma_load(X, coords=(0, 0)", "x.tma_load(X.sub(8), coords=(0, 0)"))
BULK_FROM_8_BYTES = edit(BULK, ("offset=0, n=4096", "offset=2, n=4096"))
BULK_FROM_16_BYTES = edit(BULK, ("offset=0, n=4096", "offset=4, n=4096"))

BOTH_TARGETS = '''
@cake.schedule(target=("sm_90a", "sm_100a"))
def f(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], M: LM.i32, N: LM.i32, K: LM.i32, *, STAGES=3):
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    pool = lm.smem(STAGES * 24576)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    b = pool.view(offset=STAGES * 8192, shape=(128, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128)))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 64, t.n * 128), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for j in lm.static_range(4):
                    x = a[s].cols(16 * j, 16).ldmatrix(form="a", like=acc)
                    y = b[s].cols(16 * j, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, x, y)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(t.n * 128, t.m * 64), clip=True)
'''
"""One GEMM for two generations: TMA loads and mma.sync."""

CASES = (
    Case("C052", "consistency", "tile-ai/tilelang#2379, tile-ai/tilelang#2391, NVIDIA/Fuser#4096",
         "a 128-byte-swizzled tile 128 bytes into the pool", "1,024 bytes into it; without a swizzle at 128 bytes",
         (Bad(edit(TILE, ("a = pool.view(offset=1024", "a = pool.view(offset=128")), "D015", "a = pool.view"),), (Good(TILE), Good(PLAIN))),
    Case("C054", "consistency", "tile-ai/tilelang#2630, tile-ai/tilelang#2578",
         "rows of 48 bytes under a 32-byte swizzle", "256-byte rows under a 128-byte swizzle: two boxes",
         (Bad(NARROW_SPAN, "D015", "x = pool.view"),), (Good(WIDE),),
         remark="a box wider than the span cannot be asked for: views are cut into one box a panel"),
    Case("C056", "consistency", "tile-ai/tilelang#1655",
         "a bulk copy out of, or into, a swizzled view", "a copy through a tensor map; a view without a swizzle",
         (Bad(BULK_OUT, "D018", "dq.bulk_store"), Bad(edit(BULK, ("dtype=lm.f32)", 'dtype=lm.f32, swizzle="128b")')), "D018", "x.bulk_load")), (Good(TENSOR_OUT), Good(BULK))),
    Case("C058", "consistency", "tile-ai/tilelang#2593, tile-ai/tilelang#2603",
         "N of 28; N of 24 stored N-major under a 32-byte swizzle", "N of 24, and of 32",
         (Bad(N28, "H004", "lm.mma("), Bad(N_MAJOR, "D015", "b = pool.view")), (Good(NARROW), Good(edit(NARROW, ("shape=(24, 64)", "shape=(32, 64)"), ("shape=(64, 24)", "shape=(64, 32)")))),
         remark="N of 24 is supported: the simulator's sums are exact for small integers"),
    Case("C060", "consistency", "NVIDIA/Fuser#4918, NVIDIA/Fuser#4771",
         "an MMA operand that starts inside a swizzle chunk", "whole chunks; a swizzle of half the span",
         (Bad(CUT, "D016", "lm.mma("),), (Good(CHUNKS), Good(HALF_SPAN))),
    Case("C062", "consistency", "NVIDIA/cutlass#3394",
         "the scale of a tile by the number of the CTA, although the scheduler reorders tiles", "the scale by the tile's coordinate",
         (Bad(RAW_ID, "D033", "lm.ld(SFA"),), (Good(SCALED),)),
    Case("C064", "consistency", "nvfp4-megamoe-kernel (author's notes)",
         "an operand of 128 rows out of a view that holds 64 from there", "as many rows as the view holds",
         (Bad(edit(TILE, ("lm.mma(acc, a, b,", "lm.mma(acc, a, b.rows(64, 128),")), "N047", "lm.mma("),), (Good(TILE),),
         remark="descriptors are derived from the view, there is none to give"),
    Case("C066", "consistency", "deepseek-ai/DeepGEMM#25",
         "a barrier at byte 36, behind nine floats", "no offset: barriers lie outside the pool",
         (Bad(edit(TILE, ("full = lm.barrier(pipeline=ring,", "full = lm.barrier(offset=36, pipeline=ring,")), "N048", "full = "),), (Good(edit(TILE, ("shape=(32,)", "shape=(36,)"), ("shape=(1, 32)", "shape=(1, 36)"))),), outcome="no such construct",
         remark="barriers are placed by Cake, 8-byte aligned whatever the pool holds"),
    Case("C067", "consistency", "tile-ai/tilelang#2833",
         "a sub-view of a tensor as the source of a copy; a bulk copy from 8 bytes into a tensor", "the offset in the coordinates; a bulk copy from 16 bytes",
         (Bad(SUB_TENSOR, "N028", "X.sub"), Bad(BULK_FROM_8_BYTES, "H019", "x.bulk_load")), (Good(SUB_VIEW), Good(BULK_FROM_16_BYTES))),
    Case("C068", "consistency", "deepseek-ai/DeepGEMM#242",
         "one schedule for two targets in one process", "each text equals the one from a fresh process",
         (), (Good(BOTH_TARGETS), Good(BOTH_TARGETS, "sm_100a")), outcome="derived"),
)  # fmt: skip
