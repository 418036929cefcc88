@cake.schedule(target=("sm_100a", "sm_103a"))
def nvfp4_quant_rows(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], GLOBAL: LM.gmem1d[LM.f32, 1].const, Q: LM.gmem2d[LM.e2m1, "ROWS", "D"], S: LM.gmem2d[LM.e4m3, "ROWS", "DS"], ROWS: LM.i32, *, D=1024, DS=64, WARPS=4):
    """nvfp4: sixteen elements share an e4m3 scale, which a scale of the whole tensor brings into range."""
    lm.launch(grid="persistent", ctas_per_sm=8)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(ROWS, WARPS),), names=("g",))
    with work:
        lm.pdl_wait()
        g = lm.ld(GLOBAL, 0)
        for t in lm.tiles(sched):
            r = t.g * WARPS + work.index
            if r < ROWS:
                for c in lm.static_range(D // 512):
                    x = lm.cast(lm.load(X, coords=(c * 512, r), shape=(512,), form="vec"), lm.f32)
                    s = lm.cast(lm.amax_scale(x, axis=1, block=16, dtype=lm.e4m3) * (448.0 / 6.0) * g, lm.e4m3)
                    back = lm.cast(s, lm.f32)
                    inv = lm.where(back > 0, g * lm.rcp(lm.max(back, 1e-30)), 0)
                    lm.store(Q, lm.cast(x * inv, lm.e2m1), coords=(c * 512, r))
                    lm.store(S, s, coords=(c * 32, r))
