"""A product in three parts of higher precision: one tile multiplied twice, by different operands."""


@cake.schedule(target="sm_120a")
def split3(lm, A: LM.gmem2d[LM.f32, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], B2: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    pool = lm.smem(16384)
    sa = pool.view(offset=0, shape=(64, 16), dtype=lm.f32)
    sb = pool.view(offset=4096, shape=(64, 16), dtype=lm.bf16, swizzle="32b")
    sc = pool.view(offset=8192, shape=(64, 16), dtype=lm.bf16, swizzle="32b")
    math = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 64)))
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", warps=(4, 1), init=0.0)
            for k in lm.range(lm.cdiv(K, 16)):
                sa.cp_async(A, coords=(k * 16, t.m * 64))
                sb.cp_async(B, coords=(k * 16, t.n * 64))
                sc.cp_async(B2, coords=(k * 16, t.n * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(cta)
                x = sa.load(form="acc", like=acc)
                hi = lm.cast(x, lm.bf16)
                lo = lm.cast(x - lm.cast(hi, lm.f32), lm.bf16)
                b = sb.ldmatrix(form="b", like=acc)
                c = sc.ldmatrix(form="b", like=acc)
                ah = lm.cast(hi, lm.bf16, form="a")
                lm.mma(acc, ah, b)
                lm.mma(acc, ah, c)
                lm.mma(acc, lm.cast(lo, lm.bf16, form="a"), b)
                lm.sync(cta)
            lm.store(C, acc, coords=(t.n * 64, t.m * 64), clip=True)
