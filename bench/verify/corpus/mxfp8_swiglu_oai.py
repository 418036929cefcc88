@cake.schedule(target=("sm_120a", "sm_121a"))
def mxfp8_swiglu_oai(lm, X: LM.tma2d[LM.e4m3, "M", "K"], SX: LM.gmem2d[LM.u32, "M", "KW"], W: LM.tma2d[LM.e4m3, "N2", "K"], SW: LM.gmem2d[LM.u32, "N2", "KW"],
                     bias: LM.gmem1d[LM.f32, "N2"], Y: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, K: LM.i32, KW: LM.i32, N2: LM.i32, N: LM.i32,
                     *, STAGES=3, LIMIT=7.0, ALPHA=1.702):
    """The up-projection of gpt-oss: two products of mxfp8 with bias, gate clamped from above, up from both sides, gate sigmoid(alpha gate) (up + 1).
    The first N rows of W are the gate, the others up. A word of SX, SW holds the four block scales of 128 columns."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 128 == 0)
    lm.assume(KW * 128 == K)
    lm.assume(N2 == 2 * N)
    lm.assume(N % 64 == 0)
    pool = lm.smem(STAGES * (64 + 64 + 64) * 128)
    x_s = pool.view(offset=0, shape=(64, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    g_s = pool.view(offset=STAGES * 64 * 128, shape=(64, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    u_s = pool.view(offset=2 * STAGES * 64 * 128, shape=(64, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), N // 64), names=("m", "n"))
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(KW):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                x_s.tma_load(X, coords=(k * 128, t.m * 64), stage=s, barrier=full)
                g_s.tma_load(W, coords=(k * 128, t.n * 64), stage=s, barrier=full)
                u_s.tma_load(W, coords=(k * 128, N + t.n * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            gate = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            up = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(KW):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for j in lm.static_range(4):
                    a = x_s[s].cols(32 * j, 32).ldmatrix(form="a")
                    bg = g_s[s].cols(32 * j, 32).ldmatrix(form="b")
                    bu = u_s[s].cols(32 * j, 32).ldmatrix(form="b")
                    wa = lm.load(SX, coords=(k, lm.iota(gate, 0, base=t.m * 64)), shape=(64,), form="rowvec", like=a, clip=True)
                    wg = lm.load(SW, coords=(k, lm.iota(bg, 0, base=t.n * 64)), shape=(64,), form="rowvec", like=bg)
                    wu = lm.load(SW, coords=(k, lm.iota(bu, 0, base=N + t.n * 64)), shape=(64,), form="rowvec", like=bu)
                    lm.mma(gate, a, bg, scale_a=lm.scales(wa, 32, lm.ue8m0, layout="frag_row", first=j), scale_b=lm.scales(wg, 32, lm.ue8m0, layout="frag_row", first=j))
                    lm.mma(up, a, bu, scale_a=lm.scales(wa, 32, lm.ue8m0, layout="frag_row", first=j), scale_b=lm.scales(wu, 32, lm.ue8m0, layout="frag_row", first=j))
                lm.arrive(empty, stage=s)
            g = lm.min(gate + lm.load(bias, coords=(t.n * 64,), shape=(64,), form="colvec", like=gate), LIMIT)
            u = lm.max(lm.min(up + lm.load(bias, coords=(N + t.n * 64,), shape=(64,), form="colvec", like=up), LIMIT), -LIMIT)
            y = g * lm.sigmoid(g * ALPHA) * (u + 1.0)
            lm.store(Y, lm.cast(y, lm.bf16), coords=(t.n * 64, t.m * 64), mask=lm.in_bounds(y, M - t.m * 64, 64))
