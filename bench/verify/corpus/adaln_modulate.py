"""The norm of a diffusion transformer: LayerNorm without weights, scaled and shifted by what the timestep says; two roles of one block take even and odd rows."""
@cake.schedule(target="sm_90a")
def adaln_modulate(lm, X: LM.gmem3d[LM.bf16, "B", "S", "D"], MOD: LM.gmem2d[LM.f32, "B", "D2"], Y: LM.gmem3d[LM.bf16, "B", "S", "D"], B: LM.i32, S: LM.i32, *, D=2048, D2=4096, EPS=1e-6):
    lm.launch(grid="persistent", ctas_per_sm=4)
    pool = lm.smem(256)
    part = pool.view(offset=0, shape=(4,), dtype=lm.f32, stage=4)
    even = lm.role(warps=range(0, 4))
    odd = lm.role(warps=range(4, 8))
    evens = lm.named_barrier(even)
    odds = lm.named_barrier([odd])
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, 2), B), names=("p", "b"))
    with even:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(0, 2 * t.p, t.b), shape=(D,), form="vec", cache="stream"), lm.f32)
            mean = lm.reduce(x, "add", across=even, scratch=part[0], sync=evens) * (1.0 / D)
            x = x - mean
            var = lm.reduce(x * x, "add", across=even, scratch=part[1], sync=evens) * (1.0 / D)
            inv = lm.rsqrt(var + EPS)
            gain = lm.load(MOD, coords=(0, t.b), shape=(D,), form="vec", like=x)
            shift = lm.load(MOD, coords=(D, t.b), shape=(D,), form="vec", like=x)
            lm.store(Y, lm.cast(x * inv * (1 + gain) + shift, lm.bf16), coords=(0, 2 * t.p, t.b))
    with odd:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            if 2 * t.p + 1 < S:
                x = lm.cast(lm.load(X, coords=(0, 2 * t.p + 1, t.b), shape=(D,), form="vec", cache="stream"), lm.f32)
                mean = lm.reduce(x, "add", across=odd, scratch=part[2], sync=odds) * (1.0 / D)
                x = x - mean
                var = lm.reduce(x * x, "add", across=odd, scratch=part[3], sync=odds) * (1.0 / D)
                inv = lm.rsqrt(var + EPS)
                gain = lm.load(MOD, coords=(0, t.b), shape=(D,), form="vec", like=x)
                shift = lm.load(MOD, coords=(D, t.b), shape=(D,), form="vec", like=x)
                lm.store(Y, lm.cast(x * inv * (1 + gain) + shift, lm.bf16), coords=(0, 2 * t.p + 1, t.b))
