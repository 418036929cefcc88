@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_120a"))
def gemm_int4_groups(lm, X: LM.gmem2d[LM.bf16, "M", "K"], W4: LM.gmem2d[LM.u8, "N", "HALF"].const, SC: LM.gmem2d[LM.bf16, "GR", "N"].const, Y: LM.gmem2d[LM.bf16, "M", "N"],
            M: LM.i32, N: LM.i32, K: LM.i32, HALF: LM.i32, GR: LM.i32):
    """W4A16, groups of 128 along K: byte i of a group holds elements i (low nibble) and i + 64 (high) minus 8; each warp owns 32 columns."""
    lm.launch(grid="tiles")
    lm.assume(K > 0 and K % 128 == 0)
    lm.assume(HALF == K // 2 and GR == K // 128)
    lm.assume(N % 128 == 0)
    lane = lm.role(warps=range(0, 4), members=4)
    order = lm.scheduler(kind="grid", tiles=(N // 128, lm.cdiv(M, 16)), names=("n", "m"))
    with lane:
        for t in lm.tiles(order):
            first = t.n * 128 + 32 * lane.index
            y = lm.frag(shape=(16, 32), dtype=lm.f32, form="acc", init=0)
            for g in lm.range(GR):
                packed = lm.cast(lm.load(W4, coords=(g * 64, first), shape=(32, 64), form="acc"), lm.i32)
                low = lm.cast(lm.cast((packed & 15) - 8, lm.f32), lm.bf16)
                high = lm.cast(lm.cast((packed >> 4) - 8, lm.f32), lm.bf16)
                dot = lm.frag(shape=(16, 32), dtype=lm.f32, form="acc", init=0)
                x0 = lm.load(X, coords=(g * 128, t.m * 16), shape=(16, 64), form="a", clip=True)
                x1 = lm.load(X, coords=(g * 128 + 64, t.m * 16), shape=(16, 64), form="a", clip=True)
                lm.mma(dot, x0, lm.cast(low, lm.bf16, form="b"))
                lm.mma(dot, x1, lm.cast(high, lm.bf16, form="b"))
                s = lm.cast(lm.load(SC, coords=(first, g), shape=(32,), form="colvec", like=y), lm.f32)
                y = y + dot * s
            lm.store(Y, lm.cast(y, lm.bf16), coords=(first, t.m * 16), clip=True)
