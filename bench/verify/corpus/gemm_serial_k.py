"""GEMM whose blocks divide K and add their parts in a fixed order: a word a tile says whose turn it is to add."""


@cake.schedule(target="sm_90a")
def gemm_serial_k(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"], TURN: LM.gmem1d[LM.i32].zeroed,
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, PARTS=3, STAGES=4):
    """C = A B^T in f32; part p of a tile is added when part p - 1 is there, so the sum does not depend on timing."""
    lm.launch(grid="persistent")
    lm.assume(K > (PARTS - 1) * BK)
    lm.assume(K % 8 == 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=208)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    mt, kt = lm.cdiv(M, 64), lm.cdiv(K, BK)
    sched = lm.scheduler(kind="static", tiles=(mt, lm.cdiv(N, BN), PARTS), names=("m", "n", "p"))

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(t.p * kt // PARTS, (t.p + 1) * kt // PARTS):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            first = t.p * kt // PARTS
            for k in lm.range(first, (t.p + 1) * kt // PARTS):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s], sb[s], init=(k == first))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.spin(TURN, t.n * mt + t.m, t.p)
            total = acc * 1.0
            if t.p > 0:
                total = total + lm.load(C, coords=(t.n * BN, t.m * 64), shape=(64, BN), form="acc", like=acc, clip=True)
            lm.store(C, total, coords=(t.n * BN, t.m * 64), clip=True)
            lm.signal(TURN, t.n * mt + t.m, t.p + 1)
