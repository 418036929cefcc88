"""LayerNorm of short rows, one warp a row: eight members share nothing and never meet."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def layernorm_short_rows(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], G: LM.gmem1d[LM.f32, "D"].const, B: LM.gmem1d[LM.f32, "D"].const,
                         Y: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32, eps: LM.f32, *, D=256):
    """Y = (X - mean) / std * G + B; a tile is eight rows."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    work = lm.role(warps=range(0, 8), members=8)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(ROWS, 8),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            row = t.m * 8 + work.index
            if row < ROWS:
                x = lm.cast(lm.load(X, coords=(0, row), shape=(D,)), lm.f32)
                g = lm.load(G, coords=(0,), shape=(D,), like=x, cache="keep")
                b = lm.load(B, coords=(0,), shape=(D,), like=x, cache="keep")
                mean = lm.reduce(x, "add") * (1.0 / D)
                d = x - mean
                var = lm.reduce(d * d, "add") * (1.0 / D)
                lm.store(Y, lm.cast(d * lm.rsqrt(var + eps) * g + b, lm.bf16), coords=(0, row))
