@cake.schedule(target="sm_89")
def rope_qk_fp8_cache(lm, qkv: LM.gmem2d[LM.bf16, "T", "W"], cos_sin: LM.gmem2d[LM.f32, "POS", "D"].const, pos: LM.gmem1d[LM.i32, "T"], slot: LM.gmem1d[LM.i32, "T"],
                      q_out: LM.gmem2d[LM.bf16, "T", "QW"], k_cache: LM.gmem2d[LM.e4m3, "SLOTS", "KW"], v_cache: LM.gmem2d[LM.e4m3, "SLOTS", "KW"],
                      T: LM.i32, W: LM.i32, POS: LM.i32, QW: LM.i32, SLOTS: LM.i32, KW: LM.i32, NQ: LM.i32, NK: LM.i32, k_inv: LM.f32, v_inv: LM.f32, *, D=64, TOKS=32):
    """NeoX rotation of q and k by positions from memory, q back to a dense tensor, k and v quantised into the slots of a cache; a slot of -1 is padding."""
    lm.launch(grid="tiles")
    lm.assume(QW == NQ * D)
    lm.assume(KW == NK * D)
    lm.assume(W == QW + 2 * KW)
    lm.assume(NQ > 0 and NK > 0)
    lm.assume_values(pos, 0, POS)
    lm.assume_values(slot, -1, SLOTS)
    w = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, TOKS), NQ + 2 * NK), names=("tb", "head"))
    with w:
        for t in lm.tiles(sched):
            lo = lm.cast(lm.load(qkv, coords=(t.head * D, t.tb * TOKS), shape=(TOKS, D // 2), form="vec", clip=True), lm.f32)
            hi = lm.cast(lm.load(qkv, coords=(t.head * D + D // 2, t.tb * TOKS), shape=(TOKS, D // 2), form="vec", clip=True), lm.f32)
            row = lm.iota(lo, 0, base=t.tb * TOKS)
            p = lm.load(pos, coords=(t.tb * TOKS,), shape=(TOKS,), form="rowvec", like=lo, clip=True)
            dst = lm.load(slot, coords=(t.tb * TOKS,), shape=(TOKS,), form="rowvec", like=lo, clip=True, fill=-1)
            if t.head < NQ + NK:
                c = lm.load(cos_sin, coords=(0, p), shape=(TOKS, D // 2), form="vec", like=lo)
                s = lm.load(cos_sin, coords=(D // 2, p), shape=(TOKS, D // 2), form="vec", like=lo)
                a = lo * c - hi * s
                b = hi * c + lo * s
                if t.head < NQ:
                    lm.store(q_out, lm.cast(a, lm.bf16), coords=(t.head * D, t.tb * TOKS), clip=True)
                    lm.store(q_out, lm.cast(b, lm.bf16), coords=(t.head * D + D // 2, t.tb * TOKS), clip=True)
                else:
                    lm.store(k_cache, lm.cast(a * k_inv, lm.e4m3), coords=((t.head - NQ) * D, dst), mask=dst >= 0)
                    lm.store(k_cache, lm.cast(b * k_inv, lm.e4m3), coords=((t.head - NQ) * D + D // 2, dst), mask=dst >= 0)
            else:
                lm.store(v_cache, lm.cast(lo * v_inv, lm.e4m3), coords=((t.head - NQ - NK) * D, dst), mask=dst >= 0)
                lm.store(v_cache, lm.cast(hi * v_inv, lm.e4m3), coords=((t.head - NQ - NK) * D + D // 2, dst), mask=dst >= 0)
