"""Decode with a token table (page size 1), sixteen query heads a KV head as the rows of an mma.sync tile, keys gathered row by row."""


@cake.schedule(target=("sm_80", "sm_89"))
def decode_cp_async_gqa(lm, Q: LM.gmem3d[LM.bf16, "B", "HQ", "D"], KC: LM.gmem3d[LM.bf16, "SLOTS", "HK", "D"], VC: LM.gmem3d[LM.bf16, "SLOTS", "HK", "D"],
                        LEN: LM.gmem1d[LM.i32, "B"], TABLE: LM.gmem2d[LM.i32, "B", "MAXL"], O: LM.gmem3d[LM.bf16, "B", "HQ", "D"],
                        B: LM.i32, HQ: LM.i32, HK: LM.i32, SLOTS: LM.i32, MAXL: LM.i32, scale: LM.f32, *, D=64, GROUP=16, BN=64):
    """Decode with a token table (page size 1), sixteen query heads a KV head as the rows of an mma.sync tile, keys gathered row by row."""
    lm.launch(grid="tiles")
    lm.assume(HQ == HK * GROUP)
    lm.assume_values(LEN, 1, MAXL + 1)
    lm.assume_values(TABLE, 0, SLOTS)
    kb = BN * D * 2
    pool = lm.smem(GROUP * D * 2 + 4 * kb)
    q = pool.view(offset=0, shape=(GROUP, D), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=GROUP * D * 2, shape=(BN, D), dtype=lm.bf16, stage=2, swizzle="128b")
    v = pool.view(offset=GROUP * D * 2 + 2 * kb, shape=(BN, D), dtype=lm.bf16, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 1))
    ring = lm.pipeline(stages=2)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(HK, B), names=("h", "b"))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            q.cp_async(Q, coords=(0, t.h * GROUP, t.b))
            x = lm.frag(shape=(GROUP, BN), dtype=lm.f32, form="acc")
            o = lm.frag(shape=(GROUP, D), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(x, init=-lm.inf)
            den = lm.rowvec(x, init=0.0)
            for i in lm.range(lm.cdiv(n, BN)):
                s = lm.step(ring)
                pos = lm.iota(lm.frag(shape=(BN, D), dtype=lm.f32, form="acc"), 0, base=i * BN)
                rows = lm.load(TABLE, coords=(i * BN, t.b), shape=(BN,), form="rowvec", mask=pos < n, fill=-1)
                k.cp_async_rows(KC, rows=rows, coords=(0, t.h, 0), stage=s)
                v.cp_async_rows(VC, rows=rows, coords=(0, t.h, 0), stage=s)
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(meet)
                lm.mma(x, q.ldmatrix(form="a"), k[s].ldmatrix(form="b"), init=True)
                y = lm.where(lm.iota(x, 1, base=i * BN) < n, x * (scale * 1.44269504), -lm.inf)
                new = lm.max(m, lm.reduce(y, "max", axis=1))
                fix = lm.exp2(m - new)
                p = lm.exp2(y - new)
                den = den * fix + lm.sum(p, axis=1)
                m = new
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), v[s].T.ldmatrix(form="b"))
                lm.sync(meet)
            lm.store(O, lm.cast(o * lm.rcp(den), lm.bf16), coords=(0, t.h * GROUP, t.b))
