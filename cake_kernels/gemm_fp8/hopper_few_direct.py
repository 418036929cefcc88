"""Hopper FP8 GEMM for few rows: clusters share K, and in each CTA the math warpgroups take its blocks in turn; one CTA adds up a slice of the columns."""


@cake.schedule(target="sm_90a")
def gemm_fp8_few(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                 C: LM.gmem2d[LM.bf16, "M", "N"],
                 M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                 *, SPLIT=2, MEMBERS=2, BN=64, STAGES=3, CTAS=1, EARLY=True, ROWS=1, WARM=False, HINT=None, KMAX=128):
    """Tiles of 64 rows; member i of CTA t.k multiplies blocks (t.k * share + k) * MEMBERS + i of K."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(M <= 64 * ROWS)
    lm.assume(KB * 128 == K and KB <= KMAX and N % 8 == 0 and MP % 4 == 0)

    BK, W = 128 * MEMBERS, BN // SPLIT
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    SLOTS = SPLIT * MEMBERS - 1                                                  # sums that a CTA gets beside those in its first member's registers
    b_stage = (BN * BK + 1023) // 1024 * 1024
    b_bytes, a_bytes, i_bytes, c_bytes = STAGES * b_stage, STAGES * 64 * BK, SLOTS * 64 * W * 4, 64 * W * 2
    s_at = a_bytes + b_bytes + i_bytes + c_bytes + STAGES * MEMBERS * 256
    pool = lm.smem(s_at + (1 if ONE else 2) * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(64, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b", stage_bytes=b_stage)
    inbox = pool.view(offset=a_bytes + b_bytes, shape=(SLOTS * 64, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    smem_c = pool.view(offset=a_bytes + b_bytes + i_bytes, shape=(64, W), dtype=lm.bf16,
                       swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b" if W % 16 == 0 else None)
    scale_a = pool.view(offset=a_bytes + b_bytes + i_bytes + c_bytes, shape=(64 * MEMBERS,), dtype=lm.f32, stage=STAGES)
    scale_b = pool.view(offset=s_at, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if not ONE:
        scale_b2 = pool.view(offset=s_at + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    load_a = lm.role(warps=range(4 * MEMBERS + 1, 4 * MEMBERS + 2))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, ROWS, lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(KB, SPLIT * MEMBERS)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = (t.k * share + k) * MEMBERS
                qb.tma_load(B, coords=(at * 128, t.n * BN), stage=s, barrier=full, cache=HINT)

    with load_a:
        if WARM:
            for t in lm.tiles(sched):
                qa.tma_prefetch(A, coords=((t.k * share + t.n % share) * BK, t.m * 64))
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = (t.k * share + k) * MEMBERS
                qa.tma_load(A, coords=(at * 128, t.m * 64), stage=s, barrier=full)
                for i in lm.static_range(MEMBERS):
                    scale_a.cols(64 * i, 64).tma_load(SA, coords=(t.m * 64, at + i), stage=s, barrier=full)

    with math:
        if EARLY:
            lm.pdl_launch()
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            row = t.n * BN // 128 * KB                                           # where the scales of the tile's first columns lie
            next_row = lm.min(t.n * BN // 128 + 1, NB - 1) * KB                  # .. and of those it has in the next block
            begin = t.k * share * MEMBERS + math.index
            found = lm.load(SB, coords=(row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            if not ONE:
                found2 = lm.load(SB, coords=(next_row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
                scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(own)
            for k in lm.range(share):                                            # beyond the last block A, B and SA are zero
                s = lm.step(ring)
                at = lm.min(begin + k * MEMBERS, KB - 1)
                sb = scale_b.cols(KMAX * math.index, KMAX).ld(at)
                if not ONE:
                    sb2 = scale_b2.cols(KMAX * math.index, KMAX).ld(at)
                lm.wait(full, stage=s)
                lm.mma(part, qa[s].cols(128 * math.index, 128), qb[s].cols(128 * math.index, 128), init=True)
                sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                lm.fence_proxy()                                                 # the scales were read by loads: this frees their slot, under the product
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                if ONE:
                    acc = acc + part * (sa * sb)
                else:
                    acc = acc + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, sa * sb, sa * sb2)
            box = lm.step(mail)
            mine = lm.cta_rank() * MEMBERS + math.index                          # every member sends each CTA its slice; the first member keeps its own
            for q in lm.static_range(SPLIT):
                if mine != q * MEMBERS:
                    slot = (mine + SPLIT * MEMBERS - q * MEMBERS - 1) % (SPLIT * MEMBERS)
                    inbox.rows(slot * 64, 64).send(acc.cols(W * q, W), cta=q, barrier=arrived, stage=box)
            if math.index == 0:
                lm.wait(arrived, stage=box)
                found = inbox.rows(0, 64).load(form="acc")
                for i in lm.static_range(1, SLOTS):
                    found = found + inbox.rows(i * 64, 64).load(form="acc")
                for q in lm.static_range(SPLIT):
                    if lm.cta_rank() == q:
                        smem_c.store(lm.cast(acc.cols(W * q, W) + found, lm.bf16))
                lm.sync(own)
                lm.pdl_wait()
                lm.store(C, smem_c.load(form="vec"), coords=(t.n * BN + W * lm.cta_rank(), t.m * 64), clip=True)
