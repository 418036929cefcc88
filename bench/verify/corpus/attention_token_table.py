"""Decode attention over a table of tokens: keys and values come row by row with cp.async, one block ahead, one warp does everything."""


@cake.schedule(target=("sm_80", "sm_89"))
def attention_token_table(lm, Q: LM.gmem3d[LM.bf16, "NB", 16, "D"], KV: LM.gmem2d[LM.bf16, "SLOTS", "D2"], PTR: LM.gmem1d[LM.i32, "NB1"].const,
                          SLOT: LM.gmem1d[LM.i32, "USED"].const, O: LM.gmem3d[LM.bf16, "NB", 16, "D"], NB: LM.i32, NB1: LM.i32, SLOTS: LM.i32, USED: LM.i32,
                          scale_log2: LM.f32, *, D=64, D2=128, BN=32, STAGES=2):
    """O[b] = softmax(scale Q[b] K^T) V over the rows SLOT[PTR[b] .. PTR[b + 1]] of KV, keys left, values right."""
    lm.launch(grid="tiles")
    lm.assume(NB1 == NB + 1)
    lm.assume_values(PTR, 0, USED + 1, sorted=True)
    lm.assume_values(SLOT, 0, SLOTS)
    slot_bytes = STAGES * BN * D2 * 2
    pool = lm.smem(slot_bytes + STAGES * BN * 4)
    kv = pool.view(offset=0, shape=(BN, D2), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    which = pool.view(offset=slot_bytes, shape=(BN,), dtype=lm.i32, stage=STAGES)
    work = lm.role(warps=range(0, 1))
    ring = lm.pipeline(stages=STAGES)
    here = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(NB,), names=("b",))

    with work:
        for t in lm.tiles(sched):
            lo = lm.ld(PTR, t.b)
            n = lm.ld(PTR, t.b + 1) - lo
            o = lm.frag(shape=(16, D), dtype=lm.f32, form="acc", init=0.0)
            sc = lm.frag(shape=(16, BN), dtype=lm.f32, form="acc")
            q = lm.load(Q, coords=(0, 0, t.b), shape=(16, D), form="a", like=sc)
            m = lm.rowvec(sc, init=-1e30)
            l = lm.rowvec(sc, init=0.0)

            ahead = lm.step(ring)
            at = lm.load(SLOT, coords=(lo,), shape=(BN,), form="colvec", like=sc, mask=lm.iota(sc, axis=1) < n, fill=-1)
            which[ahead].store(at)
            lm.sync(here)
            kv.cp_async_rows(KV, rows=which[ahead], coords=(0, 0), stage=ahead)
            lm.cp_commit()
            for j in lm.range(lm.cdiv(n, BN)):
                ahead = lm.step(ring)
                at = lm.load(SLOT, coords=(lo + (j + 1) * BN,), shape=(BN,), form="colvec", like=sc, mask=lm.iota(sc, axis=1, base=(j + 1) * BN) < n, fill=-1)
                which[ahead].store(at)
                lm.sync(here)
                kv.cp_async_rows(KV, rows=which[ahead], coords=(0, 0), stage=ahead)
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(here)
                now = kv[ahead.prev()]
                k = now.cols(0, D).ldmatrix(form="b", like=sc)
                lm.mma(sc, q, k, init=True)
                x = lm.where(lm.iota(sc, axis=1, base=j * BN) < n, sc, -lm.inf)
                top = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2((x - top) * scale_log2)
                fix = lm.exp2((m - top) * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1)
                o = o * fix
                v = now.cols(D, D).T.ldmatrix(form="b", like=o)
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), v)
                m = top
                lm.sync(here)
            lm.cp_wait(pending=0)
            lm.store(O, lm.cast(lm.where(l > 0.0, o * lm.rcp(l), 0.0), lm.bf16), coords=(0, 0, t.b))
