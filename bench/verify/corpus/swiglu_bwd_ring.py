@cake.schedule(target=("sm_120a", "sm_90a"))
def swiglu_bwd_ring(lm, DH: LM.tma2d[LM.bf16, "M", "F"], GU: LM.tma2d[LM.bf16, "M", "F2"], DGU: LM.tma2d[LM.bf16, "M", "F2"], M: LM.i32, F: LM.i32, F2: LM.i32, *, ROWS=32, STAGES=3):
    """Backward of silu(g) * u, gate and up side by side in one tensor: boxes come through a ring and leave through a ring of two."""
    lm.launch(grid="persistent")
    lm.assume(F2 == 2 * F and F % 64 == 0)
    box = ROWS * 64 * 2
    pool = lm.smem((3 * STAGES + 4) * box)
    smem_d = pool.view(offset=0, shape=(ROWS, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_g = pool.view(offset=STAGES * box, shape=(ROWS, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_u = pool.view(offset=2 * STAGES * box, shape=(ROWS, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out_g = pool.view(offset=3 * STAGES * box, shape=(ROWS, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    out_u = pool.view(offset=(3 * STAGES + 2) * box, shape=(ROWS, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    outs = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(F // 64, lm.cdiv(M, ROWS)), names=("f", "m"))

    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            smem_d.tma_load(DH, coords=(t.f * 64, t.m * ROWS), stage=s, barrier=full)
            smem_g.tma_load(GU, coords=(t.f * 64, t.m * ROWS), stage=s, barrier=full)
            smem_u.tma_load(GU, coords=(F + t.f * 64, t.m * ROWS), stage=s, barrier=full)

    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            d = lm.cast(smem_d[s].load(form="vec"), lm.f32)
            g = lm.cast(smem_g[s].load(form="vec"), lm.f32)
            u = lm.cast(smem_u[s].load(form="vec"), lm.f32)
            lm.arrive(empty, stage=s)
            sig = lm.sigmoid(g)
            du = d * g * sig
            dg = d * u * sig * (1.0 + g * (1.0 - sig))
            o = lm.step(outs)
            lm.store_wait(pending=2)
            lm.sync(meet)
            out_g[o].store(lm.cast(dg, lm.bf16))
            out_u[o].store(lm.cast(du, lm.bf16))
            lm.fence_proxy()
            lm.sync(meet)
            out_g[o].tma_store(DGU, coords=(t.f * 64, t.m * ROWS))
            out_u[o].tma_store(DGU, coords=(F + t.f * 64, t.m * ROWS))
        lm.store_wait(pending=0)
