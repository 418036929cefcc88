@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def dropout_hash_residual(lm, X: LM.gmem1d[LM.bf16, "N"], R: LM.gmem1d[LM.bf16, "N"], Y: LM.gmem1d[LM.bf16, "N"], KEPT: LM.gmem1d[LM.i32, 1].zeroed, N: LM.i32, seed: LM.u32, threshold: LM.u32, scale: LM.f32, *, BLOCK=2048, WARPS=8):
    """y = r + dropout(x): bits come from a hash of the element's number, so that the backward pass makes them again. Counts what was kept."""
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, BLOCK),), names=("b",))
    with work:
        for t in lm.tiles(sched):
            at = t.b * BLOCK + work.index * (BLOCK // WARPS)
            x = lm.load(X, coords=(at,), shape=(BLOCK // WARPS,), form="vec", clip=True)
            r = lm.load(R, coords=(at,), shape=(BLOCK // WARPS,), form="vec", clip=True)
            i = lm.iota(x, 0, base=at)
            h = lm.cast(i, lm.u32) ^ seed
            h = (h ^ (h >> 16)) * 0x7feb352d
            h = (h ^ (h >> 15)) * 0x846ca68b
            h = h ^ (h >> 16)
            keep = h >= threshold
            lm.store(Y, lm.cast(lm.cast(r, lm.f32) + lm.where(keep, lm.cast(x, lm.f32) * scale, 0), lm.bf16), coords=(at,), clip=True)
            n = lm.sum(lm.where(keep and i < N, 1, 0), axis=0)
            lm.atomic(KEPT, n, coords=(0,))
