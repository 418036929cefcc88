@cake.schedule(target="sm_90a")
def streamk_ranges(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"], PART: LM.gmem3d[LM.f32, "G", 128, 128], FLAG: LM.gmem1d[LM.i32, "G2"].zeroed,
                   M: LM.i32, N: LM.i32, K: LM.i32, G: LM.i32, G2: LM.i32, *, BK=64, STAGES=4):
    """Stream-K: worker w takes an even share of all k steps of all tiles; whoever has a tile's last step adds what the workers before it left."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and G > 0 and G2 == 2 * G and K % 8 == 0)
    mt, kt = lm.cdiv(M, 128), lm.cdiv(K, BK)
    total = mt * lm.cdiv(N, 128) * kt
    lm.assume(total >= G)
    pool = lm.smem(STAGES * 2 * 128 * BK * 2)
    a_s = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    b_s = pool.view(offset=STAGES * 128 * BK * 2, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=200, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(G,), names=("w",))

    with load:
        for t in lm.tiles(sched):
            lo, hi = t.w * total // G, (t.w + 1) * total // G
            for x in lm.range(lo, hi):
                tile, k = x // kt, x % kt
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a_s.tma_load(A, coords=(k * BK, tile % mt * 128), stage=s, barrier=full)
                b_s.tma_load(B, coords=(k * BK, tile // mt * 128), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        mine = 64 * math.index
        for t in lm.tiles(sched):
            lo, hi = t.w * total // G, (t.w + 1) * total // G
            for tile in lm.range(lo // kt, (hi - 1) // kt + 1):
                begin, end = lm.max(lo, tile * kt), lm.min(hi, (tile + 1) * kt)
                for x in lm.range(begin, end):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    lm.mma(acc, a_s[s].rows(mine, 64), b_s[s], init=(x == begin))
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                if end < (tile + 1) * kt:
                    lm.store(PART, acc, coords=(0, mine, t.w))
                    lm.signal(FLAG, 2 * t.w + math.index, 1)
                else:
                    for p in lm.range(((tile * kt + 1) * G - 1) // total, t.w):
                        lm.spin(FLAG, 2 * p + math.index, 1)
                        acc = acc + lm.load(PART, coords=(0, mine, p), shape=(64, 128), form="acc")
                    lm.store(C, lm.cast(acc, lm.bf16), coords=(tile // mt * 128, tile % mt * 128 + mine), clip=True)
