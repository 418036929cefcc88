@cake.schedule(target=("sm_90a", "sm_100a"))
def groupnorm_nhwc_cluster(lm, X: LM.gmem3d[LM.bf16, "NB", "P", "C"], GAMMA: LM.gmem1d[LM.f32, "C"], BETA: LM.gmem1d[LM.f32, "C"], Y: LM.gmem3d[LM.bf16, "NB", "P", "C"], NB: LM.i32, P: LM.i32, C: LM.i32, eps: LM.f32, *,
                           G=64, ROWS=32, WARPS=4):
    """Group norm over NHWC: the pixels of a picture are shared by a cluster of four, which send each other their sums."""
    lm.launch(grid="tiles", cluster=(4, 1))
    lm.assume(C % G == 0 and P > 0)
    pool = lm.smem(256)
    sums = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    box = pool.view(offset=128, shape=(4, 4), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    inbox = lm.pipeline(stages=1)
    got = lm.barrier(pipeline=inbox, prod=[work], cons=[work], arrive="tx", scope="cluster")
    part = lm.cdiv(P, 4)
    sched = lm.scheduler(kind="grid", tiles=(4, C // G, NB), names=("q", "g", "b"))
    with work:
        for t in lm.tiles(sched):
            lo = t.q * part
            hi = lm.min(P, lo + part)
            s1 = 0.0
            s2 = 0.0
            for i in lm.range(lm.cdiv(hi - lo, ROWS)):
                x = lm.cast(lm.load(X, coords=(t.g * G, lo + i * ROWS, t.b), shape=(ROWS, G), form="vec", clip=True), lm.f32)
                x = lm.where(lm.in_bounds(x, hi - lo - i * ROWS, G), x, 0.0)
                s1 = s1 + lm.reduce(x, "add", axis=None, across=work, scratch=sums[0], sync=meet)
                s2 = s2 + lm.reduce(x * x, "add", axis=None, across=work, scratch=sums[1], sync=meet)
            rank = lm.cta_rank("q")
            two = lm.frag(shape=(1, 4), dtype=lm.f32, form="vec", init=0.0)
            mine = lm.where(lm.iota(two, 1) == 0, s1, s2)
            o = lm.step(inbox)
            for c in lm.static_range(4):
                box.rows(rank, 1).send(mine, cta=c, barrier=got, stage=o)
            lm.wait(got, stage=o)
            a = box.ld(0) + box.ld(4) + box.ld(8) + box.ld(12)
            q = box.ld(1) + box.ld(5) + box.ld(9) + box.ld(13)
            n = lm.cast(P * G, lm.f32)
            mean = a / n
            rstd = lm.rsqrt(q / n - mean * mean + eps)
            for i in lm.range(lm.cdiv(hi - lo, ROWS)):
                row = lo + i * ROWS
                x = lm.cast(lm.load(X, coords=(t.g * G, row, t.b), shape=(ROWS, G), form="vec", clip=True), lm.f32)
                gamma = lm.load(GAMMA, coords=(t.g * G + lm.iota(x, 1),), shape=(ROWS, G), form="vec", like=x)
                beta = lm.load(BETA, coords=(t.g * G + lm.iota(x, 1),), shape=(ROWS, G), form="vec", like=x)
                lm.store(Y, lm.cast((x - mean) * rstd * gamma + beta, lm.bf16), coords=(t.g * G, row, t.b), mask=lm.in_bounds(x, hi - row, G))
