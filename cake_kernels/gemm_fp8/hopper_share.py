"""Hopper FP8 GEMM for few tiles: two CTAs share K, each gives the other's half of the columns up early, so that the sums cross the cluster under the last blocks."""


@cake.schedule(target="sm_90a")
def gemm_fp8_share(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                   C: LM.tma2d[LM.bf16, "M", "N"],
                   M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                   *, MEMBERS=2, STAGES=5, LAST=4, SLICES=4, FIRST=1, ROWS=None, HINT=None, UNROLL=4, KMAX=64):
    """Of K, CTA 0 multiplies the first blocks with all 128 columns and CTA 1 the last ones; the 2 LAST between them both, each with its own 64 columns."""
    lm.launch(grid="tiles", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and KB % 2 == 0 and KB // 2 > LAST + FIRST and (KB // 2 - LAST) % UNROLL == 0 and N % 8 == 0 and MP % 4 == 0)

    BM, BN, W = 64 * MEMBERS, 128, 64
    if ROWS is not None:
        lm.assume(M <= BM * ROWS)                                                # tiles of rows known: no division in front of the first load
    a_bytes, b_bytes, i_bytes, c_bytes = STAGES * BM * 128, STAGES * BN * 128, BM * W * 4, BM * W * 2
    pool = lm.smem(a_bytes + b_bytes + i_bytes + c_bytes + STAGES * BM * 4 + MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=(BM, W), dtype=lm.f32, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes + i_bytes, shape=(BM, W), dtype=lm.bf16, swizzle="128b")
    scale_a = pool.view(offset=a_bytes + b_bytes + i_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
    scale_b = pool.view(offset=a_bytes + b_bytes + i_bytes + c_bytes + STAGES * BM * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    load_a = lm.role(warps=range(4 * MEMBERS + 1, 4 * MEMBERS + 2))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    if FIRST > 0:
        start = lm.pipeline(stages=1)
        asked = lm.barrier(pipeline=start, prod=[load_a], cons=[load_b], arrive="member")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(2, lm.cdiv(M, BM) if ROWS is None else ROWS, lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(2, 1))
    whole = KB // 2 - LAST                                                       # blocks with all columns

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(FIRST):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = k + t.k * (KB - whole)
                qb.rows(0, W).tma_load(B, coords=(at * 128, t.n * BN + W * t.k), stage=s, barrier=full, cache=HINT)
                qb.rows(W, W).tma_load(B, coords=(at * 128, t.n * BN + W - W * t.k), stage=s, barrier=full, cache=HINT)
            if FIRST > 0:
                lm.wait(asked, stage=lm.step(start))                             # the first blocks of A are on their way before the rest of B is asked for
            for k in lm.range(FIRST, whole):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = k + t.k * (KB - whole)
                qb.rows(0, W).tma_load(B, coords=(at * 128, t.n * BN + W * t.k), stage=s, barrier=full, cache=HINT)
                qb.rows(W, W).tma_load(B, coords=(at * 128, t.n * BN + W - W * t.k), stage=s, barrier=full, cache=HINT)
            for k in lm.range(2 * LAST):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qb.rows(0, W).tma_load(B, coords=((whole + k) * 128, t.n * BN + W * t.k), stage=s, barrier=full, cache=HINT)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(FIRST):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = k + t.k * (KB - whole)
                qa.tma_load(A, coords=(at * 128, t.m * BM), stage=s, barrier=full)
                scale_a.tma_load(SA, coords=(t.m * BM, at), stage=s, barrier=full)
            if FIRST > 0:
                lm.arrive(asked, stage=lm.step(start))
            for k in lm.range(FIRST, whole + 2 * LAST):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = k + (t.k * (KB - whole) if k < whole else 0)
                qa.tma_load(A, coords=(at * 128, t.m * BM), stage=s, barrier=full)
                scale_a.tma_load(SA, coords=(t.m * BM, at), stage=s, barrier=full)

    with math:
        lm.pdl_launch()
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        early = lm.frag(shape=(64, W), dtype=lm.f32, form="acc")
        late = lm.frag(shape=(64, W), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)    # this CTA's columns first
            found = lm.load(SB, coords=(t.n * BN // 128 * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            lm.sync(own)
            for k in lm.range(whole // UNROLL):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    sb = scale_b.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u + t.k * (KB - whole))
                    lm.wait(full, stage=s)
                    lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                    sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                    lm.fence_proxy()                                             # the scales were read by loads: this frees their slot, under the product
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    acc = acc + part * (sa * sb)
            box = lm.step(mail)
            mine = acc.cols(0, W)
            for u in lm.static_range(LAST):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(early, qa[s].rows(64 * math.index, 64), qb[s].rows(0, W), init=True)
                sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=early)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(late, qa[s].rows(64 * math.index, 64), qb[s].rows(0, W), init=True)
                sa2 = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=early)
                if u < SLICES:                                                   # a slice a step: sends are slow to issue, and a product runs
                    inbox.rows(64 * math.index, 64).cols(W // SLICES * u, W // SLICES).send(acc.cols(W + W // SLICES * u, W // SLICES), cta=1 - t.k, barrier=arrived, stage=box)
                sb = scale_b.cols(KMAX * math.index, KMAX).ld(whole + 2 * u)
                sb2 = scale_b.cols(KMAX * math.index, KMAX).ld(whole + 2 * u + 1)
                lm.fence_proxy()
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s.prev())
                lm.arrive(empty, stage=s)
                mine = mine + early * (sa * sb)
                mine = mine + late * (sa2 * sb2)
            lm.wait(arrived, stage=box)
            mine = mine + inbox.rows(64 * math.index, 64).load(form="acc")
            smem_c.rows(64 * math.index, 64).store(lm.cast(mine, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            smem_c.rows(64 * math.index, 64).tma_store(C, coords=(t.n * BN + W * t.k, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)
