@cake.schedule(target="sm_90a")
def swiglu_multicast(lm, X: LM.tma2d[LM.bf16, "T", "H"], WG: LM.tma2d[LM.bf16, "I", "H"].const, WU: LM.tma2d[LM.bf16, "I", "H"].const, OUT: LM.tma2d[LM.bf16, "T", "I"],
                T: LM.i32, H: LM.i32, I: LM.i32, *, NB=64, HB=64, RING=5):
    """silu(X WG^T) * (X WU^T): both products share the tile of X, in one group; cluster of two along T multicasts the weights."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(H > 0)
    lm.assume(H % 8 == 0)
    lm.assume(I % 8 == 0)
    one = 128 * HB * 2
    two = NB * HB * 2
    mem = lm.smem(RING * (one + 2 * two) + 128 * NB * 2)
    xs = mem.view(offset=0, shape=(128, HB), dtype=lm.bf16, stage=RING, swizzle="128b")
    gs = mem.view(offset=RING * one, shape=(NB, HB), dtype=lm.bf16, stage=RING, swizzle="128b")
    us = mem.view(offset=RING * (one + two), shape=(NB, HB), dtype=lm.bf16, stage=RING, swizzle="128b")
    os = mem.view(offset=RING * (one + 2 * two), shape=(128, NB), dtype=lm.bf16, swizzle="128b")
    mm = lm.role(warps=range(0, 8), members=2)
    tma = lm.role(warps=range(8, 9))
    ring = lm.pipeline(stages=RING)
    have = lm.barrier(pipeline=ring, prod=[tma], cons=[mm], arrive="tx")
    done = lm.barrier(pipeline=ring, prod=[mm], cons=[tma], arrive="member", primed=True, scope="cluster")
    all8 = lm.named_barrier(mm)
    grid = lm.scheduler(kind="static", tiles=(lm.cdiv(T, 128), lm.cdiv(I, NB)), names=("t", "i"))
    hb = lm.cdiv(H, HB)
    with tma:
        for g in lm.tiles(grid):
            for h in lm.range(hb):
                z = lm.step(ring)
                lm.wait(done, stage=z)
                xs.tma_load(X, coords=(h * HB, g.t * 128), stage=z, barrier=have)
                gs.tma_load(WG, coords=(h * HB, g.i * NB), stage=z, barrier=have, multicast="t")
                us.tma_load(WU, coords=(h * HB, g.i * NB), stage=z, barrier=have, multicast="t")
    with mm:
        gate = lm.frag(shape=(64, NB), dtype=lm.f32, form="acc")
        up = lm.frag(shape=(64, NB), dtype=lm.f32, form="acc")
        for g in lm.tiles(grid):
            for h in lm.range(hb):
                z = lm.step(ring)
                lm.wait(have, stage=z)
                with lm.mma_group():
                    lm.mma(gate, xs[z].rows(64 * mm.index, 64), gs[z], init=(h == 0))
                    lm.mma(up, xs[z].rows(64 * mm.index, 64), us[z], init=(h == 0))
                lm.mma_wait(pending=1)
                if h > 0:
                    lm.arrive(done, stage=z.prev())
            lm.mma_wait(pending=0)
            lm.arrive(done, stage=lm.at(ring))
            lm.store_wait(pending=0)
            lm.sync(all8)
            os.rows(64 * mm.index, 64).store(lm.cast(lm.silu(gate) * up, lm.bf16))
            lm.fence_proxy()
            lm.sync(all8)
            if mm.index == 0:
                os.tma_store(OUT, coords=(g.i * NB, g.t * 128))
        lm.store_wait(pending=0)
