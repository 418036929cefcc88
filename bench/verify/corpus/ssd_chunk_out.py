@cake.schedule(target="sm_90a")
def ssd_chunk_out(lm, X: LM.tma3d[LM.bf16, "ROWS", "H", 64], BM: LM.tma3d[LM.bf16, "ROWS", "G", 128], CM: LM.tma3d[LM.bf16, "ROWS", "G", 128],
                  CUM: LM.tma2d[LM.f32, "HB", "T"], DT: LM.tma2d[LM.f32, "HB", "T"], D: LM.gmem1d[LM.f32, "H"].const,
                  Y: LM.gmem3d[LM.bf16, "ROWS", "H", 64], FINAL: LM.gmem3d[LM.f32, "HB", 64, 128],
                  ROWS: LM.i32, H: LM.i32, G: LM.i32, HB: LM.i32, T: LM.i32, BATCH: LM.i32, *, STAGES=3):
    """State-space duality, one head of one sequence a CTA: chunks of 64 tokens, the transposed state (64 x 128) stays in the accumulator and is handed to the product through shared memory."""
    lm.launch(grid="tiles")
    lm.assume(T > 0 and T % 64 == 0 and ROWS == BATCH * T and HB == H * BATCH)
    lm.assume(G > 0 and H % G == 0)
    xb, nb = 64 * 64 * 2, 64 * 128 * 2
    base = STAGES * (xb + 2 * nb)
    pool = lm.smem(base + nb + STAGES * 512)
    xs = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    bs = pool.view(offset=STAGES * xb, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    cs = pool.view(offset=STAGES * (xb + nb), shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    state = pool.view(offset=base, shape=(64, 128), dtype=lm.bf16, swizzle="128b")
    cums = pool.view(offset=base + nb, shape=(64,), dtype=lm.f32, stage=STAGES)
    dts = pool.view(offset=base + nb + STAGES * 256, shape=(64,), dtype=lm.f32, stage=STAGES)
    scan = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[scan], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[scan], cons=[load], arrive="warp", primed=True)
    team = lm.named_barrier(scan)
    sched = lm.scheduler(kind="grid", tiles=(H, BATCH), names=("h", "b"))

    with load:
        for t in lm.tiles(sched):
            g = t.h // (H // G)
            for c in lm.range(T // 64):
                s = lm.step(ring)
                row = t.b * T + c * 64
                lm.wait(empty, stage=s)
                cs.tma_load(CM, coords=(0, g, row), stage=s, barrier=full, box=(128, 1, 64))
                bs.tma_load(BM, coords=(0, g, row), stage=s, barrier=full, box=(128, 1, 64))
                xs.tma_load(X, coords=(0, t.h, row), stage=s, barrier=full, box=(64, 1, 64))
                cums.tma_load(CUM, coords=(c * 64, t.b * H + t.h), stage=s, barrier=full)
                dts.tma_load(DT, coords=(c * 64, t.b * H + t.h), stage=s, barrier=full)

    with scan:
        for t in lm.tiles(sched):
            skip = lm.ld(D, t.h)
            st = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
            z = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            y = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            for c in lm.range(T // 64):
                s = lm.step(ring)
                state.store(lm.cast(st, lm.bf16))
                lm.fence_proxy()
                lm.sync(team)
                lm.wait(full, stage=s)
                lm.mma(z, cs[s], bs[s], init=True)
                lm.mma(y, cs[s], state, init=True)
                ai = cums[s].load(form="rowvec", like=z)
                aj = cums[s].load(form="colvec", like=z)
                dt = dts[s].load(form="colvec", like=z)
                last = cums[s].ld(63)
                lm.mma_wait(pending=0)
                low = lm.iota(z, axis=1) <= lm.iota(z, axis=0)
                w = lm.where(low, z * lm.exp2(lm.where(low, ai - aj, 0.0)) * dt, 0.0)
                y = y * lm.exp2(ai)
                wa = lm.cast(w, lm.bf16, form="a")
                lm.mma(y, wa, xs[s].T)
                xt = xs[s].T.load(form="acc", like=z)
                xa = lm.cast(lm.cast(xt, lm.f32) * (dt * lm.exp2(last - aj)), lm.bf16, form="a")
                x = lm.cast(xs[s].load(form="acc", like=z), lm.f32)
                lm.mma_wait(pending=0)
                st = st * lm.exp2(last)
                lm.mma(st, xa, bs[s].T)
                lm.store(Y, lm.cast(y + skip * x, lm.bf16), coords=(0, t.h, t.b * T + c * 64 + lm.iota(y, axis=0)))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(FINAL, st, coords=(0, 0, t.b * H + t.h))
