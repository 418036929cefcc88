@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def rope_kv_halves(lm, QKV: LM.gmem3d[LM.bf16, "TOKENS", "HEADS", 128], COS: LM.gmem2d[LM.f32, "POSITIONS", 64].const, SIN: LM.gmem2d[LM.f32, "POSITIONS", 64].const,
                POS: LM.gmem1d[LM.i32, "TOKENS"].const, SLOT: LM.gmem1d[LM.i32, "TOKENS"].const,
                QOUT: LM.gmem3d[LM.bf16, "TOKENS", "QH", 128], KC: LM.gmem3d[LM.bf16, "SLOTS", "KH", 128], VC: LM.gmem3d[LM.bf16, "SLOTS", "KH", 128],
                TOKENS: LM.i32, HEADS: LM.i32, QH: LM.i32, KH: LM.i32, POSITIONS: LM.i32, SLOTS: LM.i32):
    """Rotates queries and keys (halves), keys and values go to the slot of their token; a negative slot is skipped. A warp a token and head."""
    lm.launch(grid="tiles")
    lm.assume(HEADS == QH + 2 * KH)
    lm.assume_values(POS, 0, POSITIONS)
    lm.assume_values(SLOT, -1, SLOTS)
    lane_group = lm.role(warps=range(0, 1))
    space = lm.scheduler(kind="grid", tiles=(HEADS, TOKENS), names=("h", "tok"))
    with lane_group:
        for w in lm.tiles(space):
            where = lm.ld(POS, w.tok)
            slot = lm.ld(SLOT, w.tok)
            low = lm.load(QKV, coords=(0, w.h, w.tok), shape=(64,), form="vec")
            high = lm.load(QKV, coords=(64, w.h, w.tok), shape=(64,), form="vec", like=low)
            if w.h < QH + KH:
                c = lm.load(COS, coords=(0, where), shape=(64,), form="vec", like=low)
                s = lm.load(SIN, coords=(0, where), shape=(64,), form="vec", like=low)
                lo = lm.cast(low, lm.f32)
                hi = lm.cast(high, lm.f32)
                r0 = lm.cast(lo * c - hi * s, lm.bf16)
                r1 = lm.cast(hi * c + lo * s, lm.bf16)
                if w.h < QH:
                    lm.store(QOUT, r0, coords=(0, w.h, w.tok))
                    lm.store(QOUT, r1, coords=(64, w.h, w.tok))
                elif slot >= 0:
                    lm.store(KC, r0, coords=(0, w.h - QH, slot))
                    lm.store(KC, r1, coords=(64, w.h - QH, slot))
            elif slot >= 0:
                lm.store(VC, low, coords=(0, w.h - QH - KH, slot))
                lm.store(VC, high, coords=(64, w.h - QH - KH, slot))
