"""Hopper GEMM on a B with N contiguous, for few tiles and a long K: two CTAs share K of a tile of 160 columns, which are read in whole lines of 128 bytes."""


@cake.schedule(target="sm_90a")
def gemm_nn_lines_share(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "K", "N"].const, C: LM.tma2d[LM.bf16, "M", "N"],
                        M: LM.i32, N: LM.i32, K: LM.i32, *, STAGES=6, EARLY=True):
    """Tiles of 128 x 160; CTA t.k of a cluster multiplies `share` steps of K from t.k * share on and stores half t.k of either part.

    160 columns are two lines and a half. Tiles 2 i and 2 i + 1 halve the line between them: 128 columns and 32, then 32 and 128, and no line is asked for twice by a copy.
    """
    lm.launch(grid="tiles", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)

    BM, BK, WIDE, NARROW = 128, 64, 128, 32
    VW, VN = WIDE // 2, NARROW // 2                                              # columns of either part that a CTA adds up
    a_bytes, w_bytes, n_bytes = STAGES * BM * BK * 2, STAGES * BK * WIDE * 2, STAGES * BK * NARROW * 2
    i_bytes = BM * (VW + VN) * 4
    pool = lm.smem(a_bytes + w_bytes + n_bytes)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_w = pool.view(offset=a_bytes, shape=(BK, WIDE), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_n = pool.view(offset=a_bytes + w_bytes, shape=(BK, NARROW), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    inbox_w = pool.view(offset=0, shape=(BM, VW), dtype=lm.f32, swizzle="128b")
    inbox_n = pool.view(offset=BM * VW * 4, shape=(BM, VN), dtype=lm.f32, swizzle="64b")
    out_w = pool.view(offset=i_bytes, shape=(BM, VW), dtype=lm.bf16, swizzle="128b")
    out_n = pool.view(offset=i_bytes + BM * VW * 2, shape=(BM, VN), dtype=lm.bf16, swizzle="32b")

    math = lm.role(warps=range(0, 8), members=2)
    load_b = lm.role(warps=range(8, 9))
    load_a = lm.role(warps=range(9, 10))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load_b, load_a], arrive="member", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    free = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="member", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(2, lm.cdiv(M, BM), 2, lm.cdiv(N, 320)), names=("k", "m", "odd", "pair"), cluster=(2, 1))
    share = lm.cdiv(lm.cdiv(K, BK), 2)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_w.tma_load(B, coords=(t.pair * 320 + 192 * t.odd, (t.k * share + k) * BK), stage=s, barrier=full)
                smem_n.tma_load(B, coords=(t.pair * 320 + 128 + 32 * t.odd, (t.k * share + k) * BK), stage=s, barrier=full)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=((t.k * share + k) * BK, t.m * BM), stage=s, barrier=full)

    with math:
        if EARLY:
            lm.pdl_launch()
        wide = lm.frag(shape=(64, WIDE), dtype=lm.f32, form="acc")
        narrow = lm.frag(shape=(64, NARROW), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(wide, smem_a[s].rows(64 * math.index, 64), smem_w[s].T, init=(k == 0))
                lm.mma(narrow, smem_a[s].rows(64 * math.index, 64), smem_n[s].T, init=(k == 0))
                lm.mma_wait(pending=2)                                           # both of the step before have read their slot
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ab))
            box = lm.step(mail)
            lm.arrive(free, stage=box)
            lm.wait(free, stage=box)                                             # nobody in the cluster reads slots any more: they take the sums
            mine_w, mine_n = inbox_w.rows(64 * math.index, 64), inbox_n.rows(64 * math.index, 64)
            if lm.cta_rank() == 0:
                mine_w.send(wide.cols(VW, VW), cta=1, barrier=arrived, stage=box)
                mine_n.send(narrow.cols(VN, VN), cta=1, barrier=arrived, stage=box)
            else:
                mine_w.send(wide.cols(0, VW), cta=0, barrier=arrived, stage=box)
                mine_n.send(narrow.cols(0, VN), cta=0, barrier=arrived, stage=box)
            lm.wait(arrived, stage=box)
            staged_w, staged_n = out_w.rows(64 * math.index, 64), out_n.rows(64 * math.index, 64)
            found_w = mine_w.load(form="acc")
            found_n = mine_n.load(form="acc")
            if lm.cta_rank() == 0:
                staged_w.store(lm.cast(wide.cols(0, VW) + found_w, lm.bf16))
                staged_n.store(lm.cast(narrow.cols(0, VN) + found_n, lm.bf16))
            else:
                staged_w.store(lm.cast(wide.cols(VW, VW) + found_w, lm.bf16))
                staged_n.store(lm.cast(narrow.cols(VN, VN) + found_n, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            staged_w.tma_store(C, coords=(t.pair * 320 + 192 * t.odd + VW * lm.cta_rank(), t.m * BM + 64 * math.index))
            staged_n.tma_store(C, coords=(t.pair * 320 + 128 + 32 * t.odd + VN * lm.cta_rank(), t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)
