@cake.schedule(target=("sm_80", "sm_90a"))
def delta_rule_step(lm, Q: LM.gmem2d[LM.bf16, "QR", 128], K: LM.gmem2d[LM.bf16, "QR", 128], V: LM.gmem2d[LM.bf16, "VR", 128], A: LM.gmem1d[LM.f32, "VR"], BETA: LM.gmem1d[LM.f32, "VR"],
                    SLOT: LM.gmem1d[LM.i32, "BATCH"], POOL: LM.gmem3d[LM.f32, "SR", 128, 128].inout, O: LM.gmem2d[LM.bf16, "VR", 128],
                    BATCH: LM.i32, HV: LM.i32, HK: LM.i32, QR: LM.i32, VR: LM.i32, SR: LM.i32, SLOTS: LM.i32, *, ROWS=64):
    """One token of every sequence through the gated delta rule: state rows (v) by columns (k) in a pool of slots, a slice of rows a CTA; sequences without a slot only get zeros."""
    lm.launch(grid="tiles")
    lm.assume(HK > 0 and HV % HK == 0)
    lm.assume(QR == BATCH * HK and VR == BATCH * HV and SR == SLOTS * HV)
    lm.assume_values(SLOT, -1, SLOTS)
    step = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(128 // ROWS, HV, BATCH), names=("part", "h", "b"))
    with step:
        for t in lm.tiles(sched):
            slot = lm.ld(SLOT, t.b)
            v0 = t.part * ROWS
            head = t.b * HV + t.h
            if slot < 0:
                nothing = lm.load(V, coords=(v0, head), shape=(ROWS,), form="vec")
                lm.store(O, lm.cast(lm.cast(nothing, lm.f32) * 0.0, lm.bf16), coords=(v0, head))
            else:
                s = lm.load(POOL, coords=(0, v0, slot * HV + t.h), shape=(ROWS, 128), form="acc")
                src = t.b * HK + t.h // (HV // HK)
                k = lm.cast(lm.load(K, coords=(0, src), shape=(128,), form="colvec", like=s), lm.f32)
                q = lm.cast(lm.load(Q, coords=(0, src), shape=(128,), form="colvec", like=s), lm.f32)
                v = lm.cast(lm.load(V, coords=(v0, head), shape=(ROWS,), form="rowvec", like=s), lm.f32)
                s = s * lm.ld(A, head)
                seen = lm.sum(s * k, axis=1)
                s = s + ((v - seen) * lm.ld(BETA, head)) * k
                lm.store(POOL, s, coords=(0, v0, slot * HV + t.h))
                lm.store(O, lm.cast(lm.sum(s * q, axis=1), lm.bf16), coords=(v0, head))
