@cake.schedule(target="sm_89")
def adam_fp8_states(lm, P: LM.gmem2d[LM.f32, "NB", 128].inout, G: LM.gmem2d[LM.bf16, "NB", 128], M: LM.gmem2d[LM.e4m3, "NB", 128].inout, V: LM.gmem2d[LM.e4m3, "NB", 128].inout,
                    SM: LM.gmem1d[LM.f32, "NB"].inout, SV: LM.gmem1d[LM.f32, "NB"].inout, W: LM.gmem2d[LM.bf16, "NB", 128], NB: LM.i32,
                    lr: LM.f32, beta1: LM.f32, beta2: LM.f32, eps: LM.f32, decay: LM.f32, fix1: LM.f32, fix2: LM.f32, *, ROWS=16, WARPS=4):
    """AdamW with moments in e4m3, one scale a block of 128; the master copy is f32 and a bf16 copy goes out. The second moment is kept as its root."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NB, ROWS),), names=("b",))

    with work:
        for t in lm.tiles(sched):
            row = t.b * ROWS
            g16 = lm.load(G, coords=(0, row), shape=(ROWS, 128), form="vec", clip=True, cache="stream")
            g = lm.cast(g16, lm.f32)
            p = lm.load(P, coords=(0, row), shape=(ROWS, 128), form="vec", like=g16, clip=True)
            sm = lm.load(SM, coords=(row,), shape=(ROWS,), form="rowvec", like=g16, clip=True)
            sv = lm.load(SV, coords=(row,), shape=(ROWS,), form="rowvec", like=g16, clip=True)
            m = lm.cast(lm.load(M, coords=(0, row), shape=(ROWS, 128), form="vec", like=g16, clip=True), lm.f32) * sm
            root = lm.cast(lm.load(V, coords=(0, row), shape=(ROWS, 128), form="vec", like=g16, clip=True), lm.f32) * sv
            m = beta1 * m + (1.0 - beta1) * g
            v = beta2 * root * root + (1.0 - beta2) * g * g
            root = lm.sqrt(v)
            p = p - lr * (m * fix1 / (root * fix2 + eps) + decay * p)
            sm = lm.amax_scale(m, axis=1, block=128)
            sv = lm.amax_scale(root, axis=1, block=128)
            lm.store(P, p, coords=(0, row), clip=True)
            lm.store(W, lm.cast(p, lm.bf16), coords=(0, row), clip=True)
            lm.store(M, lm.cast(m * lm.rcp(sm), lm.e4m3), coords=(0, row), clip=True)
            lm.store(V, lm.cast(root * lm.rcp(sv), lm.e4m3), coords=(0, row), clip=True)
            lm.store(SM, sm, coords=(row,), clip=True)
            lm.store(SV, sv, coords=(row,), clip=True)
