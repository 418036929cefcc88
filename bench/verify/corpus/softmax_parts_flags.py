@cake.schedule(target=("sm_90a", "sm_80"))
def softmax_parts_flags(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", "N"], MX: LM.gmem1d[LM.f32, "R"], SM: LM.gmem1d[LM.f32, "R"], DONE: LM.gmem1d[LM.i32, "R"].zeroed, R: LM.i32, N: LM.i32, *, CHUNK=1024, WARPS=4):
    """Long rows: the first tile of a row makes its maximum and sum, the others wait for them and scale their chunk."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(N > 0)
    pool = lm.smem(2 * WARPS * 4)
    a = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32)
    b = pool.view(offset=WARPS * 4, shape=(WARPS,), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    chunks = lm.cdiv(N, CHUNK)
    sched = lm.scheduler(kind="static", tiles=(chunks + 1, R), names=("c", "r"))
    with work:
        for t in lm.tiles(sched):
            if t.c == 0:
                top = -lm.inf
                total = 0.0
                for c in lm.range(chunks):
                    x = lm.load(X, coords=(c * CHUNK, t.r), shape=(CHUNK,), form="vec", clip=True, fill=-lm.inf)
                    new = lm.max(top, lm.reduce(x, "max", axis=None, across=work, scratch=a, sync=meet))
                    total = total * lm.exp(top - new) + lm.reduce(lm.exp(x - new), "add", axis=None, across=work, scratch=b, sync=meet)
                    top = new
                lm.store(MX, top, coords=(t.r,))
                lm.store(SM, total, coords=(t.r,))
                lm.signal(DONE, t.r, 1)
            else:
                lm.spin(DONE, t.r, 1)
                top = lm.ld(MX, t.r)
                total = lm.ld(SM, t.r)
                x = lm.load(X, coords=((t.c - 1) * CHUNK, t.r), shape=(CHUNK,), form="vec", clip=True)
                lm.store(Y, lm.exp(x - top) * lm.rcp(total), coords=((t.c - 1) * CHUNK, t.r), clip=True)
