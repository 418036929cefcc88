"""RTX: mma.sync fed by the copy engine through two rings of different depth, A deep and B shallow, that move at different speed: a block of B serves two of A."""
@cake.schedule(target=("sm_120a", "sm_121a"))
def gemm_sm120_two_depths(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, ADEPTH=4, BDEPTH=2):
    lm.launch(grid="persistent", ctas_per_sm=1)
    lm.assume(K > 0 and K % 128 == 0)
    lm.assume(N % 8 == 0)
    pool = lm.smem(ADEPTH * 64 * 128 + BDEPTH * 64 * 256 + 64 * 64 * 2)
    sa = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=ADEPTH, swizzle="128b")
    sb = pool.view(offset=ADEPTH * 8192, shape=(64, 128), dtype=lm.bf16, stage=BDEPTH, swizzle="128b")
    sc = pool.view(offset=ADEPTH * 8192 + BDEPTH * 16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    load = lm.role(warps=range(4, 5))
    math = lm.role(warps=range(0, 4))
    deep = lm.pipeline(stages=ADEPTH)
    flat = lm.pipeline(stages=BDEPTH)
    afull = lm.barrier(pipeline=deep, prod=[load], cons=[math], arrive="tx")
    aempty = lm.barrier(pipeline=deep, prod=[math], cons=[load], arrive="warp", primed=True)
    bfull = lm.barrier(pipeline=flat, prod=[load], cons=[math], arrive="tx")
    bempty = lm.barrier(pipeline=flat, prod=[math], cons=[load], arrive="warp", primed=True)
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 64)), raster="m", swizzle=4)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(K // 128):
                b = lm.step(flat)
                lm.wait(bempty, stage=b)
                sb.tma_load(B, coords=(128 * k, 64 * t.n), stage=b, barrier=bfull)
                for i in lm.static_range(2):
                    a = lm.step(deep)
                    lm.wait(aempty, stage=a)
                    sa.tma_load(A, coords=(128 * k + 64 * i, 64 * t.m), stage=a, barrier=afull)
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", warps=(2, 2), init=0)
            for k in lm.range(K // 128):
                b = lm.step(flat)
                lm.wait(bfull, stage=b)
                for i in lm.static_range(2):
                    a = lm.step(deep)
                    lm.wait(afull, stage=a)
                    for j in lm.static_range(4):
                        lm.mma(acc, sa[a].cols(16 * j, 16).ldmatrix(form="a", like=acc), sb[b].cols(64 * i + 16 * j, 16).ldmatrix(form="b", like=acc))
                    lm.arrive(aempty, stage=a)
                lm.arrive(bempty, stage=b)
            lm.store_wait(pending=0)
            lm.sync(cta)
            sc.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(cta)
            sc.tma_store(C, coords=(64 * t.n, 64 * t.m))
        lm.store_wait(pending=0, read=False)
