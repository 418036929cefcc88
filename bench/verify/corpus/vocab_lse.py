@cake.schedule(target="sm_90a")
def vocab_lse(lm, Hd: LM.tma2d[LM.bf16, "TOK", "D"], Wv: LM.tma2d[LM.bf16, "V", "D"].const, label: LM.gmem1d[LM.i32, "TOK"], loss: LM.gmem1d[LM.f32, "TOK"],
              lse: LM.gmem1d[LM.f32, "TOK"], TOK: LM.i32, V: LM.i32, *, D=256, VB=128, KB=64, SLOTS=4, CAP=30.0):
    """Linear layer and cross entropy in one: logits (soft-capped) are never stored; the hidden rows stay in shared memory, the vocabulary streams by."""
    lm.launch(grid="persistent")
    lm.assume(V > 0)
    h_bytes = 128 * D * 2
    pool = lm.smem(h_bytes + SLOTS * VB * KB * 2)
    h = pool.view(offset=0, shape=(128, D), dtype=lm.bf16, swizzle="128b", stage=1)
    w = pool.view(offset=h_bytes, shape=(VB, KB), dtype=lm.bf16, stage=SLOTS, swizzle="128b")
    cg = lm.role(warps=range(0, 8), members=2, regs=200)
    pr = lm.role(warps=range(8, 12), regs=40)
    hring = lm.pipeline(stages=1)
    h_full = lm.barrier(pipeline=hring, prod=[pr], cons=[cg], arrive="tx")
    h_free = lm.barrier(pipeline=hring, prod=[cg], cons=[pr], arrive="member", primed=True)
    wring = lm.pipeline(stages=SLOTS)
    w_full = lm.barrier(pipeline=wring, prod=[pr], cons=[cg], arrive="tx")
    w_free = lm.barrier(pipeline=wring, prod=[cg], cons=[pr], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(TOK, 128),), names=("b",))
    blocks = lm.cdiv(V, VB)
    with pr:
        for t in lm.tiles(sched):
            hs = lm.step(hring)
            lm.wait(h_free, stage=hs)
            h.tma_load(Hd, coords=(0, t.b * 128), stage=hs, barrier=h_full)
            for v in lm.range(blocks):
                for k in lm.static_range(D // KB):
                    s = lm.step(wring)
                    lm.wait(w_free, stage=s)
                    w.tma_load(Wv, coords=(k * KB, v * VB), stage=s, barrier=w_full, cache="keep")
    with cg:
        z = lm.frag(shape=(64, VB), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            hs = lm.step(hring)
            lm.wait(h_full, stage=hs)
            row = t.b * 128 + cg.index * 64
            want = lm.load(label, coords=(row,), shape=(64,), form="rowvec", like=z, clip=True, fill=-1)
            m = lm.rowvec(z, init=-lm.inf)
            acc = lm.rowvec(z, init=0.0)
            picked = lm.rowvec(z, init=0.0)
            for v in lm.range(blocks):
                for k in lm.static_range(D // KB):
                    s = lm.step(wring)
                    lm.wait(w_full, stage=s)
                    lm.mma(z, h[hs].rows(cg.index * 64, 64).cols(k * KB, KB), w[s], init=(k == 0))
                    lm.mma_wait(pending=0)
                    lm.arrive(w_free, stage=s)
                x = CAP * lm.tanh(z * (1.0 / CAP))
                col = lm.iota(z, 1, base=v * VB)
                picked = picked + lm.reduce(lm.where(col == want, x, 0.0), "add", axis=1)
                x = lm.where(col < V, x, -lm.inf)
                top = lm.max(m, lm.reduce(x, "max", axis=1))
                acc = acc * lm.exp2((m - top) * 1.4426950408889634) + lm.reduce(lm.exp2((x - top) * 1.4426950408889634), "add", axis=1)
                m = top
            lm.arrive(h_free, stage=hs)
            total = m + lm.log(acc)
            lm.store(lse, total, coords=(row,), clip=True)
            lm.store(loss, lm.where(want >= 0, total - picked, 0.0), coords=(row,), clip=True)
