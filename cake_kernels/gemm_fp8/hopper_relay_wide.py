"""Hopper FP8 GEMM for few rows and many columns, two launches an SM: 64 x 192 tiles in three products, the next launch's weights fetched while this one ends."""


@cake.schedule(target="sm_90a")
def gemm_fp8_relay_wide(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                        C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                        *, ASTAGES=3, BSTAGES=10, CTAS=2, GRID=132, LATE=4, WARM=False, ROWS=1, HINT="stream", UNROLL=1, KMAX=128):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; one warpgroup a tile, 64 columns at a time, whose scale is one number.

    At least GRID tiles, so that every SM has one CTA of a launch and never two; those beyond N multiply zeros.
    """
    lm.launch(grid="tiles", ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(M <= 64 * ROWS)
    lm.assume(KB * 128 == K and KB <= KMAX and N % 8 == 0 and MP % 4 == 0)
    if UNROLL > 1:
        lm.assume(KB % UNROLL == 0)

    a_bytes, b_bytes = ASTAGES * 64 * 128, BSTAGES * 64 * 128
    t_at = a_bytes + b_bytes + ASTAGES * 256
    pool = lm.smem(t_at + 2 * KMAX * 4)
    qa = pool.view(offset=0, shape=(64, 128), dtype=lm.e4m3, stage=ASTAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(64, 128), dtype=lm.e4m3, stage=BSTAGES, swizzle="128b")
    scale_a = pool.view(offset=a_bytes + b_bytes, shape=(64,), dtype=lm.f32, stage=ASTAGES)
    scale_b = pool.view(offset=t_at, shape=(2 * KMAX,), dtype=lm.f32)
    smem_c = pool.view(offset=0, shape=(64, 192), dtype=lm.bf16, swizzle="128b")   # takes the place of the operands

    math = lm.role(warps=range(0, 4))
    load_b = lm.role(warps=range(4, 5))
    load_a = lm.role(warps=range(5, 6))
    ring_a = lm.pipeline(stages=ASTAGES)
    full_a = lm.barrier(pipeline=ring_a, prod=[load_a], cons=[math], arrive="tx")
    empty_a = lm.barrier(pipeline=ring_a, prod=[math], cons=[load_a], arrive="warp", primed=True)
    ring_b = lm.pipeline(stages=BSTAGES)
    full_b = lm.barrier(pipeline=ring_b, prod=[load_b], cons=[math], arrive="tx")
    empty_b = lm.barrier(pipeline=ring_b, prod=[math], cons=[load_b], arrive="warp", primed=True)
    own = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(ROWS, lm.max(lm.cdiv(N, 192), GRID)))

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                for j in lm.static_range(3):
                    s = lm.step(ring_b)
                    lm.wait(empty_b, stage=s)
                    qb.tma_load(B, coords=(k * 128, t.n * 192 + 64 * j), stage=s, barrier=full_b, cache=HINT)
                if k == lm.max(KB - LATE, 0):
                    lm.pdl_launch()                                              # the next launch's weights follow this one's

    with load_a:
        if WARM:
            for t in lm.tiles(sched):
                qa.tma_prefetch(A, coords=(t.n % KB * 128, t.m * 64))            # each tile asks memory for one block of all tiles' activations
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring_a)
                lm.wait(empty_a, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * 64), stage=s, barrier=full_a)
                scale_a.tma_load(SA, coords=(t.m * 64, k), stage=s, barrier=full_a)

    with math:
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            left = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            middle = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            right = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            block = t.n * 192 // 128
            found = lm.load(SB, coords=(lm.min(block, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(0, KMAX).store(found)
            found2 = lm.load(SB, coords=(lm.min(block + 1, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX, KMAX).store(found2)
            lm.sync(own)
            which = t.n % 2 * KMAX                                               # the middle's block of scales: the left one's, or the right one's
            for k in lm.range(lm.cdiv(KB, UNROLL)):
                for u in lm.static_range(UNROLL):
                    a = lm.step(ring_a)
                    b = lm.step(ring_b)
                    left_sb = scale_b.ld(k * UNROLL + u)
                    middle_sb = scale_b.ld(k * UNROLL + u + which)
                    right_sb = scale_b.ld(k * UNROLL + u + KMAX)
                    lm.wait(full_b, stage=b)
                    lm.wait(full_a, stage=a)
                    lm.mma(part, qa[a], qb[b], init=True)
                    sa = scale_a[a].load(form="rowvec", like=left)
                    lm.fence_proxy()                                             # the scales were read by loads: this frees their slot, under the products
                    lm.mma_wait(pending=0)
                    lm.arrive(empty_b, stage=b)
                    left = left + part * (sa * left_sb)
                    b = lm.step(ring_b)
                    lm.wait(full_b, stage=b)
                    lm.mma(part, qa[a], qb[b], init=True)
                    lm.mma_wait(pending=0)
                    lm.arrive(empty_b, stage=b)
                    middle = middle + part * (sa * middle_sb)
                    b = lm.step(ring_b)
                    lm.wait(full_b, stage=b)
                    lm.mma(part, qa[a], qb[b], init=True)
                    lm.mma_wait(pending=0)
                    lm.arrive(empty_b, stage=b)
                    lm.arrive(empty_a, stage=a)
                    right = right + part * (sa * right_sb)
            lm.sync(own)                                                         # nobody multiplies any more
            smem_c.cols(0, 64).store(lm.cast(left, lm.bf16))
            smem_c.cols(64, 64).store(lm.cast(middle, lm.bf16))
            smem_c.cols(128, 64).store(lm.cast(right, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            smem_c.tma_store(C, coords=(t.n * 192, t.m * 64))
        lm.store_wait(pending=0)
