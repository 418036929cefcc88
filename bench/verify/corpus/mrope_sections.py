@cake.schedule(target=("sm_89", "sm_121a"))
def mrope_sections(lm, Q: LM.gmem3d[LM.bf16, "T", "H", 128], POS: LM.gmem1d[LM.i32, "T3"].const, COS: LM.gmem2d[LM.f32, "P", 64].const, SIN: LM.gmem2d[LM.f32, "P", 64].const,
                   O: LM.gmem3d[LM.bf16, "T", "H", 128], T: LM.i32, T3: LM.i32, H: LM.i32, P: LM.i32, *, TSEC=16, HSEC=24, WARPS=4):
    """Rotary embedding with three positions a token (time, height, width): each section of the frequencies follows its own."""
    lm.launch(grid="persistent", ctas_per_sm=8)
    lm.assume(T3 == 3 * T)
    lm.assume_values(POS, 0, P)
    w = lm.role(warps=range(WARPS), members=WARPS)
    sched = lm.scheduler(kind="static", tiles=(T,), names=("tok",))
    with w:
        for t in lm.tiles(sched):
            when, y, x = lm.ld(POS, t.tok), lm.ld(POS, T + t.tok), lm.ld(POS, 2 * T + t.tok)
            like = lm.load(COS, coords=(0, when), shape=(64,), form="vec")
            f = lm.iota(like, 0)
            place = lm.where(f < TSEC, when, lm.where(f < TSEC + HSEC, y, x))
            c = lm.load(COS, coords=(f, place), shape=(64,), form="vec", like=like)
            s = lm.load(SIN, coords=(f, place), shape=(64,), form="vec", like=like)
            for i in lm.range(lm.cdiv(H - w.index, WARPS)):
                h = w.index + i * WARPS
                a = lm.cast(lm.load(Q, coords=(0, h, t.tok), shape=(64,), form="vec", like=like), lm.f32)
                b = lm.cast(lm.load(Q, coords=(64, h, t.tok), shape=(64,), form="vec", like=like), lm.f32)
                lm.store(O, lm.cast(a * c - b * s, lm.bf16), coords=(0, h, t.tok))
                lm.store(O, lm.cast(b * c + a * s, lm.bf16), coords=(64, h, t.tok))
