@cake.schedule(target="sm_80")
def hadamard_mma(lm, X: LM.gmem3d[LM.f16, "ROWS", 32, 32], H: LM.gmem2d[LM.f16, 32, 32].const, Y: LM.gmem3d[LM.f16, "ROWS", 32, 32], ROWS: LM.i32, scale: LM.f32, *, WARPS=4):
    """Walsh-Hadamard transform of rows of 1,024 by tensor cores: a row is a square, transformed along both of its sides. A warp a row."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    warp = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(ROWS, WARPS),), names=("g",))
    with warp:
        ha = lm.load(H, coords=(0, 0), shape=(32, 32), form="a")
        hb = lm.load(H, coords=(0, 0), shape=(32, 32), form="b")
        for t in lm.tiles(sched):
            row = t.g * WARPS + warp.index
            if row < ROWS:
                x = lm.load(X, coords=(0, 0, row), shape=(32, 32), form="a")
                along = lm.frag(shape=(32, 32), dtype=lm.f32, form="acc")
                lm.mma(along, x, hb, init=True)
                down = lm.frag(shape=(32, 32), dtype=lm.f32, form="acc", init=0)
                lm.mma(down, ha, lm.transpose(lm.cast(along, lm.f16)))
                lm.store(Y, lm.cast(down * scale, lm.f16), coords=(0, 0, row))
