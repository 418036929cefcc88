"""Block-sparse times dense: each row of blocks lists the columns of its blocks; rows may be empty."""


@cake.schedule(target="sm_90a")
def gemm_blocksparse(lm, V: LM.tma3d[LM.bf16, "NNZ", 64, 64].const, COLS: LM.gmem1d[LM.i32, "NNZ"].const, PTR: LM.gmem1d[LM.i32, "MB1"].const,
                     B: LM.tma2d[LM.bf16, "K", "N"], C: LM.gmem2d[LM.f32, "M", "N"],
                     M: LM.i32, N: LM.i32, K: LM.i32, MB1: LM.i32, NNZ: LM.i32, *, BN=64, STAGES=4):
    """C[64 m ..] = sum over i in PTR[m] .. PTR[m + 1] of V[i] B[64 COLS[i] ..]."""
    lm.launch(grid="persistent")
    lm.assume(M % 64 == 0 and K % 64 == 0 and N % 8 == 0)
    lm.assume(MB1 == M // 64 + 1)
    lm.assume_values(PTR, 0, NNZ + 1, sorted=True)
    lm.assume_values(COLS, 0, K // 64)
    v_bytes, b_bytes = STAGES * 64 * 64 * 2, STAGES * 64 * BN * 2
    pool = lm.smem(v_bytes + b_bytes)
    sv = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=v_bytes, shape=(64, BN), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    load = lm.role(warps=range(0, 1))
    math = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(M // 64, lm.cdiv(N, BN)))

    with load:
        for t in lm.tiles(sched):
            for i in lm.range(lm.ld(PTR, t.m), lm.ld(PTR, t.m + 1)):
                c = lm.ld(COLS, i)
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sv.tma_load(V, coords=(0, 0, i), stage=s, barrier=full)
                sb.tma_load(B, coords=(t.n * BN, c * 64), stage=s, barrier=full)

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            for i in lm.range(lm.ld(PTR, t.m), lm.ld(PTR, t.m + 1)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sv[s], sb[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(t.n * BN, t.m * 64), clip=True)
