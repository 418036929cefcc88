"""GEMM on clusters of four: two CTAs share the rows of A by multicast, two halves of K meet through distributed shared memory."""


@cake.schedule(target="sm_90a")
def gemm_split_send(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"],
                    M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=2):
    """C = A B^T; CTA (k, n) of a cluster multiplies its half of K for columns n, the one with k = 1 sends its sum to the one with k = 0."""
    lm.launch(grid="persistent", cluster=(2, 2))
    lm.assume(K > 0 and M > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 64 * BN * 4)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=(64, BN), dtype=lm.f32)
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True, scope="cluster")
    mail = lm.pipeline(stages=1)
    told = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    read = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="warp", primed=True, scope="cluster")
    sched = lm.scheduler(kind="static", tiles=(2, lm.cdiv(N, BN), lm.cdiv(M, 64)), names=("k", "n", "m"), cluster=(2, 2))
    kt = lm.cdiv(lm.cdiv(K, BK), 2)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=((t.k * kt + k) * BK, t.m * 64), stage=s, barrier=full, multicast="n")
                sb.tma_load(B, coords=((t.k * kt + k) * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s], sb[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            m = lm.step(mail)
            if t.k == 1:
                lm.wait(read, stage=m)
                inbox.send(acc, cta=lm.cta_rank("n") * 2, barrier=told, stage=m)
            else:
                lm.wait(told, stage=m)
                other = inbox.load(form="acc", like=acc)
                lm.store(C, acc + other, coords=(t.n * BN, t.m * 64), clip=True)
            lm.arrive(read, stage=m)
