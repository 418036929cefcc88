@cake.schedule(target=("sm_80", "sm_90a"))
def moe_align_fill(lm, IDS: LM.gmem1d[LM.i32, "N"], FIRST: LM.gmem1d[LM.i32, "E1"], SORTED: LM.gmem1d[LM.i32, "CAP"], OWNER: LM.gmem1d[LM.i32, "NB"],
                   N: LM.i32, E: LM.i32, E1: LM.i32, CAP: LM.i32, NB: LM.i32, *, BLOCK=16):
    """Second half: a warp an expert writes the numbers of its tokens in their order, fills its last block up with N, and puts its name on its blocks."""
    lm.launch(grid="tiles")
    lm.assume(E1 == E + 1 and CAP == NB * BLOCK)
    lm.assume_values(FIRST, 0, CAP + 1, sorted=True)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(E,), names=("e",))

    with work:
        for t in lm.tiles(sched):
            first = lm.ld(FIRST, t.e)
            end = lm.ld(FIRST, t.e + 1)
            seen = 0
            for c in lm.range(lm.cdiv(N, 128)):
                ids = lm.load(IDS, coords=(c * 128,), shape=(128,), form="vec", clip=True, fill=-1)
                mine = lm.where(ids == t.e, 1, 0)
                rank = lm.scan(mine, "add", axis=0)
                place = first + seen + rank - 1
                lm.store(SORTED, lm.iota(ids, 0, base=c * 128), coords=(place,), mask=ids == t.e and place < end)
                seen = seen + lm.reduce(mine, "add", axis=0)
            pad = lm.frag(shape=(128,), dtype=lm.i32, form="vec", init=0)
            rest = first + seen + lm.iota(pad, 0)
            lm.store(SORTED, pad + N, coords=(rest,), mask=rest < end)
            for b in lm.range(first // BLOCK, end // BLOCK):
                lm.store(OWNER, t.e, coords=(b,))
