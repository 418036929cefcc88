"""A 1-D convolution as products of shifted rows: one accumulator sums rows that start at different places."""


@cake.schedule(target="sm_120a")
def conv(lm, X: LM.gmem2d[LM.bf16, "L", "C"], W: LM.gmem3d[LM.bf16, "R", "N", "C"].const, Y: LM.gmem2d[LM.bf16, "L", "N"], L: LM.i32, C: LM.i32, N: LM.i32, R: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(C > 0)
    lm.assume(C % 8 == 0 and N % 8 == 0)
    pool = lm.smem(8192)
    sa = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    sb = pool.view(offset=4096, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    math = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(L, 64), lm.cdiv(N, 64)))
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", warps=(4, 1), init=0.0)
            for r in lm.range(R):
                for k in lm.range(lm.cdiv(C, 32)):
                    sa.cp_async(X, coords=(k * 32, t.m * 64 + r))
                    sb.cp_async(W, coords=(k * 32, t.n * 64, r))
                    lm.cp_commit()
                    lm.cp_wait(pending=0)
                    lm.sync(cta)
                    for kk in lm.static_range(2):
                        a = sa.cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                        b = sb.cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                        lm.mma(acc, a, b)
                    lm.sync(cta)
            lm.store(Y, lm.cast(acc, lm.bf16), coords=(t.n * 64, t.m * 64), clip=True)
