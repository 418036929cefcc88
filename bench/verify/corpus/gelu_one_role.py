"""Elementwise kernel in which one role fetches for itself: it fills the ring STAGES - 1 tiles ahead and needs no empty barrier."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def gelu_one_role(lm, X: LM.tma2d[LM.bf16, "M", "N"], Y: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, *, STAGES=3):
    """Y = gelu(X); a CTA walks along 64 rows in tiles of 64 columns and updates each tile in place."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(N % 8 == 0)
    pool = lm.smem(STAGES * 64 * 64 * 2)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64),), names=("m",))
    nt = lm.cdiv(N, 64)

    with work:
        for t in lm.tiles(sched):
            for i in lm.static_range(STAGES - 1):
                s = lm.step(ring)
                if i < nt:
                    tile.tma_load(X, coords=(i * 64, t.m * 64), stage=s, barrier=full)
            for i in lm.range(nt):
                w = lm.step(ring)
                r = w.prev(STAGES - 1)
                lm.wait(full, stage=r)
                x = tile[r].load(form="vec")
                y = lm.cast(lm.gelu(lm.cast(x, lm.f32)), lm.bf16)
                tile[r].store(y)
                lm.fence_proxy()
                lm.sync(cta)
                tile[r].tma_store(Y, coords=(i * 64, t.m * 64))
                if i + STAGES - 1 < nt:
                    lm.store_wait(pending=1)                   # tile i - 1 has left slot w
                    tile.tma_load(X, coords=((i + STAGES - 1) * 64, t.m * 64), stage=w, barrier=full)
        lm.store_wait(pending=0)
