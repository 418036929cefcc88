"""Hopper FP8 GEMM, three members a tile: each has a slice of the columns and multiplies 64 rows at a time, so that two promote while the third's products run."""


@cake.schedule(target="sm_90a")
def gemm_fp8_slices(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                    C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                    *, MEMBERS=3, W=88, STAGES=3, GROUP=8, CLUSTER=1, UNROLL=1, KMAX=256, REGS=160, LOAD_REGS=32):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; W columns of each tile per math member."""
    lm.launch(grid="persistent", cluster=(CLUSTER, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and KB % UNROLL == 0 and N % 8 == 0 and MP % 4 == 0)

    BM, BN = 128, W * MEMBERS
    a_bytes, b_bytes, c_bytes, s_bytes = STAGES * BM * 128, STAGES * BN * 128, MEMBERS * BM * W * 2, STAGES * BM * 4
    pool = lm.smem(a_bytes + b_bytes + c_bytes + s_bytes + 2 * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, W), dtype=lm.bf16, stage=MEMBERS,
                       swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b" if W % 16 == 0 else None)
    scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
    scale_b = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    scale_b2 = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)

    with load:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full, multicast="m" if CLUSTER > 1 else None)
                scale_a.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)

    with math:
        lm.pdl_launch()                                                          # the next kernel sets up meanwhile
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, W), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            upper = lm.frag(shape=(64, W), dtype=lm.f32, form="acc", init=0.0)
            lower = lm.frag(shape=(64, W), dtype=lm.f32, form="acc", init=0.0)
            first = t.n * BN + W * math.index                                    # this member's first column
            found = lm.load(SB, coords=(lm.min(first // 128, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            found2 = lm.load(SB, coords=(lm.min(first // 128 + 1, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(own)
            for k in lm.range(KB // UNROLL):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    sb, sb2 = scale_b.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u), scale_b2.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
                    lm.wait(full, stage=s)
                    lm.mma(part, qa[s].rows(0, 64), qb[s].rows(W * math.index, W), init=True)
                    upper_sa = scale_a[s].cols(0, 64).load(form="rowvec", like=part)
                    lm.mma_wait(pending=0)
                    upper = upper + part * lm.where(lm.iota(part, axis=1) < 128 - (t.n * BN + W * math.index) % 128, upper_sa * sb, upper_sa * sb2)
                    lm.mma(part, qa[s].rows(64, 64), qb[s].rows(W * math.index, W), init=True)
                    lower_sa = scale_a[s].cols(64, 64).load(form="rowvec", like=part)
                    lm.fence_proxy()                                             # the scales were read by loads: this frees their slot, under the product
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    lower = lower + part * lm.where(lm.iota(part, axis=1) < 128 - (t.n * BN + W * math.index) % 128, lower_sa * sb, lower_sa * sb2)
            lm.store_wait(pending=0)                                             # the tile before was read long ago
            lm.sync(own)
            mine = smem_c[math.index]
            mine.rows(0, 64).store(lm.cast(upper, lm.bf16))
            mine.rows(64, 64).store(lm.cast(lower, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            mine.tma_store(C, coords=(first, t.m * BM))
        lm.store_wait(pending=0)
