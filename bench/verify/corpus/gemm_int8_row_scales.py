@cake.schedule(target=("sm_80", "sm_89", "sm_90a"))
def gemm_int8_row_scales(lm, Xq: LM.gmem2d[LM.i8, "R", "K"], Wq: LM.gmem2d[LM.i8, "C", "K"].const, Sx: LM.gmem1d[LM.f32, "R"], Sw: LM.gmem1d[LM.f32, "C"].const,
              Y: LM.gmem2d[LM.bf16, "R", "C"], R: LM.i32, C: LM.i32, K: LM.i32, *, BR=64, BC=128, BK=64, NSTAGE=4, AHEAD=3):
    """int8 product with a scale a row of X and a row of W. The copies' arrivals fill mbarriers; every warp releases."""
    lm.launch(grid="persistent", ctas_per_sm=1)
    lm.assume(K > 0 and K % 16 == 0)
    lm.assume(C % 8 == 0)
    arena = lm.smem(NSTAGE * (BR + BC) * BK)
    xs = arena.view(offset=0, shape=(BR, BK), dtype=lm.i8, stage=NSTAGE, swizzle="64b")
    ws = arena.view(offset=NSTAGE * BR * BK, shape=(BC, BK), dtype=lm.i8, stage=NSTAGE, swizzle="64b")
    calc = lm.role(warps=range(2, 6))
    fetch = lm.role(warps=range(0, 2))
    q = lm.pipeline(stages=NSTAGE)
    ready = lm.barrier(pipeline=q, prod=[fetch], cons=[calc], arrive="cp_async")
    free = lm.barrier(pipeline=q, prod=[calc], cons=[fetch], arrive="warp", primed=True)
    tiles = lm.scheduler(kind="static", tiles=(lm.cdiv(R, BR), lm.cdiv(C, BC)), names=("r", "c"), raster="c", swizzle=4)
    nk = lm.cdiv(K, BK)
    with calc:
        for w in lm.tiles(tiles):
            acc = lm.frag(shape=(BR, BC), dtype=lm.i32, form="acc", warps=(1, 4), init=0)
            for kk in lm.range(nk):
                s = lm.step(q)
                lm.wait(ready, stage=s)
                a = xs[s].ldmatrix(form="a", like=acc)
                b = ws[s].ldmatrix(form="b", like=acc)
                lm.arrive(free, stage=s)
                lm.mma(acc, a, b)
            sx = lm.load(Sx, coords=(w.r * BR,), shape=(BR,), form="rowvec", like=acc, clip=True)
            sw = lm.load(Sw, coords=(w.c * BC,), shape=(BC,), form="colvec", like=acc, clip=True)
            lm.store(Y, lm.cast(lm.cast(acc, lm.f32) * sx * sw, lm.bf16), coords=(w.c * BC, w.r * BR), clip=True)
    with fetch:
        for w in lm.tiles(tiles):
            for kk in lm.range(nk):
                s = lm.step(q)
                lm.wait(free, stage=s)
                xs.cp_async(Xq, coords=(kk * BK, w.r * BR), stage=s)
                ws.cp_async(Wq, coords=(kk * BK, w.c * BC), stage=s)
                lm.arrive(ready, stage=s)
