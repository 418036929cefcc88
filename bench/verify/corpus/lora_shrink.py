"""Punica's bgmv shrink: y[t] = A[index[t]] x[t], a warp a row of A; tokens without an adapter (-1) give zeros."""


@cake.schedule(target=("sm_80", "sm_90a"))
def lora_shrink(lm, X: LM.gmem2d[LM.bf16, "T", "D"], A: LM.gmem3d[LM.bf16, "NL", "R", "D"], INDEX: LM.gmem1d[LM.i32, "T"], Y: LM.gmem2d[LM.f32, "T", "R"],
                T: LM.i32, NL: LM.i32, R: LM.i32, scale: LM.f32, *, D=1024, WARPS=4):
    """Punica's bgmv shrink: y[t] = A[index[t]] x[t], a warp a row of A; tokens without an adapter (-1) give zeros."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="static", tiles=(T, lm.cdiv(R, WARPS)), names=("t", "r"))
    with work:
        for t in lm.tiles(sched):
            r = t.r * WARPS + work.index
            i = lm.ld(INDEX, t.t)
            if r < R:
                if i >= 0 and i < NL:
                    x = lm.load(X, coords=(0, t.t), shape=(D,), form="vec")
                    a = lm.load(A, coords=(0, r, i), shape=(D,), form="vec", cache="stream")
                    y = lm.reduce(lm.cast(x, lm.f32) * lm.cast(a, lm.f32), "add", axis=1)
                    lm.store(Y, y * scale, coords=(r, t.t))
                else:
                    lm.store(Y, 0.0, coords=(r, t.t))
