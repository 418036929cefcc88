"""HSTU: pointwise attention of a recommender. O = (silu(Q K^T / sqrt(d)) / n) V, causal within each user's ragged history; no softmax, so nothing is rescaled."""
@cake.schedule(target="sm_90a")
def hstu_silu_attention(lm, Q: LM.gmem3d[LM.bf16, "T", "H", 64], K: LM.tma3d[LM.bf16, "T", "H", 64], V: LM.tma3d[LM.bf16, "T", "H", 64], CU: LM.gmem1d[LM.i32, "B1"], O: LM.gmem3d[LM.bf16, "T", "H", 64],
                        T: LM.i32, H: LM.i32, B: LM.i32, B1: LM.i32, QT: LM.i32, scale: LM.f32, *, STAGES=3):
    lm.launch(grid="tiles")
    lm.assume(B1 == B + 1)
    lm.assume_values(CU, 0, T + 1, sorted=True)
    bytes_of_one = 64 * 64 * 2
    pool = lm.smem(2 * STAGES * bytes_of_one)
    k_view = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    v_view = pool.view(offset=STAGES * bytes_of_one, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    mover = lm.role(warps=range(4, 5))
    group = lm.role(warps=range(0, 4))
    kring = lm.pipeline(stages=STAGES)
    vring = lm.pipeline(stages=STAGES)
    kfull = lm.barrier(pipeline=kring, prod=[mover], cons=[group])
    kfree = lm.barrier(pipeline=kring, prod=[group], cons=[mover], arrive="member", primed=True)
    vfull = lm.barrier(pipeline=vring, prod=[mover], cons=[group])
    vfree = lm.barrier(pipeline=vring, prod=[group], cons=[mover], arrive="member", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(QT, H, B), names=("q", "h", "b"), raster="heavy_first")
    with mover:
        for t in lm.tiles(sched):
            begin = lm.ld(CU, t.b)
            length = lm.ld(CU, t.b + 1) - begin
            if t.q * 64 < length:
                for j in lm.range(t.q + 1):
                    sk = lm.step(kring)
                    lm.wait(kfree, stage=sk)
                    k_view.tma_load(K, coords=(0, t.h, begin + 64 * j), box=(64, 1, 64), stage=sk, barrier=kfull)
                    sv = lm.step(vring)
                    lm.wait(vfree, stage=sv)
                    v_view.tma_load(V, coords=(0, t.h, begin + 64 * j), box=(64, 1, 64), stage=sv, barrier=vfull)
    with group:
        for t in lm.tiles(sched):
            begin = lm.ld(CU, t.b)
            length = lm.ld(CU, t.b + 1) - begin
            if t.q * 64 < length:
                o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0)
                rows = t.q * 64 + lm.iota(o, 0)
                q = lm.load(Q, coords=(0, t.h, begin + rows), shape=(64, 64), form="a", like=o, mask=rows < length)
                z = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
                inv_n = 1.0 / lm.cast(length, lm.f32)
                for j in lm.range(t.q + 1):
                    sk = lm.step(kring)
                    lm.wait(kfull, stage=sk)
                    lm.mma(z, q, k_view[sk], init=True)
                    lm.mma_wait()
                    lm.arrive(kfree, stage=sk)
                    w = lm.silu(z * scale) * inv_n
                    if j == t.q:
                        w = lm.where(lm.iota(w, 1) <= lm.iota(w, 0), w, 0.0)
                    sv = lm.step(vring)
                    lm.wait(vfull, stage=sv)
                    lm.mma(o, lm.cast(w, lm.bf16, form="a"), v_view[sv].T)
                    lm.mma_wait()
                    lm.arrive(vfree, stage=sv)
                lm.store(O, lm.cast(o, lm.bf16), coords=(0, t.h, begin + rows), mask=rows < length)
