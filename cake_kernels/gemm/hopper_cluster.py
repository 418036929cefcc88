"""Hopper GEMM for few tiles and a long K: the CTAs of a cluster share K and add up through global memory, each a slice of the columns; one launch."""


@cake.schedule(target="sm_90a")
def partial_products(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"], P: LM.gmem3d[LM.f32, "PARTS", "ROWS", "BN"],
                     M: LM.i32, N: LM.i32, K: LM.i32, PARTS: LM.i32, ROWS: LM.i32, *, SPLIT=2, MEMBERS=2, BN=160, BK=64, STAGES=6):
    """CTA t.k of a cluster multiplies `share` steps of K; P holds what each CTA found."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0 and ROWS == 64 * MEMBERS)

    BM = 64 * MEMBERS
    a_bytes = STAGES * BM * BK * 2
    pool = lm.smem(a_bytes + STAGES * BN * BK * 2)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(load)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(lm.cdiv(K, BK), SPLIT)
    W = BN // SPLIT

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                lm.sync(own)
                smem_a.tma_load(A, coords=((t.k * share + k) * BK, t.m * BM), stage=s, barrier=full)
                smem_b.tma_load(B, coords=((t.k * share + k) * BK, t.n * BN), stage=s, barrier=full)
            lm.cluster_sync()

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ab))
            here = (t.n * lm.cdiv(M, BM) + t.m) * SPLIT
            lm.store(P, acc, coords=(0, 64 * math.index, here + t.k))
            lm.cluster_sync()
            total = lm.load(P, coords=(t.k * W, 64 * math.index, here), shape=(64, W), form="acc")
            for i in lm.static_range(1, SPLIT):
                total = total + lm.load(P, coords=(t.k * W, 64 * math.index, here + i), shape=(64, W), form="acc")
            lm.store(C, lm.cast(total, lm.bf16), coords=(t.n * BN + t.k * W, t.m * BM + 64 * math.index), clip=True)


@cake.plan()
def gemm(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32,
         *, SPLIT=2, MEMBERS=2, BN=160, BK=64, STAGES=6):
    parts = SPLIT * lm.cdiv(M, 64 * MEMBERS) * lm.cdiv(N, BN)
    found = lm.workspace(shape=(parts, 64 * MEMBERS, BN), dtype=lm.f32)
    lm.run(partial_products, A=A, B=B, C=C, P=found, M=M, N=N, K=K, PARTS=parts, ROWS=64 * MEMBERS,
           SPLIT=SPLIT, MEMBERS=MEMBERS, BN=BN, BK=BK, STAGES=STAGES)
