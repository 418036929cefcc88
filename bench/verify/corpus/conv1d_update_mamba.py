@cake.schedule(target=("sm_80", "sm_90a"))
def conv1d_update_mamba(lm, X: LM.gmem2d[LM.bf16, "B", "D"], STATE: LM.gmem3d[LM.bf16, "SLOTS", 3, "D"].inout, SLOT: LM.gmem1d[LM.i32, "B"], WT: LM.gmem2d[LM.f32, 4, "D"], BIAS: LM.gmem1d[LM.f32, "D"],
                        Y: LM.gmem2d[LM.bf16, "B", "D"], B: LM.i32, SLOTS: LM.i32, D: LM.i32, *, WARPS=4):
    """Decode step of a causal convolution of four taps: three old inputs a channel lie in the request's slot and move up by one."""
    lm.launch(grid="tiles")
    chunk = WARPS * 256
    lm.assume_values(SLOT, 0, SLOTS)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(D, chunk), B), names=("d", "b"))
    with work:
        for t in lm.tiles(sched):
            slot = lm.ld(SLOT, t.b)
            d = t.d * chunk
            x = lm.load(X, coords=(d, t.b), shape=(chunk,), form="vec", clip=True)
            s0 = lm.load(STATE, coords=(d, 0, slot), shape=(chunk,), form="vec", like=x, clip=True)
            s1 = lm.load(STATE, coords=(d, 1, slot), shape=(chunk,), form="vec", like=x, clip=True)
            s2 = lm.load(STATE, coords=(d, 2, slot), shape=(chunk,), form="vec", like=x, clip=True)
            w0 = lm.load(WT, coords=(d, 0), shape=(chunk,), form="vec", like=x, clip=True)
            w1 = lm.load(WT, coords=(d, 1), shape=(chunk,), form="vec", like=x, clip=True)
            w2 = lm.load(WT, coords=(d, 2), shape=(chunk,), form="vec", like=x, clip=True)
            w3 = lm.load(WT, coords=(d, 3), shape=(chunk,), form="vec", like=x, clip=True)
            bias = lm.load(BIAS, coords=(d,), shape=(chunk,), form="vec", like=x, clip=True)
            y = bias + lm.cast(s0, lm.f32) * w0 + lm.cast(s1, lm.f32) * w1 + lm.cast(s2, lm.f32) * w2 + lm.cast(x, lm.f32) * w3
            lm.store(Y, lm.cast(lm.silu(y), lm.bf16), coords=(d, t.b), clip=True)
            lm.store(STATE, s1, coords=(d, 0, slot), clip=True)
            lm.store(STATE, s2, coords=(d, 1, slot), clip=True)
            lm.store(STATE, x, coords=(d, 2, slot), clip=True)
