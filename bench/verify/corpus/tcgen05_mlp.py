"""Two products in a row on datacentre Blackwell: the epilogue of the first writes the operand of the second to shared memory."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_mlp(lm, X: LM.tma2d[LM.bf16, "M", "D"], W1: LM.tma2d[LM.bf16, "F", "D"].const, W2: LM.tma2d[LM.bf16, "D", "F"].const,
                Y: LM.gmem2d[LM.f32, "M", "D"], M: LM.i32, F: LM.i32, *, D=64, BF=64, STAGES=2):
    """Y = gelu(X W1^T) W2^T; the hidden units in chunks of BF, each chunk's activations in one of two slots."""
    lm.launch(grid="persistent")
    lm.assume(F > 0)
    lm.assume(F % 8 == 0)
    x_bytes, w_bytes, h_bytes = 128 * D * 2, STAGES * BF * D * 2, 2 * 128 * BF * 2
    pool = lm.smem(x_bytes + 2 * w_bytes + h_bytes)
    sx = pool.view(offset=0, shape=(128, D), dtype=lm.bf16, swizzle="128b")
    sw1 = pool.view(offset=x_bytes, shape=(BF, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sw2 = pool.view(offset=x_bytes + w_bytes, shape=(D, BF), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sh = pool.view(offset=x_bytes + 2 * w_bytes, shape=(128, BF), dtype=lm.bf16, stage=2, swizzle="128b")
    hidden = lm.tmem(cols=0, width=2 * BF, shape=(128, 2 * BF), dtype=lm.f32)
    result = lm.tmem(cols=2 * BF, width=D, shape=(128, D), dtype=lm.f32)
    act = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    mma = lm.role(warps=range(5, 6))
    xr = lm.pipeline(stages=1)
    x_full = lm.barrier(pipeline=xr, prod=[load], cons=[mma], arrive="tx")
    x_empty = lm.barrier(pipeline=xr, prod=[mma], cons=[load], arrive="mma", primed=True)
    y_full = lm.barrier(pipeline=xr, prod=[mma], cons=[act], arrive="mma")
    y_empty = lm.barrier(pipeline=xr, prod=[act], cons=[mma], arrive="warp", primed=True)
    wr = lm.pipeline(stages=STAGES)
    w_full = lm.barrier(pipeline=wr, prod=[load], cons=[mma], arrive="tx")
    w_empty = lm.barrier(pipeline=wr, prod=[mma], cons=[load], arrive="mma", primed=True)
    hr = lm.pipeline(stages=2)
    h_full = lm.barrier(pipeline=hr, prod=[mma], cons=[act], arrive="mma")
    a_full = lm.barrier(pipeline=hr, prod=[act], cons=[mma], arrive="warp")
    a_empty = lm.barrier(pipeline=hr, prod=[mma], cons=[act], arrive="mma", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128),), names=("m",))
    chunks = lm.cdiv(F, BF)

    with load:
        for t in lm.tiles(sched):
            x = lm.step(xr)
            lm.wait(x_empty, stage=x)
            sx.tma_load(X, coords=(0, t.m * 128), stage=x, barrier=x_full)
            for f in lm.range(chunks):
                s = lm.step(wr)
                lm.wait(w_empty, stage=s)
                sw1.tma_load(W1, coords=(0, f * BF), stage=s, barrier=w_full)
                sw2.tma_load(W2, coords=(f * BF, 0), stage=s, barrier=w_full)

    with mma:
        for t in lm.tiles(sched):
            x = lm.step(xr)
            lm.wait(x_full, stage=x)
            lm.wait(y_empty, stage=x)
            for f in lm.range(chunks):
                s = lm.step(wr)
                lm.wait(w_full, stage=s)
                h = lm.step(hr)
                lm.mma(hidden.cols(BF * h.index, BF), sx, sw1[s], init=True)
                lm.commit(h_full, stage=h)
                lm.wait(a_full, stage=h)
                lm.mma(result, sh[h], sw2[s], init=(f == 0))
                lm.commit(w_empty, stage=s)
                lm.commit(a_empty, stage=h)
            lm.commit(x_empty, stage=x)
            lm.commit(y_full, stage=x)

    with act:
        for t in lm.tiles(sched):
            for f in lm.range(chunks):
                h = lm.step(hr)
                lm.wait(h_full, stage=h)
                v = lm.tmem_load(hidden.cols(BF * h.index, BF))
                lm.tmem_wait("ld")
                lm.wait(a_empty, stage=h)
                sh[h].store(lm.cast(lm.gelu(v), lm.bf16))
                lm.fence_proxy()
                lm.arrive(a_full, stage=h)
            y = lm.step(xr)
            lm.wait(y_full, stage=y)
            r = lm.tmem_load(result)
            lm.tmem_wait("ld")
            lm.arrive(y_empty, stage=y)
            lm.store(Y, r, coords=(0, t.m * 128), clip=True)
