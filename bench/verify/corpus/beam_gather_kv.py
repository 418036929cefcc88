@cake.schedule(target=("sm_80", "sm_100a"))
def beam_gather_kv(lm, SRC: LM.gmem3d[LM.bf16, "BW", "S", "D"], PARENT: LM.gmem1d[LM.i32, "BW"], LEN: LM.gmem1d[LM.i32, "B"], DST: LM.gmem3d[LM.bf16, "BW", "S", "D"], BW: LM.i32, B: LM.i32, S: LM.i32, D: LM.i32, *, BEAMS=4, ROWS=8, WARPS=4):
    """After a beam step each beam takes over the cache of the beam that it came from; only what has been filled is copied."""
    lm.launch(grid="tiles")
    lm.assume(BW == B * BEAMS)
    lm.assume_values(PARENT, 0, BEAMS)
    lm.assume_values(LEN, 0, S + 1)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(D, 256), lm.cdiv(S, ROWS), BW), names=("d", "s", "w"))
    with work:
        for t in lm.tiles(sched):
            b = t.w // BEAMS
            left = lm.ld(LEN, b) - t.s * ROWS
            if left > 0:
                source = b * BEAMS + lm.ld(PARENT, t.w)
                x = lm.load(SRC, coords=(t.d * 256, t.s * ROWS, source), shape=(ROWS, 256), form="vec", clip=True)
                lm.store(DST, x, coords=(t.d * 256, t.s * ROWS, t.w), mask=lm.in_bounds(x, left, D - t.d * 256))
