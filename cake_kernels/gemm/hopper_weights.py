"""Hopper GEMM whose B does not change, as weights do: its blocks are fetched while the kernel before still runs, ahead of A's."""


@cake.schedule(target="sm_90a")
def gemm_weights(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"].const, C: LM.tma2d[LM.bf16, "M", "N"],
                 M: LM.i32, N: LM.i32, K: LM.i32, *, BN=160, BK=64, STAGES=5, CW=32, CSTAGES=2, GROUP=8, FIRST=0, CLUSTER=1):
    """C[M,N] = A[M,K] @ B[N,K].T in bf16, f32 accumulation; tiles of 128 rows, 64 of each math member.

    B has a load warp of its own, which waits for no other kernel. With FIRST a CTA has one tile, and asks for so many blocks of B and of A before B's others: the copy engine works in order.
    """
    lm.launch(grid="persistent" if FIRST == 0 else "tiles", cluster=(CLUSTER, 1))
    lm.assume(K > 64 * max(0, FIRST - 1))
    lm.assume(K % 8 == 0 and N % 8 == 0)                                        # row strides are multiples of 16 bytes

    BM = 128
    a_bytes, b_bytes = STAGES * BM * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + CSTAGES * BM * CW * 2)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, CW), dtype=lm.bf16, stage=CSTAGES,
                       swizzle="128b" if CW % 64 == 0 else "64b" if CW % 32 == 0 else "32b")

    math = lm.role(warps=range(0, 8), members=2)
    load_b = lm.role(warps=range(8, 9))
    load_a = lm.role(warps=range(9, 10))

    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load_b, load_a], arrive="member", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    if FIRST > 0:
        start = lm.pipeline(stages=1)
        asked = lm.barrier(pipeline=start, prod=[load_a], cons=[load_b], arrive="member")
    cring = lm.pipeline(stages=CSTAGES)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static" if FIRST == 0 else "grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)
    kt = lm.cdiv(K, BK)

    with load_b:
        for t in lm.tiles(sched):
            if FIRST > 0:
                for k in lm.range(FIRST):
                    s = lm.step(ab)
                    lm.wait(empty, stage=s)
                    smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, multicast="m" if CLUSTER > 1 else None)
                lm.wait(asked, stage=lm.step(start))
            for k in lm.range(FIRST, kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, multicast="m" if CLUSTER > 1 else None)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            if FIRST > 0:
                for k in lm.range(FIRST):
                    s = lm.step(ab)
                    lm.wait(empty, stage=s)
                    smem_a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=full)
                lm.arrive(asked, stage=lm.step(start))
            for k in lm.range(FIRST, kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=full)

    with math:
        lm.pdl_launch()                                                          # the next launch fetches its weights where this one has ended
        lm.pdl_wait()
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s], init=(k == 0))
                lm.mma_wait(pending=1)                                           # the k tile before has been read
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ab))
            for j in lm.static_range(BN // CW):
                c = lm.step(cring)
                lm.store_wait(pending=CSTAGES - 1)                               # slot c was read by an earlier store
                lm.sync(own)
                half = smem_c[c].rows(64 * math.index, 64)
                half.store(lm.cast(acc.cols(CW * j, CW), lm.bf16))
                lm.fence_proxy()
                lm.sync(own)
                half.tma_store(C, coords=(t.n * BN + CW * j, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)
