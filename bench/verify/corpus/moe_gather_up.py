"""First layer of a mixture of experts: rows are gathered by token number with cp.async, each expert has a padded block of them, some empty."""


@cake.schedule(target=("sm_80", "sm_89", "sm_120a"))
def moe_gather_up(lm, X: LM.gmem2d[LM.bf16, "T", "K"], W: LM.gmem3d[LM.bf16, "E", "N", "K"], TOKEN: LM.gmem2d[LM.i32, "E", "CAP"].const,
                  COUNT: LM.gmem1d[LM.i32, "E"].const, H: LM.gmem3d[LM.bf16, "E", "CAP", "N"],
                  T: LM.i32, K: LM.i32, N: LM.i32, E: LM.i32, CAP: LM.i32, *, BM=32, BN=64, BK=32, STAGES=3):
    """H[e, i] = relu(X[TOKEN[e, i]] W[e]^T) for i < COUNT[e]."""
    lm.launch(grid="tiles")
    lm.assume(K > 0 and T > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0 and CAP % BM == 0)
    lm.assume_values(COUNT, 0, CAP + 1)
    lm.assume_values(TOKEN, 0, T)
    x_bytes, w_bytes = STAGES * BM * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(x_bytes + w_bytes + BM * 4)
    sx = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    sw = pool.view(offset=x_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    rows = pool.view(offset=x_bytes + w_bytes, shape=(BM,), dtype=lm.i32)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=STAGES)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(CAP // BM, lm.cdiv(N, BN), E), names=("m", "n", "e"))
    kt = lm.cdiv(K, BK)

    with work:
        for t in lm.tiles(sched):
            n = lm.ld(COUNT, t.e)
            if t.m * BM < n:
                acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
                at = lm.load(TOKEN, coords=(t.m * BM, t.e), shape=(BM,), form="vec")
                rows.store(lm.where(lm.iota(at, axis=0, base=t.m * BM) < n, at, -1))
                lm.sync(cta)
                for p in lm.static_range(STAGES - 1):
                    s = lm.step(ring)
                    if p < kt:
                        sx.cp_async_rows(X, rows=rows, coords=(p * BK, 0), stage=s)
                        sw.cp_async(W, coords=(p * BK, t.n * BN, t.e), stage=s)
                    lm.cp_commit()
                for k in lm.range(kt):
                    lm.cp_wait(pending=STAGES - 2)
                    lm.sync(cta)
                    s = lm.step(ring)
                    if k + STAGES - 1 < kt:
                        sx.cp_async_rows(X, rows=rows, coords=((k + STAGES - 1) * BK, 0), stage=s)
                        sw.cp_async(W, coords=((k + STAGES - 1) * BK, t.n * BN, t.e), stage=s)
                    lm.cp_commit()
                    now = s.prev(STAGES - 1)
                    for kk in lm.static_range(BK // 16):
                        a = sx[now].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                        b = sw[now].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                        lm.mma(acc, a, b)
                lm.cp_wait(pending=0)
                y = lm.cast(lm.max(acc, 0.0), lm.bf16)
                inside = lm.in_bounds(acc, n - t.m * BM, N - t.n * BN)
                lm.store(H, y, coords=(t.n * BN, t.m * BM, t.e), mask=inside)
