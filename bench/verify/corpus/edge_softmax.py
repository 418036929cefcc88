"""Softmax over the edges of each node, nodes drawn from a counter."""


@cake.schedule(target=("sm_90a", "sm_80"))
def edge_softmax(lm, score: LM.gmem1d[LM.f32, "NNZ"], indptr: LM.gmem1d[LM.i32, "V1"], P: LM.gmem1d[LM.f32, "NNZ"], next: LM.gmem1d[LM.i32, 1], NNZ: LM.i32, V: LM.i32, V1: LM.i32,
                 *, CH=512, WARPS=4):
    """Softmax over the edges that end in a node (graph attention); nodes are drawn from a counter, for their degrees differ by orders of magnitude."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    lm.assume(V1 == V + 1)
    lm.assume_values(indptr, 0, NNZ + 1, sorted=True)
    pool = lm.smem(3 * 128)
    scratch = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2, stage_bytes=128)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="counter", tiles=(V,), names=("v",), counter=next)
    with work:
        for t in lm.tiles(sched):
            lo = lm.ld(indptr, t.v)
            hi = lm.ld(indptr, t.v + 1)
            n = lm.cdiv(hi - lo, CH)
            top = lm.frag(shape=(CH,), dtype=lm.f32, form="vec", init=-lm.inf)
            for i in lm.range(n):
                x = lm.load(score, coords=(lo + i * CH,), shape=(CH,), form="vec", mask=lm.in_bounds(top, hi - lo - i * CH, hi - lo - i * CH), fill=-lm.inf, like=top)
                top = lm.max(top, x)
            peak = lm.reduce(top, "max", axis=None, across=work, scratch=scratch[0], sync=meet)
            acc = lm.frag(shape=(CH,), dtype=lm.f32, form="vec", init=0)
            for i in lm.range(n):
                x = lm.load(score, coords=(lo + i * CH,), shape=(CH,), form="vec", mask=lm.in_bounds(top, hi - lo - i * CH, hi - lo - i * CH), fill=-lm.inf, like=top)
                acc = acc + lm.exp(x - peak)
            total = lm.reduce(acc, "add", axis=None, across=work, scratch=scratch[1], sync=meet)
            for i in lm.range(n):
                inside = lm.in_bounds(top, hi - lo - i * CH, hi - lo - i * CH)
                x = lm.load(score, coords=(lo + i * CH,), shape=(CH,), form="vec", mask=inside, like=top)
                lm.store(P, lm.exp(x - peak) / total, coords=(lo + i * CH,), mask=inside)
