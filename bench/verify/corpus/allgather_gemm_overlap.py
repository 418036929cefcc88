@cake.schedule(target="sm_90a")
def allgather_gemm_overlap(lm, SHARDS: LM.tma2d[LM.bf16, "M", "K"], A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"].const,
                           C: LM.gmem2d[LM.bf16, "M", "N"], HERE: LM.gmem1d[LM.i32, "BLOCKS"].zeroed, M: LM.i32, N: LM.i32, K: LM.i32, BLOCKS: LM.i32, *, BK=64, STAGES=4):
    """A warp brings row blocks of the peers' shards into the local copy and announces them; the GEMM beside them waits for the block that its tile needs."""
    lm.launch(grid="persistent")
    lm.assume(M % 128 == 0 and K % BK == 0 and N % 128 == 0 and K > 0)
    lm.assume(BLOCKS == M // 128)
    pool = lm.smem((STAGES + 1) * 2 * 128 * BK * 2)
    a_s = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    b_s = pool.view(offset=STAGES * 128 * BK * 2, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    hop_s = pool.view(offset=STAGES * 2 * 128 * BK * 2, shape=(128, BK), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    carry = lm.role(warps=range(4, 5))
    load = lm.role(warps=range(5, 6))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    hop = lm.pipeline(stages=2)
    hopped = lm.barrier(pipeline=hop, prod=[carry], cons=[carry], arrive="tx")
    blocks = lm.scheduler(kind="static", tiles=(BLOCKS,), names=("i",))
    tiles = lm.scheduler(kind="static", tiles=(N // 128, BLOCKS), names=("n", "m"))

    with carry:
        for b in lm.tiles(blocks):
            for k in lm.range(K // BK):
                c = lm.step(hop)
                lm.store_wait(pending=1)
                hop_s.tma_load(SHARDS, coords=(k * BK, b.i * 128), stage=c, barrier=hopped)
                lm.wait(hopped, stage=c)
                hop_s[c].tma_store(A, coords=(k * BK, b.i * 128))
            lm.store_wait(pending=0, read=False)
            lm.signal(HERE, b.i, 1)

    with load:
        for t in lm.tiles(tiles):
            lm.spin(HERE, t.m, 1)
            for k in lm.range(K // BK):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a_s.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                b_s.tma_load(B, coords=(k * BK, t.n * 128), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(128, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(tiles):
            for k in lm.range(K // BK):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a_s[s], b_s[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * 128, t.m * 128))
