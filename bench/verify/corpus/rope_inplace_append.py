@cake.schedule(target=("sm_89", "sm_121a"))
def rope_inplace_append(lm, QKV: LM.gmem3d[LM.bf16, "T", "H3", 128].inout, POS: LM.gmem1d[LM.i32, "T"], COS: LM.gmem2d[LM.f32, "P", 64], SIN: LM.gmem2d[LM.f32, "P", 64], SLOT: LM.gmem1d[LM.i32, "T"],
                        KC: LM.gmem3d[LM.bf16, "SLOTS", "HK", 128], VC: LM.gmem3d[LM.bf16, "SLOTS", "HK", 128], T: LM.i32, HQ: LM.i32, HK: LM.i32, H3: LM.i32, P: LM.i32, SLOTS: LM.i32, *, WARPS=4):
    """Rotates queries where they lie; keys are rotated on their way into the cache, values are copied. A warp a head of a token."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    lm.assume(H3 == HQ + 2 * HK)
    lm.assume_values(POS, 0, P)
    lm.assume_values(SLOT, -1, SLOTS)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(H3, WARPS), T), names=("h", "t"))
    with work:
        for t in lm.tiles(sched):
            h = t.h * WARPS + work.index
            if h < HQ + HK:
                pos = lm.ld(POS, t.t)
                c = lm.load(COS, coords=(0, pos), shape=(64,), form="vec")
                s = lm.load(SIN, coords=(0, pos), shape=(64,), form="vec", like=c)
                lo = lm.cast(lm.load(QKV, coords=(0, h, t.t), shape=(64,), form="vec", like=c), lm.f32)
                hi = lm.cast(lm.load(QKV, coords=(64, h, t.t), shape=(64,), form="vec", like=c), lm.f32)
                a = lm.cast(lo * c - hi * s, lm.bf16)
                b = lm.cast(hi * c + lo * s, lm.bf16)
                if h < HQ:
                    lm.store(QKV, a, coords=(0, h, t.t))
                    lm.store(QKV, b, coords=(64, h, t.t))
                else:
                    slot = lm.ld(SLOT, t.t)
                    if slot >= 0:
                        lm.store(KC, a, coords=(0, h - HQ, slot))
                        lm.store(KC, b, coords=(64, h - HQ, slot))
            elif h < H3:
                slot = lm.ld(SLOT, t.t)
                if slot >= 0:
                    v = lm.load(QKV, coords=(0, h, t.t), shape=(128,), form="vec")
                    lm.store(VC, v, coords=(0, h - HQ - HK, slot))
