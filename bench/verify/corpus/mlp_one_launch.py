"""Both layers of an MLP in one launch: the load role waits for the flags of the tiles that it reads."""


@cake.schedule(target="sm_90a")
def mlp_one_launch(lm, X: LM.tma2d[LM.bf16, "M", "K"], W1: LM.tma2d[LM.bf16, "H", "K"], W2: LM.tma2d[LM.bf16, "N", "H"], Hid: LM.tma2d[LM.bf16, "M", "H"], Y: LM.tma2d[LM.bf16, "M", "N"],
                   ready: LM.gmem1d[LM.i32, "FLAGS"].zeroed, M: LM.i32, K: LM.i32, H: LM.i32, N: LM.i32, MT: LM.i32, FLAGS: LM.i32, *, BN=64, BK=64, STAGES=4):
    """Both layers of an MLP in one persistent launch: tiles of the first layer come first, tiles of the second wait until all of their rows' hidden tiles are counted."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and H > 0)
    lm.assume(MT == lm.cdiv(M, 64) and FLAGS == MT * (H // BN))
    lm.assume(K % 8 == 0 and H % 64 == 0 and N % 8 == 0)
    pool = lm.smem(STAGES * (64 + BN) * BK * 2 + 64 * BN * 2)
    smem_a = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=STAGES * 64 * BK * 2, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=STAGES * (64 + BN) * BK * 2, shape=(64, BN), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math)
    ht = H // BN
    sched = lm.scheduler(kind="static", tiles=(MT, ht + lm.cdiv(N, BN)), names=("m", "n"))
    with load:
        for t in lm.tiles(sched):
            if t.n < ht:
                for k in lm.range(lm.cdiv(K, BK)):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    smem_a.tma_load(X, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                    smem_b.tma_load(W1, coords=(k * BK, t.n * BN), stage=s, barrier=full)
            else:
                for h in lm.range(ht):
                    lm.spin(ready, t.m * ht + h, 1)
                for k in lm.range(H // BK):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    smem_a.tma_load(Hid, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                    smem_b.tma_load(W2, coords=(k * BK, (t.n - ht) * BN), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            trips = lm.cdiv(K, BK) if t.n < ht else H // BK
            for k in lm.range(trips):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s], smem_b[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            if t.n < ht:
                smem_c.store(lm.cast(lm.gelu(acc), lm.bf16))
            else:
                smem_c.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            if t.n < ht:
                smem_c.tma_store(Hid, coords=(t.n * BN, t.m * 64))
                lm.store_wait(pending=0, read=False)
                lm.sync(own)
                lm.signal(ready, t.m * ht + t.n, 1)
            else:
                smem_c.tma_store(Y, coords=((t.n - ht) * BN, t.m * 64))
                lm.store_wait(pending=0)
                lm.sync(own)
