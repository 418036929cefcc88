"""Cross entropy of long rows of logits: one pass over chunks keeps a running maximum and sum, the target's logit is fetched by itself."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a"))
def cross_entropy(lm, X: LM.gmem2d[LM.bf16, "ROWS", "V"], FLAT: LM.gmem1d[LM.bf16], T: LM.gmem1d[LM.i32, "ROWS"], LOSS: LM.gmem1d[LM.f32, "ROWS"], ROWS: LM.i32, V: LM.i32,
                  *, BLOCK=512, STAGES=2, WARPS=4):
    """LOSS[r] = log(sum(exp(X[r]))) - X[r, T[r]]; FLAT is X as one row."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    lm.assume(V % 8 == 0 and V > 0)
    lm.assume_values(T, 0, V)
    pool = lm.smem(2 * WARPS * 4 * 2)
    tops = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    sums = pool.view(offset=2 * WARPS * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    turn = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    log2e = 1.4426950408889634

    with work:
        for t in lm.tiles(sched):
            start = lm.frag(shape=(BLOCK,), dtype=lm.bf16, form="vec", init=-1e30)
            top = lm.cast(start, lm.f32)
            total = top * 0.0
            for c in lm.range(lm.cdiv(V, BLOCK)):
                x = lm.cast(lm.load(X, coords=(c * BLOCK, t.r), shape=(BLOCK,), form="vec", clip=True, fill=-1e30, cache="stream"), lm.f32)
                most = lm.max(top, x)
                total = total * lm.exp2((top - most) * log2e) + lm.exp2((x - most) * log2e)
                top = most
            s = lm.step(turn)
            m = lm.reduce(top, "max", across=work, scratch=tops[s], sync=meet)
            z = lm.reduce(total * lm.exp2((top - m) * log2e), "add", across=work, scratch=sums[s], sync=meet)
            hit = lm.cast(lm.ld(FLAT, t.r * V + lm.ld(T, t.r)), lm.f32)
            lm.store(LOSS, lm.log(z) + m - hit, coords=(t.r,))
