"""GEMM whose A operand passes through registers: SiLU is applied on the way, so A never comes back to memory."""


@cake.schedule(target="sm_90a")
def gemm_activated_a(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                     M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=4):
    """C = silu(A) B^T: ldmatrix of step k runs while the tensor core works on step k - 1."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes = STAGES * 128 * BK * 2
    pool = lm.smem(a_bytes + STAGES * BN * BK * 2)
    tile_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    tile_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                tile_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                tile_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = tile_a[s].rows(64 * math.index, 64).ldmatrix(form="a", like=acc)
                lm.mma_wait(pending=0)                         # the operand registers of step k - 1 are free again
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
                a = lm.cast(lm.silu(lm.cast(x, lm.f32)), lm.bf16)
                lm.mma(acc, a, tile_b[s], init=(k == 0))
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ring))
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * 128 + 64 * math.index), clip=True)
