@cake.schedule(target=("sm_80", "sm_121a"))
def csr_spmm(lm, PTR: LM.gmem1d[LM.i32, "R1"], COL: LM.gmem1d[LM.i32, "NNZ"], VAL: LM.gmem1d[LM.f32, "NNZ"], X: LM.gmem2d[LM.f32, "V", "D"], Y: LM.gmem2d[LM.f32, "R", "D"],
             R: LM.i32, R1: LM.i32, NNZ: LM.i32, V: LM.i32, D: LM.i32, *, WARPS=4):
    """A sparse matrix in rows times a dense one, a warp a row."""
    lm.launch(grid="tiles")
    lm.assume(R1 == R + 1)
    lm.assume_values(PTR, 0, NNZ + 1, sorted=True)
    lm.assume_values(COL, 0, V)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(R, WARPS), lm.cdiv(D, 128)), names=("r", "d"))
    with work:
        for t in lm.tiles(sched):
            r = t.r * WARPS + work.index
            if r < R:
                acc = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
                for i in lm.range(lm.ld(PTR, r), lm.ld(PTR, r + 1)):
                    acc = acc + lm.ld(VAL, i) * lm.load(X, coords=(t.d * 128, lm.ld(COL, i)), shape=(128,), form="vec", like=acc, clip=True)
                lm.store(Y, acc, coords=(t.d * 128, r), clip=True)
