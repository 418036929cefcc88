"""Gated delta rule, the state pass (FLA's chunk_gated_delta_rule_fwd_h): the transposed state 64 x 128 lives in registers over the chunks of a head."""


@cake.schedule(target="sm_90a")
def gated_delta_state(lm, K: LM.tma4d[LM.bf16, "B", "H", "L", 128], W: LM.tma4d[LM.bf16, "B", "H", "L", 128], U: LM.gmem4d[LM.bf16, "B", "H", "L", "DV"],
                      G: LM.gmem1d[LM.f32, "BHL"], HS: LM.gmem4d[LM.bf16, "BHN", 1, "DV", 128], VN: LM.gmem4d[LM.bf16, "B", "H", "L", "DV"],
                      B: LM.i32, H: LM.i32, L: LM.i32, NT: LM.i32, BHN: LM.i32, BHL: LM.i32, *, DV=64):
    """Gated delta rule, the state pass (FLA's chunk_gated_delta_rule_fwd_h): the transposed state 64 x 128 lives in registers over the chunks of a head.

    For every chunk: keep the state, v' = u - w S, S = exp(g_last) S + (v' exp(g_last - g))^T k."""
    lm.launch(grid="tiles")
    lm.assume(L == NT * 64 and BHN == B * H * NT and BHL == B * H * L and NT > 0)
    kb = 64 * 128 * 2
    pool = lm.smem(4 * kb + DV * 128 * 2 + 64 * DV * 2)
    k = pool.view(offset=0, shape=(64, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    w = pool.view(offset=2 * kb, shape=(64, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    sh = pool.view(offset=4 * kb, shape=(DV, 128), dtype=lm.bf16, swizzle="128b")
    vs = pool.view(offset=4 * kb + DV * 256, shape=(64, DV), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    meet = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(H, B), names=("h", "b"))
    with load:
        for t in lm.tiles(sched):
            for c in lm.range(NT):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                k.tma_load(K, coords=(0, c * 64, t.h, t.b), stage=s, barrier=full)
                w.tma_load(W, coords=(0, c * 64, t.h, t.b), stage=s, barrier=full)
    with math:
        v = lm.frag(shape=(64, DV), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            state = lm.frag(shape=(DV, 128), dtype=lm.f32, form="acc", init=0.0)
            for c in lm.range(NT):
                sh.store(lm.cast(state, lm.bf16))
                lm.store(HS, lm.cast(state, lm.bf16), coords=(0, 0, 0, (t.b * H + t.h) * NT + c))
                lm.fence_proxy()
                lm.sync(meet)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(v, w[s], sh, init=True)
                lm.mma_wait(pending=0)
                u = lm.load(U, coords=(0, c * 64, t.h, t.b), shape=(64, DV), form="acc")
                d = lm.cast(u, lm.f32) - v
                lm.store(VN, lm.cast(d, lm.bf16), coords=(0, c * 64, t.h, t.b))
                at = (t.b * H + t.h) * L + c * 64
                g = lm.load(G, coords=(at,), shape=(64,), form="rowvec", like=v)
                last = lm.ld(G, at + 63)
                vs.store(lm.cast(d * lm.exp(last - g), lm.bf16))
                state = state * lm.exp(last)
                lm.fence_proxy()
                lm.sync(meet)
                lm.mma(state, vs.T, k[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
