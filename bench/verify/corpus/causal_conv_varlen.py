@cake.schedule(target=("sm_120a", "sm_89"))
def causal_conv_varlen(lm, X: LM.gmem2d[LM.bf16, "T", "D"], START: LM.gmem1d[LM.i32, "T"], WT: LM.gmem1d[LM.f32, "D4"], Y: LM.gmem2d[LM.bf16, "T", "D"], T: LM.i32, D: LM.i32, D4: LM.i32, *, ROWS=16, COLS=128, WARPS=4):
    """Causal convolution of four taps over packed sequences: a tap does not reach in front of the first token of its sequence."""
    lm.launch(grid="tiles")
    lm.assume(D4 == 4 * D)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(D, COLS), lm.cdiv(T, ROWS)), names=("d", "r"))
    with work:
        for t in lm.tiles(sched):
            d, r = t.d * COLS, t.r * ROWS
            like = lm.frag(shape=(ROWS, COLS), dtype=lm.f32, form="vec", init=0.0)
            start = lm.load(START, coords=(r,), shape=(ROWS,), form="rowvec", like=like, clip=True)
            y = like
            for i in lm.static_range(4):
                row = r + lm.iota(like, 0) - i
                x = lm.load(X, coords=(d, r - i), shape=(ROWS, COLS), form="vec", like=like, mask=row >= start and row >= 0 and row < T and d + lm.iota(like, 1) < D)
                w = lm.load(WT, coords=((3 - i) * D + d + lm.iota(like, 1),), shape=(ROWS, COLS), form="vec", like=like, mask=d + lm.iota(like, 1) < D)
                y = y + lm.cast(x, lm.f32) * w
            lm.store(Y, lm.cast(lm.silu(y), lm.bf16), coords=(d, r), clip=True)
