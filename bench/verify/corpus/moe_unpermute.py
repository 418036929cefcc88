@cake.schedule(target=("sm_80", "sm_89", "sm_90a"))
def moe_unpermute(lm, E: LM.gmem2d[LM.bf16, "SLOTS", "D"], WHERE: LM.gmem1d[LM.i32, "PAIRS"], GATE: LM.gmem1d[LM.f32, "PAIRS"], SHARED: LM.gmem2d[LM.bf16, "TOKENS", "D"],
                  Y: LM.gmem2d[LM.bf16, "TOKENS", "D"], TOKENS: LM.i32, SLOTS: LM.i32, PAIRS: LM.i32, D: LM.i32, *, TOP=4, PIECE=1024):
    """The rows that a token's experts made, weighed and added to the shared expert's row; a pair that was dropped for capacity has slot -1 and its weight goes to the others."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    lm.assume(D % PIECE == 0 and PAIRS == TOKENS * TOP)
    lm.assume_values(WHERE, -1, SLOTS)
    adders = lm.role(warps=range(0, 4))
    todo = lm.scheduler(kind="static", tiles=(D // PIECE, TOKENS), names=("piece", "token"))
    with adders:
        for t in lm.tiles(todo):
            col = t.piece * PIECE
            base = lm.cast(lm.load(SHARED, coords=(col, t.token), shape=(PIECE,), form="vec", cache="stream"), lm.f32)
            total = 0.0
            mix = base * 0.0
            for k in lm.range(TOP):
                slot = lm.ld(WHERE, t.token * TOP + k)
                if slot >= 0:
                    gate = lm.ld(GATE, t.token * TOP + k)
                    row = lm.load(E, coords=(col, slot), shape=(PIECE,), form="vec")
                    mix = mix + gate * lm.cast(row, lm.f32)
                    total = total + gate
            if total > 0.0:
                mix = mix * (1.0 / total)
            lm.store(Y, lm.cast(base + mix, lm.bf16), coords=(col, t.token))
