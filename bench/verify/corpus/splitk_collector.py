@cake.schedule(target="sm_90a")
def splitk_collector(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                     PART: LM.gmem3d[LM.f32, "SPLITS", "M", "N"], READY: LM.gmem1d[LM.i32, "WORDS"].zeroed,
                     M: LM.i32, N: LM.i32, K: LM.i32, SPLITS: LM.i32, WORDS: LM.i32, *, BN=128, BK=64, DEPTH=4):
    """C = A B^T over SPLITS slices of K: each slice but the last leaves its sums in a workspace and raises a flag, the last one collects them."""
    lm.launch(grid="persistent")
    lm.assume(SPLITS >= 1 and K > 0)
    lm.assume(lm.cdiv(K, BK) >= SPLITS)
    lm.assume(N % 8 == 0 and K % 8 == 0)
    mt, nt, kt = lm.cdiv(M, 128), lm.cdiv(N, BN), lm.cdiv(K, BK)
    lm.assume(WORDS == 2 * mt * nt * SPLITS)

    pool = lm.smem(DEPTH * (128 + BN) * BK * 2)
    tile_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=DEPTH, swizzle="128b")
    tile_b = pool.view(offset=DEPTH * 128 * BK * 2, shape=(BN, BK), dtype=lm.bf16, stage=DEPTH, swizzle="128b")
    mma = lm.role(warps=range(0, 8), regs=208, members=2)
    dma = lm.role(warps=range(8, 12), regs=40)
    feed = lm.pipeline(stages=DEPTH)
    landed = lm.barrier(pipeline=feed, prod=[dma], cons=[mma], arrive="tx")
    drained = lm.barrier(pipeline=feed, prod=[mma], cons=[dma], arrive="member", primed=True)
    order = lm.scheduler(kind="static", tiles=(mt, nt, SPLITS), names=("m", "n", "p"))

    with dma:
        for t in lm.tiles(order):
            lo, hi = t.p * kt // SPLITS, (t.p + 1) * kt // SPLITS
            for k in lm.range(lo, hi):
                s = lm.step(feed)
                lm.wait(drained, stage=s)
                tile_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=landed)
                tile_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=landed)

    with mma:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(order):
            lo, hi = t.p * kt // SPLITS, (t.p + 1) * kt // SPLITS
            row, col = t.m * 128 + 64 * mma.index, t.n * BN
            for k in lm.range(lo, hi):
                s = lm.step(feed)
                lm.wait(landed, stage=s)
                lm.mma(acc, tile_a[s].rows(64 * mma.index, 64), tile_b[s], init=(k == lo))
                lm.mma_wait(pending=0)
                lm.arrive(drained, stage=s)
            word = 2 * (t.m + mt * t.n) + mma.index
            if t.p + 1 < SPLITS:
                lm.store(PART, acc, coords=(col, row, t.p), clip=True)
                lm.signal(READY, word + 2 * mt * nt * t.p, 1)
            else:
                for q in lm.range(SPLITS - 1):
                    lm.spin(READY, word + 2 * mt * nt * q, 1)
                    other = lm.load(PART, coords=(col, row, q), shape=(64, BN), form="acc", clip=True)
                    acc = acc + other
                lm.store(C, lm.cast(acc, lm.bf16), coords=(col, row), clip=True)
