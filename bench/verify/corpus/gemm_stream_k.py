"""Stream-K GEMM: every unit of work takes an equal share of all K steps of all tiles, and a tile's last unit adds what the others found."""


@cake.schedule(target="sm_90a")
def gemm_stream_k(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                  WS: LM.gmem3d[LM.f32, "UNITS", 64, "BN"], READY: LM.gmem1d[LM.i32, "UNITS"].zeroed,
                  M: LM.i32, N: LM.i32, K: LM.i32, UNITS: LM.i32, *, BN=64, BK=64, STAGES=4):
    """C = A B^T; unit u takes the steps from u * total // UNITS on, tile by tile."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and M > 0 and N > 0 and UNITS > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(UNITS,), names=("u",))
    mt, kt = lm.cdiv(M, 64), lm.cdiv(K, BK)
    total = mt * lm.cdiv(N, BN) * kt

    with load:
        for t in lm.tiles(sched):
            lo = t.u * total // UNITS
            hi = (t.u + 1) * total // UNITS
            for i in lm.range(lo // kt, lm.cdiv(hi, kt)):
                for k in lm.range(lm.max(lo - i * kt, 0), lm.min(hi - i * kt, kt)):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    sa.tma_load(A, coords=(k * BK, i % mt * 64), stage=s, barrier=full)
                    sb.tma_load(B, coords=(k * BK, i // mt * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            lo = t.u * total // UNITS
            hi = (t.u + 1) * total // UNITS
            for i in lm.range(lo // kt, lm.cdiv(hi, kt)):
                first = lm.max(lo - i * kt, 0)
                last = lm.min(hi - i * kt, kt)
                for k in lm.range(first, last):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    lm.mma(acc, sa[s], sb[s], init=(k == first))
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                if last == kt:
                    result = acc * 1.0
                    if first > 0:
                        for u in lm.range((i * kt * UNITS + UNITS - 1) // total, t.u):
                            lm.spin(READY, u, 1)
                            result = result + lm.load(WS, coords=(0, 0, u), shape=(64, BN), form="acc", like=acc)
                    lm.store(C, lm.cast(result, lm.bf16), coords=(i // mt * BN, i % mt * 64), clip=True)
                else:
                    lm.store(WS, acc * 1.0, coords=(0, 0, t.u))
                    lm.signal(READY, t.u, 1)
