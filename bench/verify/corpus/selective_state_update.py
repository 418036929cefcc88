@cake.schedule(target="sm_80")
def selective_state_update(lm, STATE: LM.gmem4d[LM.f32, "SLOTS", "H", 64, 128].inout, X: LM.gmem3d[LM.bf16, "B", "H", 64], Z: LM.gmem3d[LM.bf16, "B", "H", 64], DT: LM.gmem1d[LM.f32, "BH"], BIAS: LM.gmem1d[LM.f32, "H"],
                           A: LM.gmem1d[LM.f32, "H"], D: LM.gmem1d[LM.f32, "H"], BC: LM.gmem2d[LM.bf16, "B", 256], SLOT: LM.gmem1d[LM.i32, "B"], Y: LM.gmem3d[LM.bf16, "B", "H", 64],
                           B: LM.i32, H: LM.i32, BH: LM.i32, SLOTS: LM.i32, *, WARPS=4):
    """One decoded token of a Mamba-2 layer: the state decays, takes x B in and is read out through C; a CTA a head of a sequence."""
    lm.launch(grid="tiles")
    lm.assume(BH == B * H)
    lm.assume_values(SLOT, -1, SLOTS)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(H, B), names=("h", "b"))
    with work:
        for t in lm.tiles(sched):
            slot = lm.ld(SLOT, t.b)
            if slot >= 0:
                raw = lm.ld(DT, t.b * H + t.h) + lm.ld(BIAS, t.h)
                a, d = lm.ld(A, t.h), lm.ld(D, t.h)
                st = lm.load(STATE, coords=(0, 0, t.h, slot), shape=(64, 128), form="acc")
                x = lm.cast(lm.load(X, coords=(0, t.h, t.b), shape=(64,), form="rowvec", like=st), lm.f32)
                z = lm.cast(lm.load(Z, coords=(0, t.h, t.b), shape=(64,), form="rowvec", like=st), lm.f32)
                b = lm.cast(lm.load(BC, coords=(0, t.b), shape=(128,), form="colvec", like=st), lm.f32)
                c = lm.cast(lm.load(BC, coords=(128, t.b), shape=(128,), form="colvec", like=st), lm.f32)
                dt = lm.log(1 + lm.exp(x * 0 + raw))
                st = st * lm.exp(dt * a) + (dt * x) * b
                lm.store(STATE, st, coords=(0, 0, t.h, slot))
                y = lm.sum(st * c, axis=1) + d * x
                lm.store(Y, lm.cast(y * lm.silu(z), lm.bf16), coords=(0, t.h, t.b))
