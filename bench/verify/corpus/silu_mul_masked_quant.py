@cake.schedule(target=("sm_89", "sm_90a"))
def silu_mul_masked_quant(lm, GU: LM.gmem3d[LM.bf16, "E", "CAP", "H2"], COUNT: LM.gmem1d[LM.i32, "E"], Q: LM.gmem3d[LM.e4m3, "E", "CAP", "H"], S: LM.gmem3d[LM.f32, "E", "HB", "CAP"], E: LM.i32, CAP: LM.i32, *, H=512, H2=1024, HB=4, WARPS=4, SPREAD=2):
    """silu(gate) * up of the rows that experts received, in e4m3 with a scale for each 128, which lie transposed. `SPREAD` CTAs share an expert."""
    lm.launch(grid="tiles")
    lm.assume_values(COUNT, 0, CAP + 1)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="grid", tiles=(SPREAD, E), names=("j", "e"))
    lanes = SPREAD * WARPS
    with work:
        for t in lm.tiles(sched):
            count = lm.ld(COUNT, t.e)
            mine = t.j * WARPS + work.index
            if mine < count:
                for i in lm.range((count - mine + lanes - 1) // lanes):
                    row = mine + lanes * i
                    for b in lm.static_range(HB):
                        g = lm.cast(lm.load(GU, coords=(128 * b, row, t.e), shape=(128,), form="vec"), lm.f32)
                        u = lm.cast(lm.load(GU, coords=(H + 128 * b, row, t.e), shape=(128,), form="vec"), lm.f32)
                        y = lm.silu(g) * u
                        s = lm.reduce(lm.abs(y), "max", axis=0) * (1.0 / 448.0)
                        s = lm.max(s, 1e-10)
                        lm.store(Q, lm.cast(y * lm.rcp(s), lm.e4m3), coords=(128 * b, row, t.e))
                        lm.store(S, s, coords=(row, b, t.e))
