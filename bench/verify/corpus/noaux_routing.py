"""DeepSeek-V3's routing without groups: sigmoid scores, chosen by score + bias, weights are the unbiased scores of the chosen, normalised."""


@cake.schedule(target=("sm_80", "sm_90a"))
def noaux_routing(lm, LOGITS: LM.gmem2d[LM.bf16, "T", "E"], BIAS: LM.gmem1d[LM.f32, "E"], W: LM.gmem2d[LM.f32, "T", "K"], IDX: LM.gmem2d[LM.i32, "T", "K"],
                  T: LM.i32, scale: LM.f32, *, E=128, K=8):
    """DeepSeek-V3's routing without groups: sigmoid scores, chosen by score + bias, weights are the unbiased scores of the chosen, normalised."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(T, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(LOGITS, coords=(0, t.m * 64), shape=(64, E), form="acc", clip=True), lm.f32)
            score = lm.sigmoid(x)
            bias = lm.load(BIAS, coords=(0,), shape=(E,), form="colvec", like=score)
            best = lm.topk_list(score, K, largest=True)
            best = lm.finish(lm.topk(score + bias, axis=1, base=0, into=best))
            row = lm.iota(score, 0, base=t.m * 64)
            col = lm.iota(score, 1)
            total = lm.rowvec(score, init=0.0)
            for k in lm.static_range(K):
                v = best[k]
                total = total + lm.sum(lm.where(col == v[1], score, 0.0), axis=1)
            for k in lm.static_range(K):
                v = best[k]
                s = lm.sum(lm.where(col == v[1], score, 0.0), axis=1)
                lm.store(W, s * lm.rcp(total) * scale, coords=(k, row), clip=True)
                lm.store(IDX, v[1], coords=(k, row), clip=True)
