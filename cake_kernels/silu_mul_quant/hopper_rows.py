"""SiLU-mul and FP8 group quantisation without shared memory: 16 lanes hold a group, every byte that a CTA reads is in flight at once."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def silu_mul_quant_rows(lm, X: LM.gmem3d[LM.bf16, "M", 2, "N"], Q: LM.gmem2d[LM.e4m3, "M", "N"], SCALE: LM.gmem2d[LM.f32, "M", "G"], M: LM.i32,
                        N: LM.i32, G: LM.i32, *, WARPS=8, RUNS=1, CTAS=4, STREAM=False, EARLY=False, KEEP=False):
    """v = silu(X[:, 0]) * X[:, 1]; SCALE = max(max |v|, 1e-4) / 448 over 128 columns, Q = v / SCALE. A CTA takes 256 RUNS columns a warp of one row."""
    lm.launch(grid="tiles", ctas_per_sm=CTAS)
    lm.assume(N % 128 == 0)
    width = 256 * RUNS * WARPS
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, width), M), names=("c", "m"))

    with work:
        if EARLY:
            lm.pdl_launch()                                                         # the next launch sets up while this one ends
        lm.pdl_wait()
        for t in lm.tiles(sched):
            gate = lm.load(X, coords=(t.c * width, 0, t.m), shape=(width,), form="vec", cache="keep" if KEEP else "stream" if STREAM else None, clip=True)
            up = lm.load(X, coords=(t.c * width, 1, t.m), shape=(width,), form="vec", cache="keep" if KEEP else "stream" if STREAM else None, clip=True)
            v = lm.silu(lm.cast(gate, lm.f32)) * lm.cast(up, lm.f32)
            scale = lm.max(lm.amax_scale(v, axis=1, block=128), 1e-4 / 448.0)
            lm.store(Q, lm.cast(v * lm.rcp(scale), lm.e4m3), coords=(t.c * width, t.m), cache="stream" if STREAM else None, clip=True)
            lm.store(SCALE, scale, coords=(t.c * (width // 128), t.m), clip=True)
        if not EARLY:
            lm.pdl_launch()
