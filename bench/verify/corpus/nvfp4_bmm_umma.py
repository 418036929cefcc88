@cake.schedule(target=("sm_100a", "sm_103a"))
def nvfp4_bmm_umma(lm, A: LM.tma3d[LM.e2m1, "E", "M", "K"], SFA: LM.gmem1d[LM.e4m3, "NA"], B: LM.tma3d[LM.e2m1, "E", "N", "K"], SFB: LM.gmem1d[LM.e4m3, "NB"], alpha: LM.gmem1d[LM.f32, "E"],
                   rows: LM.gmem1d[LM.i32, "E"], C: LM.gmem3d[LM.bf16, "E", "M", "N"], E: LM.i32, M: LM.i32, N: LM.i32, K: LM.i32, NA: LM.i32, NB: LM.i32, *, BN=128, BK=256, NS=2):
    """Masked batched nvfp4 GEMM of the experts (rows[e] of M are real): tiles without rows are passed over by every role."""
    lm.launch(grid="persistent")
    lm.assume(K % BK == 0 and K > 0)
    kt = K // BK
    lm.assume(NA == E * lm.cdiv(M, 128) * kt * 2048)
    lm.assume(NB == E * lm.cdiv(N, 128) * kt * 2048)
    lm.assume_values(rows, 0, M + 1)
    ab = 128 * BK // 2
    bb = BN * BK // 2
    pool = lm.smem(NS * (ab + bb + 4096))
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.e2m1, stage=NS, swizzle="128b")
    sb = pool.view(offset=NS * ab, shape=(BN, BK), dtype=lm.e2m1, stage=NS, swizzle="128b")
    fa = pool.view(offset=NS * (ab + bb), shape=(128, 16), dtype=lm.e4m3, stage=NS)
    fb = pool.view(offset=NS * (ab + bb + 2048), shape=(128, 16), dtype=lm.e4m3, stage=NS)
    d = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)
    ca = lm.tmem(cols=BN, width=16, shape=(128, 64), dtype=lm.e4m3)
    cb = lm.tmem(cols=BN + 16, width=16, shape=(128, 64), dtype=lm.e4m3)
    epi = lm.role(warps=range(0, 4))
    mm = lm.role(warps=range(4, 5))
    ld = lm.role(warps=range(5, 6))
    ring = lm.pipeline(stages=NS)
    full = lm.barrier(pipeline=ring, prod=[ld], cons=[mm], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mm], cons=[ld], arrive="mma", primed=True)
    ap = lm.pipeline(stages=1)
    ready = lm.barrier(pipeline=ap, prod=[mm], cons=[epi], arrive="mma")
    taken = lm.barrier(pipeline=ap, prod=[epi], cons=[mm], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN), E), names=("m", "n", "e"))
    with ld:
        for t in lm.tiles(sched):
            if t.m * 128 < lm.ld(rows, t.e):
                for k in lm.range(kt):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    sa.tma_load(A, coords=(k * BK, t.m * 128, t.e), stage=s, barrier=full)
                    sb.tma_load(B, coords=(k * BK, t.n * BN, t.e), stage=s, barrier=full)
                    fa.bulk_load(SFA, offset=((t.e * lm.cdiv(M, 128) + t.m) * kt + k) * 2048, n=2048, stage=s, barrier=full)
                    fb.bulk_load(SFB, offset=((t.e * lm.cdiv(N, 128) + t.n) * kt + k) * 2048, n=2048, stage=s, barrier=full)
    with mm:
        for t in lm.tiles(sched):
            if t.m * 128 < lm.ld(rows, t.e):
                a = lm.step(ap)
                lm.wait(taken, stage=a)
                for k in lm.range(kt):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    for j in lm.static_range(4):
                        lm.tmem_copy(ca.cols(16 * j, 16), fa[s].rows(32 * j, 32))
                        lm.tmem_copy(cb.cols(16 * j, 16), fb[s].rows(32 * j, 32))
                    for j in lm.static_range(BK // 64):
                        lm.mma(d, sa[s].cols(64 * j, 64), sb[s].cols(64 * j, 64), init=(k == 0 and j == 0),
                               scale_a=lm.scales(ca.cols(16 * j, 16), block=16, dtype=lm.e4m3, layout="tmem_128x4"),
                               scale_b=lm.scales(cb.cols(16 * j, 16), block=16, dtype=lm.e4m3, layout="tmem_128x4"))
                    lm.commit(empty, stage=s)
                lm.commit(ready, stage=a)
    with epi:
        for t in lm.tiles(sched):
            n = lm.ld(rows, t.e)
            if t.m * 128 < n:
                a = lm.step(ap)
                lm.wait(ready, stage=a)
                up = lm.ld(alpha, t.e)
                y = lm.tmem_load(d, form="acc")
                lm.tmem_wait("ld")
                lm.arrive(taken, stage=a)
                lm.store(C, lm.cast(y * up, lm.bf16), coords=(t.n * BN, t.m * 128, t.e), mask=lm.in_bounds(y, rows=n - t.m * 128, cols=N - t.n * BN))
