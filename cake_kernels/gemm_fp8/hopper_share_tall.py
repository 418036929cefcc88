"""Hopper FP8 GEMM for few tall tiles: a member has two products of 64 rows a block, the CTAs of a cluster share K and add up a slice of the columns each."""


@cake.schedule(target="sm_90a")
def gemm_fp8_share_tall(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                        C: LM.tma2d[LM.bf16, "M", "N"],
                        M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                        *, SPLIT=2, MEMBERS=2, BN=112, STAGES=3, UNROLL=1, KMAX=64, HINT=None, REGS=232, LOAD_REGS=24):
    """CTA t.k of a cluster multiplies blocks t.k * share on of K; 128 rows of each tile per math member."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX * SPLIT and N % 8 == 0 and MP % 4 == 0)
    if UNROLL > 1:
        lm.assume(KB % (UNROLL * SPLIT) == 0)

    BM, W = 128 * MEMBERS, BN // SPLIT
    a_bytes, b_bytes, i_bytes = STAGES * BM * 128, STAGES * BN * 128, (SPLIT - 1) * BM * W * 4
    s_at = a_bytes + b_bytes + i_bytes + BM * W * 2
    pool = lm.smem(s_at + STAGES * BM * 4 + 2 * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=((SPLIT - 1) * BM, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    smem_c = pool.view(offset=a_bytes + b_bytes + i_bytes, shape=(BM, W), dtype=lm.bf16,
                       swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b" if W % 16 == 0 else None)
    scale_a = pool.view(offset=s_at, shape=(BM,), dtype=lm.f32, stage=STAGES)
    scale_b = pool.view(offset=s_at + STAGES * BM * 4, shape=(2 * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    load_a = lm.role(warps=range(4 * MEMBERS + 4, 4 * MEMBERS + 8), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    both = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(KB, SPLIT)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qb.tma_load(B, coords=((t.k * share + k) * 128, t.n * BN), stage=s, barrier=full, cache=HINT)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=((t.k * share + k) * 128, t.m * BM), stage=s, barrier=full)
                scale_a.tma_load(SA, coords=(t.m * BM, t.k * share + k), stage=s, barrier=full)

    with math:
        lm.pdl_launch()
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            upper = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            lower = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            row = lm.min(t.n * BN // 128 + math.index, NB - 1) * KB + t.k * share  # member 0 brings the scales of the first columns, member 1 those of the next block
            found = lm.load(SB, coords=(row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB - t.k * share)
            scale_b.cols(KMAX * math.index, KMAX).store(found)
            lm.sync(both)
            for k in lm.range(lm.cdiv(share, UNROLL)):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    sb, next_sb = scale_b.ld(k * UNROLL + u), scale_b.ld(KMAX + k * UNROLL + u)
                    lm.wait(full, stage=s)
                    lm.mma(part, qa[s].rows(128 * math.index, 64), qb[s], init=True)
                    upper_sa = scale_a[s].cols(128 * math.index, 64).load(form="rowvec", like=part)
                    lower_sa = scale_a[s].cols(128 * math.index + 64, 64).load(form="rowvec", like=part)
                    lm.fence_proxy()                                             # the scales were read by loads: this frees their slot, under the product
                    lm.mma_wait(pending=0)
                    upper = upper + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, upper_sa * sb, upper_sa * next_sb)
                    lm.mma(part, qa[s].rows(128 * math.index + 64, 64), qb[s], init=True)
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    lower = lower + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, lower_sa * sb, lower_sa * next_sb)
            top, bottom = smem_c.rows(128 * math.index, 64), smem_c.rows(128 * math.index + 64, 64)
            box = lm.step(mail)
            for q in lm.static_range(SPLIT):
                if lm.cta_rank() != q:                                       # slot by slot: what the CTAs after q found, in their order
                    slot = (lm.cta_rank() + SPLIT - q - 1) % SPLIT
                    inbox.rows(slot * BM + 128 * math.index, 64).send(upper.cols(W * q, W), cta=q, barrier=arrived, stage=box)
                    inbox.rows(slot * BM + 128 * math.index + 64, 64).send(lower.cols(W * q, W), cta=q, barrier=arrived, stage=box)
            lm.wait(arrived, stage=box)
            above = inbox.rows(128 * math.index, 64).load(form="acc")
            below = inbox.rows(128 * math.index + 64, 64).load(form="acc")
            if SPLIT > 2:
                for i in lm.static_range(1, SPLIT - 1):
                    above = above + inbox.rows(i * BM + 128 * math.index, 64).load(form="acc")
                    below = below + inbox.rows(i * BM + 128 * math.index + 64, 64).load(form="acc")
            for q in lm.static_range(SPLIT):
                if lm.cta_rank() == q:
                    top.store(lm.cast(upper.cols(W * q, W) + above, lm.bf16))
                    bottom.store(lm.cast(lower.cols(W * q, W) + below, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            top.tma_store(C, coords=(t.n * BN + W * lm.cta_rank(), t.m * BM + 128 * math.index))
            bottom.tma_store(C, coords=(t.n * BN + W * lm.cta_rank(), t.m * BM + 128 * math.index + 64))
        lm.store_wait(pending=0)
