@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_mxf8_row_blocks(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e5m2, "N", "K"].const, SA: LM.tma2d[LM.ue8m0, "ROWSA", 16], SB: LM.tma2d[LM.ue8m0, "ROWSB", 16].const, D: LM.gmem2d[LM.bf16, "M", "N"],
          M: LM.i32, N: LM.i32, K: LM.i32, ROWSA: LM.i32, ROWSB: LM.i32, *, RG=3):
    """mxfp8: 128 x 128 tiles, K in blocks of 128 with one word of scales a row; scales come packed as (row tile, k block) groups of 32 rows of 16 bytes."""
    lm.launch(grid="tiles")
    lm.assume(K > 0 and K % 128 == 0)
    lm.assume(N % 8 == 0)
    lm.assume(ROWSA == lm.cdiv(M, 128) * (K // 128) * 32)
    lm.assume(ROWSB == lm.cdiv(N, 128) * (K // 128) * 32)
    sm = lm.smem(RG * (2 * 128 * 128 + 2 * 512))
    sa = sm.view(offset=RG * 2 * 16384, shape=(32, 16), dtype=lm.ue8m0, stage=RG)
    sb = sm.view(offset=RG * 2 * 16384 + RG * 512, shape=(32, 16), dtype=lm.ue8m0, stage=RG)
    va = sm.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=RG, swizzle="128b")
    vb = sm.view(offset=RG * 16384, shape=(128, 128), dtype=lm.e5m2, stage=RG, swizzle="128b")
    acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    ta = lm.tmem(cols=128, width=4, shape=(128, 16), dtype=lm.ue8m0)
    tb = lm.tmem(cols=132, width=4, shape=(128, 16), dtype=lm.ue8m0)
    ld = lm.role(warps=range(0, 1))
    mm = lm.role(warps=range(1, 2))
    out = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=RG)
    once = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[ld], cons=[mm], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mm], cons=[ld], arrive="mma", primed=True)
    done = lm.barrier(pipeline=once, prod=[mm], cons=[out], arrive="mma")
    grid = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)))
    kb = K // 128
    with ld:
        for t in lm.tiles(grid):
            for b in lm.range(kb):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                va.tma_load(A, coords=(b * 128, t.m * 128), stage=s, barrier=full)
                vb.tma_load(B, coords=(b * 128, t.n * 128), stage=s, barrier=full)
                sa.tma_load(SA, coords=(0, (t.m * kb + b) * 32), stage=s, barrier=full)
                sb.tma_load(SB, coords=(0, (t.n * kb + b) * 32), stage=s, barrier=full)
    with mm:
        for t in lm.tiles(grid):
            o = lm.step(once)
            for b in lm.range(kb):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.tmem_copy(ta, sa[s])
                lm.tmem_copy(tb, sb[s])
                lm.mma(acc, va[s], vb[s], init=(b == 0), scale_a=lm.scales(ta, block=32, dtype=lm.ue8m0, layout="tmem_128x4"), scale_b=lm.scales(tb, block=32, dtype=lm.ue8m0, layout="tmem_128x4"))
                lm.commit(empty, stage=s)
            lm.commit(done, stage=o)
    with out:
        for t in lm.tiles(grid):
            o = lm.step(once)
            lm.wait(done, stage=o)
            for c in lm.static_range(4):
                r = lm.tmem_load(acc.cols(32 * c, 32), form="rows")
                lm.tmem_wait("ld")
                lm.store(D, lm.cast(r, lm.bf16), coords=(t.n * 128 + 32 * c, t.m * 128), clip=True)
