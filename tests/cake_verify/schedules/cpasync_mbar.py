@cake.schedule(target="sm_80")
def gemm(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.f32], K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K > 0 and K % 32 == 0)
    pool = lm.smem(2 * (64 + 64) * 32 * 2)
    a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, stage=2, swizzle="64b")
    b = pool.view(offset=8192, shape=(64, 32), dtype=lm.bf16, stage=2, swizzle="64b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="cp_async")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="thread", primed=True)
    with load:
        for k in lm.range(K // 32):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.cp_async(A, coords=(k * 32, 0), stage=s)
            b.cp_async(B, coords=(k * 32, 0), stage=s)
            lm.arrive(full, stage=s)
    with math:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
        for k in lm.range(K // 32):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            for kk in lm.static_range(2):
                x = a[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                y = b[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                lm.mma(acc, x, y)
            lm.arrive(empty, stage=s)
        lm.store(C, acc, coords=(0, 0))
