"""GPT-J's rotary embedding: neighbours 2i and 2i + 1 are a pair, only the first ROT columns of a head turn."""
@cake.schedule(target="sm_121a")
def rope_interleaved_pairs(lm, X: LM.gmem3d[LM.bf16, "T", "H", 128], POS: LM.gmem1d[LM.i32, "T"], CS: LM.gmem2d[LM.f32, "P", "ROT"], Y: LM.gmem3d[LM.bf16, "T", "H", 128], T: LM.i32, H: LM.i32, P: LM.i32, *, ROT=64, WARPS=2):
    lm.launch(grid="persistent", ctas_per_sm=12)
    lm.assume_values(POS, 0, P)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="static", tiles=(H, lm.cdiv(T, WARPS)), names=("h", "g"), raster="h")
    with work:
        for t in lm.tiles(sched):
            tok = WARPS * t.g + work.index
            if tok >= T:
                tok = T - 1
            x = lm.load(X, coords=(0, t.h, tok), shape=(128,), form="vec")
            i = lm.iota(x, 0)
            other = lm.load(X, coords=(i ^ 1, t.h, tok), shape=(128,), form="vec", like=x)
            p = lm.ld(POS, tok)
            turns = i < ROT
            c = lm.load(CS, coords=(i // 2, p), shape=(128,), form="vec", like=x, mask=turns, fill=1)
            s = lm.load(CS, coords=(i // 2 + ROT // 2, p), shape=(128,), form="vec", like=x, mask=turns)
            signed = lm.where(i % 2 == 0, -s, s)
            y = lm.cast(x, lm.f32) * c + lm.cast(other, lm.f32) * signed
            if WARPS * t.g + work.index < T:
                lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.h, tok))
