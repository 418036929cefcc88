@cake.schedule(target=("sm_80", "sm_90a", "sm_100a", "sm_120a"))
def conv_silu_rounds(lm, U: LM.gmem3d[LM.bf16, "BATCH", "T", "C"], W: LM.gmem2d[LM.f32, 4, "C"].const, BIAS: LM.gmem1d[LM.f32, "C"].const, START: LM.gmem3d[LM.bf16, "BATCH", 3, "C"],
              O: LM.gmem3d[LM.bf16, "BATCH", "T", "C"], LAST: LM.gmem3d[LM.bf16, "BATCH", 3, "C"], BATCH: LM.i32, T: LM.i32, C: LM.i32, *, SPAN=8, WIDE=256):
    """Causal depthwise convolution of width 4 with SiLU, channels last; three rows of history come from START and leave in LAST."""
    lm.launch(grid="tiles")
    lm.assume(T >= 3)
    lm.assume(C % WIDE == 0)
    hands = lm.role(warps=range(0, 1))
    walk = lm.scheduler(kind="grid", tiles=(C // WIDE, lm.cdiv(T, SPAN), BATCH), names=("ch", "span", "seq"))
    with hands:
        for t in lm.tiles(walk):
            c0 = t.ch * WIDE
            w0 = lm.load(W, coords=(c0, 0), shape=(WIDE,), form="vec")
            w1 = lm.load(W, coords=(c0, 1), shape=(WIDE,), form="vec", like=w0)
            w2 = lm.load(W, coords=(c0, 2), shape=(WIDE,), form="vec", like=w0)
            w3 = lm.load(W, coords=(c0, 3), shape=(WIDE,), form="vec", like=w0)
            bias = lm.load(BIAS, coords=(c0,), shape=(WIDE,), form="vec", like=w0)
            begin = t.span * SPAN
            if begin == 0:
                p3 = lm.cast(lm.load(START, coords=(c0, 0, t.seq), shape=(WIDE,), form="vec", like=w0), lm.f32)
                p2 = lm.cast(lm.load(START, coords=(c0, 1, t.seq), shape=(WIDE,), form="vec", like=w0), lm.f32)
                p1 = lm.cast(lm.load(START, coords=(c0, 2, t.seq), shape=(WIDE,), form="vec", like=w0), lm.f32)
            else:
                p3 = lm.cast(lm.load(U, coords=(c0, begin - 3, t.seq), shape=(WIDE,), form="vec", like=w0), lm.f32)
                p2 = lm.cast(lm.load(U, coords=(c0, begin - 2, t.seq), shape=(WIDE,), form="vec", like=w0), lm.f32)
                p1 = lm.cast(lm.load(U, coords=(c0, begin - 1, t.seq), shape=(WIDE,), form="vec", like=w0), lm.f32)
            rows = lm.min(SPAN, T - begin)
            for step in lm.range(rows):
                u = lm.cast(lm.load(U, coords=(c0, begin + step, t.seq), shape=(WIDE,), form="vec", like=w0), lm.f32)
                y = bias + w0 * p3 + w1 * p2 + w2 * p1 + w3 * u
                lm.store(O, lm.cast(lm.silu(y), lm.bf16), coords=(c0, begin + step, t.seq))
                p3 = p2
                p2 = p1
                p1 = u
            if begin + SPAN >= T:
                lm.store(LAST, lm.cast(p3, lm.bf16), coords=(c0, 0, t.seq))
                lm.store(LAST, lm.cast(p2, lm.bf16), coords=(c0, 1, t.seq))
                lm.store(LAST, lm.cast(p1, lm.bf16), coords=(c0, 2, t.seq))
