@cake.schedule(target=("sm_80", "sm_89"))
def conv_three_taps(lm, X: LM.gmem2d[LM.f16, "T", "CI"], W: LM.gmem3d[LM.f16, 3, "CO", "CI"], Y: LM.gmem2d[LM.f16, "T", "CO"], T: LM.i32, CI: LM.i32, CO: LM.i32, *, BK=32, STAGES=3):
    """A convolution of three taps along time as three shifted products into one accumulator; rows in front of the first and behind the last are zeros."""
    lm.launch(grid="tiles")
    lm.assume(CI % BK == 0 and CO % 8 == 0 and CI > 0 and T > 0)
    pool = lm.smem(STAGES * (64 + 64) * BK * 2)
    xs = pool.view(offset=0, shape=(64, BK), dtype=lm.f16, stage=STAGES, swizzle="64b")
    ws = pool.view(offset=STAGES * 64 * BK * 2, shape=(64, BK), dtype=lm.f16, stage=STAGES, swizzle="64b")
    team = lm.role(warps=range(0, 4))
    all_ = lm.named_barrier(team)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 64), lm.cdiv(CO, 64)))
    slices = CI // BK
    with team:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            for i in lm.static_range(STAGES - 1):
                s = lm.step(ring)
                if i < 3 * slices:
                    tap, c = i // slices, i % slices
                    at = lm.iota(acc, axis=0, base=t.m * 64 - 1) + tap
                    xs.cp_async_rows(X, rows=at, coords=(c * BK, 0), stage=s)
                    ws.cp_async(W, coords=(c * BK, t.n * 64, tap), stage=s)
                lm.cp_commit()
            for i in lm.range(3 * slices):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(all_)
                s = lm.step(ring)
                nxt = i + STAGES - 1
                if nxt < 3 * slices:
                    tap, c = nxt // slices, nxt % slices
                    at = lm.iota(acc, axis=0, base=t.m * 64 - 1) + tap
                    xs.cp_async_rows(X, rows=at, coords=(c * BK, 0), stage=s)
                    ws.cp_async(W, coords=(c * BK, t.n * 64, tap), stage=s)
                lm.cp_commit()
                r = s.prev(STAGES - 1)
                for kk in lm.static_range(BK // 16):
                    lm.mma(acc, xs[r].cols(16 * kk, 16).ldmatrix(form="a", like=acc), ws[r].cols(16 * kk, 16).ldmatrix(form="b", like=acc))
            lm.cp_wait(pending=0)
            lm.store(Y, lm.cast(acc, lm.f16), coords=(t.n * 64, t.m * 64), clip=True)
