@cake.schedule(target=("sm_80", "sm_89"))
def router_topk_fused(lm, X: LM.gmem2d[LM.bf16, "T", "H"], WG: LM.gmem2d[LM.bf16, 64, "H"], BIAS: LM.gmem1d[LM.f32, 64], WEIGHT: LM.gmem2d[LM.f32, "T", 4], EXPERT: LM.gmem2d[LM.i32, "T", 4],
                      T: LM.i32, H: LM.i32, *, BK=64, STAGES=4, TOP=4):
    """A router: logits of 64 experts, the best four of each token and a softmax over them, in one kernel; a cp.async ring of four slots."""
    lm.launch(grid="tiles")
    lm.assume(H > 0)
    lm.assume(H % 8 == 0)
    bytes = STAGES * 64 * BK * 2
    pool = lm.smem(2 * bytes)
    smem_x = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_w = pool.view(offset=bytes, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 64),), names=("m",))
    kt = lm.cdiv(H, BK)

    with work:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
        for t in lm.tiles(sched):
            for i in lm.static_range(STAGES - 1):
                s = lm.step(ring)
                if i < kt:
                    smem_x.cp_async(X, coords=(i * BK, t.m * 64), stage=s)
                    smem_w.cp_async(WG, coords=(i * BK, 0), stage=s)
                lm.cp_commit()
            for k in lm.range(kt):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(meet)
                s = lm.step(ring)
                if k + STAGES - 1 < kt:
                    smem_x.cp_async(X, coords=((k + STAGES - 1) * BK, t.m * 64), stage=s)
                    smem_w.cp_async(WG, coords=((k + STAGES - 1) * BK, 0), stage=s)
                lm.cp_commit()
                c = s.prev(STAGES - 1)
                a = smem_x[c].ldmatrix(form="a")
                b = smem_w[c].ldmatrix(form="b")
                lm.mma(acc, a, b)
            lm.cp_wait(pending=0)
            logits = acc + lm.load(BIAS, coords=(0,), shape=(64,), form="colvec", like=acc)
            best = lm.topk_list(like=acc, k=TOP, largest=True)
            best = lm.topk(logits, axis=1, base=0, into=best)
            best = lm.finish(best)
            top, where = best[0]
            total = lm.rowvec(like=acc, init=0.0)
            for j in lm.static_range(TOP):
                value, index = best[j]
                total = total + lm.exp(value - top)
            rows = t.m * 64 + lm.iota(acc, 0)
            for j in lm.static_range(TOP):
                value, index = best[j]
                lm.store(WEIGHT, lm.exp(value - top) * lm.rcp(total), coords=(j, rows), mask=rows < T)
                lm.store(EXPERT, index, coords=(j, rows), mask=rows < T)
