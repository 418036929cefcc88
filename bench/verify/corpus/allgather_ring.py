"""Keys pass round a cluster: each CTA holds a quarter of them and sends it on to its neighbour until every CTA has seen all."""


@cake.schedule(target="sm_90a")
def allgather_ring(lm, X: LM.gmem2d[LM.f32, "N", 64], Y: LM.gmem3d[LM.f32, "P", "N", 64], N: LM.i32, P: LM.i32, *, PARTS=4):
    """Y[p, i] = sum over the parts q, in the order in which they come past CTA p, of X[64 q + i % 64 ..]; N is a multiple of 64 PARTS."""
    lm.launch(grid="persistent", cluster=(PARTS, 1))
    lm.assume(P == PARTS and N % (64 * PARTS) == 0)
    pool = lm.smem(2 * 64 * 64 * 4)
    box = pool.view(offset=0, shape=(64, 64), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx", scope="cluster")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="warp", scope="cluster", primed=True)
    sched = lm.scheduler(kind="static", tiles=(PARTS, N // (64 * PARTS)), names=("p", "b"), cluster=(PARTS, 1))

    with work:
        for t in lm.tiles(sched):
            mine = lm.load(X, coords=(0, (t.b * PARTS + t.p) * 64), shape=(64, 64), form="vec")
            total = mine * 1.0
            for h in lm.range(PARTS - 1):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                box.send(mine, cta=(lm.cta_rank() + 1) % PARTS, barrier=full, stage=s)
                lm.wait(full, stage=s)
                mine = box[s].load(form="vec", like=mine)
                lm.arrive(empty, stage=s)
                total = total + mine
            lm.store(Y, total, coords=(0, (t.b * PARTS + t.p) * 64, t.p))
