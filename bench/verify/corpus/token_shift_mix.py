@cake.schedule(target=("sm_80", "sm_90a"))
def token_shift_mix(lm, X: LM.gmem2d[LM.bf16, "T", "D"], LAST: LM.gmem2d[LM.bf16, "B", "D"], SEQ: LM.gmem1d[LM.i32, "T"], START: LM.gmem1d[LM.i32, "B"], MU: LM.gmem2d[LM.f32, 3, "D"].const, R: LM.gmem2d[LM.bf16, "T", "D"], K: LM.gmem2d[LM.bf16, "T", "D"],
                    V: LM.gmem2d[LM.bf16, "T", "D"], T: LM.i32, B: LM.i32, *, D=1024, WARPS=4):
    """RWKV: what enters r, k and v is a token mixed with the one before it; before the first one stands what the sequence's state kept."""
    lm.launch(grid="tiles")
    lm.assume_values(SEQ, 0, B)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for i in lm.tiles(sched):
            seq = lm.ld(SEQ, i.t)
            x = lm.cast(lm.load(X, coords=(0, i.t), shape=(D,), form="vec"), lm.f32)
            before = lm.frag(shape=(D,), dtype=lm.f32, form="vec", like=x)
            if i.t == lm.ld(START, seq):
                before = lm.cast(lm.load(LAST, coords=(0, seq), shape=(D,), form="vec"), lm.f32)
            elif i.t > 0:
                before = lm.cast(lm.load(X, coords=(0, i.t - 1), shape=(D,), form="vec"), lm.f32)
            else:
                before = x * 0
            delta = before - x
            lm.store(R, lm.cast(x + delta * lm.load(MU, coords=(0, 0), shape=(D,), form="vec", like=x), lm.bf16), coords=(0, i.t))
            lm.store(K, lm.cast(x + delta * lm.load(MU, coords=(0, 1), shape=(D,), form="vec", like=x), lm.bf16), coords=(0, i.t))
            lm.store(V, lm.cast(x + delta * lm.load(MU, coords=(0, 2), shape=(D,), form="vec", like=x), lm.bf16), coords=(0, i.t))
