"""SiLU-mul and FP8 group quantisation: tiles of 16 rows a warp by one group arrive by TMA, so that a row of a tile is a group."""


@cake.schedule(target="sm_90a")
def silu_mul_quant(lm, X: LM.tma3d[LM.bf16, "M", 2, "N"], Q: LM.tma2d[LM.e4m3, "M", "N"], SCALE: LM.gmem2d[LM.f32, "M", "G"], M: LM.i32, N: LM.i32,
                   G: LM.i32, *, WARPS=4, GROUPS=4, CTAS=2, STAGES=2):
    """v = silu(X[:, 0]) * X[:, 1]; SCALE = max(max |v|, 1e-4) / 448 over 128 columns, Q = v / SCALE. A CTA takes GROUPS groups of its rows in turn."""
    lm.launch(grid="persistent", ctas_per_sm=CTAS)
    lm.assume(N % 128 == 0)
    BM = 16 * WARPS
    tile = BM * 128 * 2
    pool = lm.smem(2 * STAGES * tile + tile + BM * GROUPS * 4)
    gate = pool.view(offset=0, shape=(BM, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    up = pool.view(offset=STAGES * tile, shape=(BM, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=2 * STAGES * tile, shape=(BM, 128), dtype=lm.e4m3, stage=2, swizzle="128b")
    scales = pool.view(offset=2 * STAGES * tile + tile, shape=(BM, GROUPS), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS), members=WARPS)                        # the warps never meet
    load = lm.role(warps=range(WARPS, WARPS + 1))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    staging = lm.pipeline(stages=2)
    own = lm.named_barrier(work, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(G, GROUPS), lm.cdiv(M, BM)), names=("g", "m"))

    with load:
        for t in lm.tiles(sched):
            for j in lm.range(GROUPS):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                gate.tma_load(X, coords=((t.g * GROUPS + j) * 128, 0, t.m * BM), box=(128, 1, BM), stage=s, barrier=full)
                up.tma_load(X, coords=((t.g * GROUPS + j) * 128, 1, t.m * BM), box=(128, 1, BM), stage=s, barrier=full)

    with work:
        row = 16 * work.index
        for t in lm.tiles(sched):
            for j in lm.range(GROUPS):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                v = lm.silu(lm.cast(gate[s].rows(row, 16).load(form="acc"), lm.f32)) * lm.cast(up[s].rows(row, 16).load(form="acc"), lm.f32)
                lm.arrive(empty, stage=s)
                scale = lm.max(lm.reduce(lm.abs(v), "max", axis=1), 1e-4) * (1.0 / 448.0)
                c = lm.step(staging)
                lm.store_wait(pending=1)
                lm.sync(own)
                out[c].rows(row, 16).store(lm.cast(v * lm.rcp(scale), lm.e4m3))
                scales.rows(row, 16).cols(j, 1).store(scale)
                lm.fence_proxy()
                lm.sync(own)
                out[c].rows(row, 16).tma_store(Q, coords=((t.g * GROUPS + j) * 128, t.m * BM + row))
            lm.store(SCALE, scales.rows(row, 16).load(form="vec"), coords=(t.g * GROUPS, t.m * BM + row), clip=True)
        lm.store_wait(pending=0)
