"""Hopper FP8 GEMM for few tiles: the CTAs of a cluster share K and add up through global memory, each a slice of the columns; one launch."""


@cake.schedule(target="sm_90a")
def partial_products(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                     C: LM.gmem2d[LM.bf16, "M", "N"], P: LM.gmem3d[LM.f32, "PARTS", "ROWS", "BN"],
                     M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32, PARTS: LM.i32, ROWS: LM.i32,
                     *, SPLIT=4, MEMBERS=2, BN=128, STAGES=6, CTAS=1, LOAD_WARPS=1, REGS=None, LOAD_REGS=None):
    """CTA t.k of a cluster multiplies blocks t.k * share on of K; P holds what each CTA found."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and N % 8 == 0 and MP % 4 == 0 and ROWS == 64 * MEMBERS)

    BM = 64 * MEMBERS
    a_bytes, b_bytes = STAGES * BM * 128, STAGES * BN * 128
    pool = lm.smem(a_bytes + b_bytes + STAGES * BM * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    scale = pool.view(offset=a_bytes + b_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + LOAD_WARPS), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    own = lm.named_barrier(load)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(KB, SPLIT)
    W = BN // SPLIT

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                lm.sync(own)
                block = t.k * share + k
                qb.tma_load(B, coords=(block * 128, t.n * BN), stage=s, barrier=full)
                qa.tma_load(A, coords=(block * 128, t.m * BM), stage=s, barrier=full)
                scale.tma_load(SA, coords=(t.m * BM, block), stage=s, barrier=full)
            lm.cluster_sync()

    with math:
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            first = t.n * BN // 128
            second = lm.min(first + 1, NB - 1)
            here = (t.n * lm.cdiv(M, BM) + t.m) * SPLIT
            for k in lm.range(share):
                block = lm.min(t.k * share + k, KB - 1)                          # beyond the last block A, B and SA are zero
                sb = lm.ld(SB, first * KB + block)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                sa = scale[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                if 128 % BN == 0:
                    acc = acc + part * (sa * sb)
                else:
                    next_sb = lm.ld(SB, second * KB + block)
                    inside = lm.iota(part, axis=1) < (first + 1) * 128 - t.n * BN
                    acc = acc + part * (sa * lm.where(inside, sb, next_sb))
            lm.store(P, acc, coords=(0, 64 * math.index, here + t.k))
            lm.cluster_sync()
            total = lm.load(P, coords=(t.k * W, 64 * math.index, here), shape=(64, W), form="acc")
            for i in lm.static_range(1, SPLIT):
                total = total + lm.load(P, coords=(t.k * W, 64 * math.index, here + i), shape=(64, W), form="acc")
            lm.store(C, lm.cast(total, lm.bf16), coords=(t.n * BN + t.k * W, t.m * BM + 64 * math.index), clip=True)


@cake.plan()
def gemm_fp8(lm, A: LM.gmem2d[LM.e4m3], B: LM.gmem2d[LM.e4m3], SA: LM.gmem2d[LM.f32], SB: LM.gmem1d[LM.f32], C: LM.gmem2d[LM.bf16],
             M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32, *, SPLIT=4, MEMBERS=2, BN=128, STAGES=6, CTAS=1, LOAD_WARPS=1, REGS=None, LOAD_REGS=None):
    parts = SPLIT * lm.cdiv(M, 64 * MEMBERS) * lm.cdiv(N, BN)
    found = lm.workspace(shape=(parts, 64 * MEMBERS, BN), dtype=lm.f32)
    lm.run(partial_products, A=A, B=B, SA=SA, SB=SB, C=C, P=found, M=M, N=N, K=K, KB=KB, NB=NB, MP=MP, PARTS=parts, ROWS=64 * MEMBERS,
           SPLIT=SPLIT, MEMBERS=MEMBERS, BN=BN, STAGES=STAGES, CTAS=CTAS,
           LOAD_WARPS=LOAD_WARPS, REGS=REGS, LOAD_REGS=LOAD_REGS)
