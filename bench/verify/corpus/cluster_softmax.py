"""Softmax of long rows, a cluster a row: each CTA keeps its quarter in registers and sends its maximum and its sum to all of them."""


@cake.schedule(target="sm_90a")
def cluster_softmax(lm, X: LM.gmem2d[LM.f32, "R", "V"], Y: LM.gmem2d[LM.bf16, "R", "V"], R: LM.i32, *, V=8192, CTAS=4):
    """Softmax of long rows, a cluster a row: each CTA keeps its quarter in registers and sends its maximum and its sum to all of them."""
    W = V // CTAS
    lm.launch(grid="persistent", cluster=(CTAS, 1))
    pool = lm.smem(4096)
    tops = pool.view(offset=0, shape=(CTAS, 4), dtype=lm.f32, stage=2)
    sums = pool.view(offset=256, shape=(CTAS, 4), dtype=lm.f32, stage=2)
    red = pool.view(offset=512, shape=(4,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    got = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx", scope="cluster")
    free = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="member", scope="cluster", primed=True)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(CTAS, R), names=("q", "r"), cluster=(CTAS, 1))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.q * W, t.r), shape=(W,), form="vec")
            m = lm.reduce(x, "max", axis=None, across=work, scratch=red, sync=meet)
            lm.sync(meet)
            p = lm.exp(x - m)
            d = lm.reduce(p, "add", axis=None, across=work, scratch=red, sync=meet)
            lm.sync(meet)
            s = lm.step(ring)
            lm.wait(free, stage=s)
            mv = lm.frag(shape=(4,), dtype=lm.f32, form="vec", init=0.0) + m
            dv = lm.frag(shape=(4,), dtype=lm.f32, form="vec", init=0.0) + d
            for c in lm.static_range(CTAS):
                tops[s].rows(t.q, 1).send(mv, cta=c, barrier=got, stage=s)
                sums[s].rows(t.q, 1).send(dv, cta=c, barrier=got, stage=s)
            lm.wait(got, stage=s)
            top = -lm.inf
            for c in lm.static_range(CTAS):
                top = lm.max(top, tops[s].ld(4 * c))
            total = 0.0
            for c in lm.static_range(CTAS):
                total = total + sums[s].ld(4 * c) * lm.exp(tops[s].ld(4 * c) - top)
            lm.arrive(free, stage=s)
            lm.store(Y, lm.cast(p * (lm.exp(m - top) * lm.rcp(total)), lm.bf16), coords=(t.q * W, t.r))
