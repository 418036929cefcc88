"""Scores summed over heads: products at equal rows and columns of different matrices."""


@cake.schedule(target="sm_120a")
def sum_heads(lm, Q: LM.gmem3d[LM.bf16, "H", "S", "D"], K: LM.gmem3d[LM.bf16, "H", "S", "D"], C: LM.gmem2d[LM.f32, "S", "S"], H: LM.i32, S: LM.i32, *, D=32):
    lm.launch(grid="tiles")
    lm.assume(H > 0)
    pool = lm.smem(8192)
    sa = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    sb = pool.view(offset=4096, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    math = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, 64), lm.cdiv(S, 64)))
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", warps=(4, 1), init=0.0)
            for h in lm.range(H):
                sa.cp_async(Q, coords=(0, t.m * 64, h))
                sb.cp_async(K, coords=(0, t.n * 64, h))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(cta)
                for kk in lm.static_range(2):
                    a = sa.cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb.cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.sync(cta)
            lm.store(C, acc, coords=(t.n * 64, t.m * 64), clip=True)
