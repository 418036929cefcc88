"""Residual addition and RMS in place: each warp owns rows, reads and writes the same place, and counts what it has normalised."""


@cake.schedule(target=("sm_80", "sm_90a", "sm_100a", "sm_121a"))
def residual_inplace(lm, H: LM.gmem2d[LM.bf16, "ROWS", "D"], R: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const, DONE: LM.gmem1d[LM.i32, 1].zeroed,
                     ROWS: LM.i32, eps: LM.f32, *, D=512, WARPS=4):
    """R += H; H = R * rsqrt(mean R^2 + eps) * W; DONE = ROWS."""
    lm.launch(grid="persistent", ctas_per_sm=8)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(ROWS, WARPS),), names=("r",))
    with work:
        w = lm.cast(lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep"), lm.f32)
        rows = 0
        for t in lm.tiles(sched):
            row = t.r * WARPS + work.index
            if row < ROWS:
                sum_ = lm.cast(lm.load(H, coords=(0, row), shape=(D,), form="vec"), lm.f32) + lm.cast(lm.load(R, coords=(0, row), shape=(D,), form="vec"), lm.f32)
                lm.store(R, lm.cast(sum_, lm.bf16), coords=(0, row))
                back = lm.cast(lm.cast(sum_, lm.bf16), lm.f32)
                scale = lm.rsqrt(lm.reduce(back * back, "add") * (1.0 / D) + eps)
                lm.store(H, lm.cast(back * scale * w, lm.bf16), coords=(0, row))
                rows = rows + 1
        lm.atomic(DONE, rows, coords=(0,), op="add")
