@cake.schedule(target="sm_90a")
def fp8_two_rings(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.gmem2d[LM.f32, "KB", "M"], SB: LM.gmem1d[LM.f32, "NKB"],
                  C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NKB: LM.i32, *, STAGES=3):
    """C = A B^T, e4m3 with a scale each 1 x 128 of A (transposed) and 128 x 128 of B; two math warpgroups, each 64 rows, whose main loops alternate."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and N > 0)
    lm.assume(K % 128 == 0 and N % 128 == 0)
    lm.assume(KB == K // 128 and NKB == N // 128 * KB)
    a_bytes, b_bytes = STAGES * 64 * 128, STAGES * 128 * 128
    pool = lm.smem(2 * a_bytes + 2 * b_bytes + 2 * 64 * 128 * 2)
    a_0 = pool.view(offset=0, shape=(64, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    a_1 = pool.view(offset=a_bytes, shape=(64, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    b_0 = pool.view(offset=2 * a_bytes, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    b_1 = pool.view(offset=2 * a_bytes + b_bytes, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    c_0 = pool.view(offset=2 * a_bytes + 2 * b_bytes, shape=(64, 128), dtype=lm.bf16, swizzle="128b")
    c_1 = pool.view(offset=2 * a_bytes + 2 * b_bytes + 64 * 128 * 2, shape=(64, 128), dtype=lm.bf16, swizzle="128b")

    math_0 = lm.role(warps=range(0, 4), regs=232)
    math_1 = lm.role(warps=range(4, 8), regs=232)
    load = lm.role(warps=range(8, 12), regs=40)
    ring_0 = lm.pipeline(stages=STAGES)
    full_0 = lm.barrier(pipeline=ring_0, prod=[load], cons=[math_0], arrive="tx")
    empty_0 = lm.barrier(pipeline=ring_0, prod=[math_0], cons=[load], arrive="member", primed=True)
    ring_1 = lm.pipeline(stages=STAGES)
    full_1 = lm.barrier(pipeline=ring_1, prod=[load], cons=[math_1], arrive="tx")
    empty_1 = lm.barrier(pipeline=ring_1, prod=[math_1], cons=[load], arrive="member", primed=True)
    turn = lm.pipeline(stages=1)
    go_0 = lm.barrier(pipeline=turn, prod=[math_1], cons=[math_0], arrive="member", primed=True)
    go_1 = lm.barrier(pipeline=turn, prod=[math_0], cons=[math_1], arrive="member")
    own_0 = lm.named_barrier(math_0)
    own_1 = lm.named_barrier(math_1)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), N // 128), raster="m", swizzle=8)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring_0)
                lm.wait(empty_0, stage=s)
                a_0.tma_load(A, coords=(k * 128, t.m * 128), stage=s, barrier=full_0)
                b_0.tma_load(B, coords=(k * 128, t.n * 128), stage=s, barrier=full_0)
            for k in lm.range(KB):
                s = lm.step(ring_1)
                lm.wait(empty_1, stage=s)
                a_1.tma_load(A, coords=(k * 128, t.m * 128 + 64), stage=s, barrier=full_1)
                b_1.tma_load(B, coords=(k * 128, t.n * 128), stage=s, barrier=full_1)

    with math_0:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        part = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            g = lm.step(turn)
            lm.wait(go_0, stage=g)
            for k in lm.range(KB):
                sb = lm.ld(SB, t.n * KB + k)
                sa = lm.load(SA, coords=(t.m * 128, k), shape=(64,), form="rowvec", like=part, clip=True)
                s = lm.step(ring_0)
                lm.wait(full_0, stage=s)
                lm.mma(part, a_0[s], b_0[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty_0, stage=s)
                if k == 0:
                    acc = part * (sa * sb)
                else:
                    acc = acc + part * (sa * sb)
            lm.arrive(go_1, stage=g)
            lm.store_wait(pending=0)
            lm.sync(own_0)
            c_0.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own_0)
            c_0.tma_store(C, coords=(t.n * 128, t.m * 128))
        lm.store_wait(pending=0)

    with math_1:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        part = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            g = lm.step(turn)
            lm.wait(go_1, stage=g)
            for k in lm.range(KB):
                sb = lm.ld(SB, t.n * KB + k)
                sa = lm.load(SA, coords=(t.m * 128 + 64, k), shape=(64,), form="rowvec", like=part, clip=True)
                s = lm.step(ring_1)
                lm.wait(full_1, stage=s)
                lm.mma(part, a_1[s], b_1[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty_1, stage=s)
                if k == 0:
                    acc = part * (sa * sb)
                else:
                    acc = acc + part * (sa * sb)
            lm.arrive(go_0, stage=g)
            lm.store_wait(pending=0)
            lm.sync(own_1)
            c_1.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own_1)
            c_1.tma_store(C, coords=(t.n * 128, t.m * 128 + 64))
        lm.store_wait(pending=0)
