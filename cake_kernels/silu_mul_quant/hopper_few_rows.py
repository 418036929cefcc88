"""SiLU-mul and FP8 group quantisation for few rows: the warps of a CTA take neighbouring groups of the same 16 rows."""


@cake.schedule(target="sm_90a")
def silu_mul_quant_few_rows(lm, X: LM.tma3d[LM.bf16, "M", 2, "N"], Q: LM.tma2d[LM.e4m3, "M", "N"], SCALE: LM.gmem2d[LM.f32, "M", "G"], M: LM.i32,
                            N: LM.i32, G: LM.i32, *, WARPS=4, CTAS=1, STAGES=2):
    """v = silu(X[:, 0]) * X[:, 1]; SCALE = max(max |v|, 1e-4) / 448 over 128 columns, Q = v / SCALE."""
    lm.launch(grid="persistent", ctas_per_sm=CTAS)
    lm.assume(N % 128 == 0)
    width = 128 * WARPS
    tile = 16 * width * 2
    pool = lm.smem(2 * STAGES * tile + tile + 2 * 16 * WARPS * 4)
    gate = pool.view(offset=0, shape=(16, width), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    up = pool.view(offset=STAGES * tile, shape=(16, width), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=2 * STAGES * tile, shape=(16, width), dtype=lm.e4m3, stage=2, swizzle="128b")
    scales = pool.view(offset=2 * STAGES * tile + tile, shape=(16, WARPS), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    load = lm.role(warps=range(WARPS, WARPS + 1))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    staging = lm.pipeline(stages=2)
    own = lm.named_barrier(work, per_member=True)
    whole = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(G, WARPS), lm.cdiv(M, 16)), names=("g", "m"))

    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            gate.tma_load(X, coords=(t.g * width, 0, t.m * 16), box=(width, 1, 16), stage=s, barrier=full)
            up.tma_load(X, coords=(t.g * width, 1, t.m * 16), box=(width, 1, 16), stage=s, barrier=full)

    with work:
        col = 128 * work.index
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            v = lm.silu(lm.cast(gate[s].cols(col, 128).load(form="acc"), lm.f32)) * lm.cast(up[s].cols(col, 128).load(form="acc"), lm.f32)
            lm.arrive(empty, stage=s)
            scale = lm.max(lm.reduce(lm.abs(v), "max", axis=1), 1e-4) * (1.0 / 448.0)
            c = lm.step(staging)
            lm.store_wait(pending=1)
            lm.sync(own)
            out[c].cols(col, 128).store(lm.cast(v * lm.rcp(scale), lm.e4m3))
            scales[c].cols(work.index, 1).store(scale)
            lm.fence_proxy()
            lm.sync(whole)
            out[c].cols(col, 128).tma_store(Q, coords=(t.g * width + col, t.m * 16))
            if work.index == 0:
                lm.store(SCALE, scales[c].load(form="vec"), coords=(t.g * WARPS, t.m * 16), clip=True)
        lm.store_wait(pending=0)
