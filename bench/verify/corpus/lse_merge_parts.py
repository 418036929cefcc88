@cake.schedule(target=("sm_121a", "sm_80"))
def lse_merge_parts(lm, PO: LM.gmem4d[LM.f32, "S", "B", "H", 128], PL: LM.gmem3d[LM.f32, "S", "B", "H"], NSPLIT: LM.gmem1d[LM.i32, "B"], O: LM.gmem3d[LM.bf16, "B", "H", 128], LSE: LM.gmem2d[LM.f32, "B", "H"],
                    S: LM.i32, B: LM.i32, H: LM.i32, *, HEADS=16, WARPS=4):
    """The parts of a split decode, as many as the request was cut into, weighted by their log-sums."""
    lm.launch(grid="tiles")
    lm.assume_values(NSPLIT, 1, S + 1)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(H, HEADS), B), names=("h", "b"))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(NSPLIT, t.b)
            h0 = t.h * HEADS
            o = lm.load(PO, coords=(0, h0, t.b, 0), shape=(HEADS, 128), form="vec", clip=True)
            top = lm.load(PL, coords=(h0, t.b, 0), shape=(HEADS,), form="rowvec", like=o, clip=True)
            total = lm.rowvec(like=o, init=0.0) + 1.0
            for i in lm.range(1, n):
                part = lm.load(PO, coords=(0, h0, t.b, i), shape=(HEADS, 128), form="vec", like=o, clip=True)
                l = lm.load(PL, coords=(h0, t.b, i), shape=(HEADS,), form="rowvec", like=o, clip=True)
                new = lm.max(top, l)
                old = lm.exp(top - new)
                now = lm.exp(l - new)
                o = o * old + part * now
                total = total * old + now
                top = new
            lm.store(O, lm.cast(o * lm.rcp(total), lm.bf16), coords=(0, h0, t.b), clip=True)
            lm.store(LSE, top + lm.log(total), coords=(h0, t.b), clip=True)
