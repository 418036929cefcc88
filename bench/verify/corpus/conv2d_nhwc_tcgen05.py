@cake.schedule(target="sm_103a")
def conv2d_nhwc_tcgen05(lm, X: LM.tma4d[LM.bf16, "NB", "H", "W", "C"], F: LM.tma3d[LM.bf16, 9, "KO", "C"], BIAS: LM.gmem1d[LM.f32, "KO"], Y: LM.tma4d[LM.bf16, "NB", "H", "W", "KO"],
                        NB: LM.i32, H: LM.i32, W: LM.i32, C: LM.i32, KO: LM.i32, *, BN=64, BK=64, STAGES=4):
    """3 x 3 convolution, padding 1, NHWC: 128 pixels of a line a tile, nine shifted boxes whose margins the copy engine fills, then relu."""
    lm.launch(grid="persistent")
    lm.assume(C > 0)
    lm.assume(C % 8 == 0 and KO % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 128 * BN * 2)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_y = pool.view(offset=a_bytes + b_bytes, shape=(128, BN), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)

    epi = lm.role(warps=range(0, 4))
    mma = lm.role(warps=range(4, 5))
    load = lm.role(warps=range(5, 6))
    ab = lm.pipeline(stages=STAGES)
    one = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[mma], cons=[load], arrive="mma", primed=True)
    done = lm.barrier(pipeline=one, prod=[mma], cons=[epi], arrive="mma")
    drained = lm.barrier(pipeline=one, prod=[epi], cons=[mma], arrive="warp", primed=True)
    meet = lm.named_barrier(epi)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(W, 128), H, NB, lm.cdiv(KO, BN)), names=("w", "h", "b", "o"))
    cb = lm.cdiv(C, BK)

    with load:
        for t in lm.tiles(sched):
            for tap in lm.range(9):
                dy = tap // 3 - 1
                dx = tap % 3 - 1
                for c in lm.range(cb):
                    s = lm.step(ab)
                    lm.wait(empty, stage=s)
                    smem_a.tma_load(X, coords=(c * BK, t.w * 128 + dx, t.h + dy, t.b), stage=s, barrier=full)
                    smem_b.tma_load(F, coords=(c * BK, t.o * BN, tap), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            o = lm.step(one)
            lm.wait(drained, stage=o)
            for tap in lm.range(9):
                for c in lm.range(cb):
                    s = lm.step(ab)
                    lm.wait(full, stage=s)
                    lm.mma(acc, smem_a[s], smem_b[s], init=(tap == 0 and c == 0))
                    lm.commit(empty, stage=s)
            lm.commit(done, stage=o)

    with epi:
        for t in lm.tiles(sched):
            o = lm.step(one)
            lm.wait(done, stage=o)
            x = lm.tmem_load(acc, form="rows")
            lm.tmem_wait("ld")
            lm.arrive(drained, stage=o)
            bias = lm.load(BIAS, coords=(t.o * BN,), shape=(BN,), form="colvec", like=x, clip=True)
            lm.store_wait(pending=0)
            lm.sync(meet)
            smem_y.store(lm.cast(lm.max(x + bias, 0.0), lm.bf16))
            lm.fence_proxy()
            lm.sync(meet)
            smem_y.tma_store(Y, coords=(t.o * BN, t.w * 128, t.h, t.b))
        lm.store_wait(pending=0)
