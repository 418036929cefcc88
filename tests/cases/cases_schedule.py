"""Reported cases of schedule semantics: phases, stages, trip counts, coverage."""

from __future__ import annotations

from reported import Bad, Case, Good, edit

PIPELINE = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.bf16], Y: LM.gmem2d[LM.bf16], N: LM.i32):
    lm.assume(N >= 3)
    pool = lm.smem(24576)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=3, swizzle="128b")
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=3)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp")
    with load:
        for i in lm.static_range(3):
            s = lm.step(ring)
            x.tma_load(X, coords=(0, 64 * i), stage=s, barrier=full)
        for i in lm.range(3, N):
            s = lm.step(ring)
            lm.wait(empty, stage=s.prev(3))
            x.tma_load(X, coords=(0, 64 * i), stage=s, barrier=full)
    with work:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            v = x[s].load(form="vec")
            if i < N - 3:
                lm.arrive(empty, stage=s)
            lm.store(Y, v, coords=(0, 64 * i))
'''
"""A prologue fills the ring before the loop: right for at least three iterations."""

PRIMED = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.bf16], Y: LM.gmem2d[LM.bf16], N: LM.i32):
    pool = lm.smem(24576)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=3, swizzle="128b")
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=3)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    with load:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            x.tma_load(X, coords=(0, 64 * i), stage=s, barrier=full)
    with work:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            v = x[s].load(form="vec")
            lm.arrive(empty, stage=s)
            lm.store(Y, v, coords=(0, 64 * i))
'''
"""A ring for any number of iterations."""

FOUR_BARRIERS = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(32768)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=4, swizzle="128b")
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=4)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    with load:
        for i in lm.range(4):
            x.tma_load(X, coords=(0, 64 * i), stage=lm.step(ring), barrier=full)
    with work:
        for i in lm.range(4):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.store(Y, x[s].load(form="vec"), coords=(0, 64 * i))
'''
"""Four loads on four barriers, each in its first phase."""

ONE_BARRIER = edit(
    PRIMED, ("stage=3", "stage=1"), ("stages=3", "stages=1"), ("pool = lm.smem(24576)", "pool = lm.smem(8192)"), ("N: LM.i32", "Z: LM.i32"),
).replace("lm.range(N)", "lm.range(4)").replace(", Z: LM.i32", "")  # fmt: skip
"""One barrier through four phases."""

ROWS = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.f32], Y: LM.gmem2d[LM.f32], *, BARS=8):
    pool = lm.smem(8 * 512)
    row = pool.view(offset=0, shape=(1, 128), dtype=lm.f32, stage=BARS)
    load = lm.role(warps=[8])
    lo = lm.role(warps=range(0, 4))
    hi = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=BARS)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[lo, hi], arrive="tx")
    with load:
        for j in lm.static_range(8):
            row.tma_load(X, coords=(0, j), stage=j, barrier=full)
    with lo:
        for j in lm.static_range(4):
            lm.wait(full, stage=j)
            lm.store(Y, row[j].load(form="vec"), coords=(0, j))
    with hi:
        for j in lm.static_range(4, 8):
            lm.wait(full, stage=j)
            lm.store(Y, row[j].load(form="vec"), coords=(0, j))
'''
"""Eight rows on eight barriers, two groups that wait for four each."""

BY_MODULO = edit(ROWS, ("*, BARS=8", "*, BARS=6"), ("stage=j, barrier=full", "stage=j % BARS, barrier=full")).replace("lm.wait(full, stage=j)", "lm.wait(full, stage=j % BARS)").replace("row[j]", "row[j % BARS]")
SUMMED = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.f32], Y: LM.gmem2d[LM.f32]):
    pool = lm.smem(8 * 512)
    rows = pool.view(offset=0, shape=(8, 128), dtype=lm.f32)
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    with load:
        s = lm.step(ring)
        for j in lm.static_range(8):
            rows.rows(j, 1).tma_load(X, coords=(0, j), stage=s, barrier=full)
    with work:
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.store(Y, rows.load(form="vec"), coords=(0, 0))
'''
"""Eight rows on one barrier that expects the bytes of all, with one waiter."""

MIXED = '''
@cake.schedule(target="sm_90a")
def f(lm, Q: LM.tma2d[LM.bf16], LSE: LM.gmem1d[LM.f32], Y: LM.gmem2d[LM.f32], N: LM.i32):
    pool = lm.smem(16384 + 256)
    q = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    lse = pool.view(offset=16384, shape=(64,), dtype=lm.f32)
    load = lm.role(warps=[4])
    comp = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[comp], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[comp], cons=[load], arrive="warp", primed=True)
    own = lm.named_barrier(comp)
    with load:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            q.tma_load(Q, coords=(0, 64 * i), stage=s, barrier=full)
    with comp:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.sync(own)
            lse.store(lm.load(LSE, coords=(64 * i,), shape=(64,)))
            lm.sync(own)
            lm.wait(full, stage=s)
            x = q[s].load(form="acc")
            m = lse.load(form="rowvec", like=x)
            lm.arrive(empty, stage=s)
            lm.store(Y, lm.cast(x, lm.f32) - m, coords=(0, 64 * i))
'''
"""One operand by TMA, a small one by the threads that use it."""

CIRCLE = edit(MIXED, (', primed=True', ''))
WAITS_FOR_ITSELF = edit(
    MIXED,
    ("own = lm.named_barrier(comp)", "own = lm.named_barrier([comp, load])"),
    ("            lm.wait(empty, stage=s)\n            q.tma_load", "            lm.sync(own)\n            lm.sync(own)\n            lm.wait(empty, stage=s)\n            q.tma_load"),
    ("            lm.sync(own)\n            lm.wait(full, stage=s)\n", "            lm.wait(full, stage=s)\n            lm.sync(own)\n"),
)  # fmt: skip
ALL_TMA = edit(
    MIXED,
    ("LSE: LM.gmem1d[LM.f32]", "LSE: LM.tma1d[LM.f32]"),
    ("pool = lm.smem(16384 + 256)", "pool = lm.smem(16384 + 512)"),
    ("shape=(64,), dtype=lm.f32)", "shape=(64,), dtype=lm.f32, stage=2)"),
    ("    own = lm.named_barrier(comp)\n", ""),
    ("stage=s, barrier=full)\n    with comp", "stage=s, barrier=full)\n            lse.tma_load(LSE, coords=(64 * i,), stage=s, barrier=full)\n    with comp"),
    ("            lm.sync(own)\n            lse.store(lm.load(LSE, coords=(64 * i,), shape=(64,)))\n            lm.sync(own)\n", ""),
    ("lse.load(", "lse[s].load("),
)  # fmt: skip

REMAP = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], C: LM.gmem2d[LM.f32, "ROWS", 1152], *, ROWS=9, COLS=9, G=8):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(ROWS * COLS,), names=("id",))
    with work:
        for t in lm.tiles(sched):
            first = t.id // (G * COLS) * G
            width = lm.min(G, ROWS - first)
            row = first + t.id % (G * COLS) % width
            col = t.id % (G * COLS) // width
            lm.store(C, lm.load(X, coords=(col * 128, row), shape=(1, 128)), coords=(col * 128, row))
'''
"""A grouped tile order by hand, with a narrower last group."""

UNCLAMPED = edit(REMAP, ("            width = lm.min(G, ROWS - first)\n", "            width = G\n"))
BUILT_IN = edit(
    REMAP,
    ('tiles=(ROWS * COLS,), names=("id",))', 'tiles=(ROWS, COLS), raster="m", swizzle=G)'),
    ("            first = t.id // (G * COLS) * G\n            width = lm.min(G, ROWS - first)\n            row = first + t.id % (G * COLS) % width\n            col = t.id % (G * COLS) // width\n",
     "            row, col = t.m, t.n\n"),
)  # fmt: skip

TRIANGLE = edit(
    UNCLAMPED,
    (', "ROWS", 1152', ""),
    ("(ROWS * COLS,)", "(4 * 9,)"),
    ("            first = t.id // (G * COLS) * G\n            width = G\n            row = first + t.id % (G * COLS) % width\n            col = t.id % (G * COLS) // width\n",
     "            i, j = t.id // 9, t.id % 9\n            row = 7 - i if j <= 7 - i else i\n            col = j if j <= 7 - i else j - 8 + i\n"),
)  # fmt: skip
"""The lower triangle of 8 x 8 tiles, folded into 4 rows of 9: holes that are meant."""

DRAIN = '''
@cake.schedule(target=("sm_100a", "sm_103a"))
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], M: LM.i32, *, ACCS=2):
    lm.launch(grid="persistent")
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=32768, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    acc = lm.tmem(cols=0, width=128 * ACCS, shape=(128, 128 * ACCS), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    mine = lm.pipeline(stages=1)
    drained = lm.barrier(pipeline=mine, prod=[mma], cons=[mma], arrive="mma")
    accs = lm.pipeline(stages=ACCS)
    acc_full = lm.barrier(pipeline=accs, prod=[mma], cons=[epi], arrive="member")
    acc_free = lm.barrier(pipeline=accs, prod=[epi], cons=[mma], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), 1))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(0, t.m * 128), stage=s, barrier=full)
            b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with mma:
        for t in lm.tiles(sched):
            d = lm.step(accs)
            lm.wait(acc_free, stage=d)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc.cols(128 * d.index, 128), a[s], b[s], init=True)
            lm.commit(empty, stage=s)
            e = lm.step(mine)
            lm.commit(drained, stage=e)
            lm.wait(drained, stage=e)
            lm.arrive(acc_full, stage=d)
    with epi:
        for t in lm.tiles(sched):
            d = lm.step(accs)
            lm.wait(acc_full, stage=d)
            c = lm.tmem_load(acc.cols(128 * d.index, 128))
            lm.tmem_wait("ld")
            lm.arrive(acc_free, stage=d)
            lm.store(C, c, coords=(0, t.m * 128), clip=True)
'''
"""The MMA role waits for its own work before it tells the epilogue."""

SPARSE = '''
@cake.schedule(target="sm_90a")
def f(lm, MASK: LM.gmem1d[LM.i32].const, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], KT: LM.i32):
    pool = lm.smem(49152)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    with load:
        for k in lm.range(KT):
            if lm.ld(MASK, k) > 0:
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, 0), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 64, 0), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
        for k in lm.range(KT):
            if lm.ld(MASK, k) > 0:
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a[s], b[s])
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
        lm.store(C, acc, coords=(0, 0))
'''
"""Blocks whose mask is zero are skipped by both roles."""

ALWAYS_STEPS = edit(SPARSE, ("            if lm.ld(MASK, k) > 0:\n                s = lm.step(ring)\n                lm.wait(empty", "            s = lm.step(ring)\n            if lm.ld(MASK, k) > 0:\n                lm.wait(empty"))
OTHER_VALUE = edit(SPARSE, ("            if lm.ld(MASK, k) > 0:\n                s = lm.step(ring)\n                lm.wait(full", "            if lm.ld(MASK, k + 1) > 0:\n                s = lm.step(ring)\n                lm.wait(full"))

CASES = (
    Case("C040", "schedule", "tile-ai/tilelang#2566",
         "a prologue that fills three slots before a loop of one iteration", "the same from three iterations on; a primed ring for any number",
         (Bad(edit(PIPELINE, ("    lm.assume(N >= 3)\n", "")), "S025", "x.tma_load"),), (Good(PIPELINE), Good(PRIMED), *(Good(PRIMED.replace("lm.range(N)", f"lm.range({n})").replace(", N: LM.i32", "")) for n in (1, 3, 7)))),
    Case("C042", "schedule", "tile-ai/tilelang#2927",
         "a wait whose parity comes from the loop index, although each step has a barrier of its own", "four barriers in their first phase; one barrier through four phases",
         (Bad(edit(FOUR_BARRIERS, ("lm.wait(full, stage=s)", "lm.wait(full, stage=s, parity=i & 1)")), "N048", "lm.wait(full"),), (Good(FOUR_BARRIERS), Good(ONE_BARRIER)), outcome="no such construct",
         remark="a wait names a slot, its parity is derived from how often that barrier has completed"),
    Case("C044", "schedule", "NVIDIA/Fuser#5862",
         "eight loads share six barriers by modulo", "eight barriers; one barrier that expects all bytes and has one waiter",
         (Bad(BY_MODULO, "Q004", "row.tma_load"),), (Good(ROWS), Good(SUMMED))),
    Case("C046", "schedule", "tile-ai/tilelang#2567",
         "the first wait for a free slot can only be ended by its own load; a meeting on both sides of the wait for the load", "thread copies beside a primed ring; every operand by TMA",
         (Bad(CIRCLE, "S023", "empty = "), Bad(WAITS_FOR_ITSELF, "S023", "lm.sync(own)")), (Good(MIXED), Good(ALL_TMA))),
    Case("C048", "schedule", "ROCm/FlyDSL#979, NVIDIA/cutlass#3521",
         "a grouped tile order whose last group is as wide as the others", "a clamped last group; the scheduler's own order; a triangle",
         (Bad(UNCLAMPED, "Q011", "lm.store(C"), Bad(edit(UNCLAMPED, (', "ROWS", 1152', "")), "Q011", "lm.store(C")), (Good(REMAP), Good(BUILT_IN), Good(TRIANGLE))),
    Case("C050", "schedule", "facebookexperimental/triton#2008",
         "the tensor role drains before it tells the epilogue, with a second accumulator free", "one accumulator: no advice",
         (), (Good(DRAIN), Good(edit(DRAIN, ("*, ACCS=2", "*, ACCS=1")))), outcome="result", remark="P010, a note: it is slow and not wrong"),
    Case("C051", "schedule", "tile-ai/tilelang#374",
         "the slot advances in skipped iterations on one side only; the two sides look at different mask words", "both sides skip the same iterations",
         (Bad(ALWAYS_STEPS, "S023", "lm.wait(empty"), Bad(OTHER_VALUE, "S008", "lm.wait(full")), (Good(SPARSE),)),
)  # fmt: skip
