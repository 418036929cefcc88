@cake.schedule(target="sm_90a")
def layernorm_bwd_parts(lm, dY: LM.gmem2d[LM.bf16, "ROWS", "D"], X: LM.gmem2d[LM.bf16, "ROWS", "D"], gamma: LM.gmem1d[LM.f32, "D"], mean: LM.gmem1d[LM.f32, "ROWS"], rstd: LM.gmem1d[LM.f32, "ROWS"],
                        dX: LM.gmem2d[LM.bf16, "ROWS", "D"], dG: LM.gmem2d[LM.f32, "PARTS", "D"], dB: LM.gmem2d[LM.f32, "PARTS", "D"], ROWS: LM.i32, PARTS: LM.i32, *, D=1024, WARPS=4, ROWS_A_CTA=8):
    """dx of a layer norm, and the sums for gamma and beta over the rows of each CTA, which a second launch adds up."""
    lm.launch(grid="tiles")
    lm.assume(PARTS == lm.cdiv(ROWS, ROWS_A_CTA))
    pool = lm.smem(2 * WARPS * 4 * 2)
    s_1 = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    s_2 = pool.view(offset=2 * WARPS * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(PARTS,), names=("p",))
    with work:
        for t in lm.tiles(sched):
            g = lm.load(gamma, coords=(0,), shape=(D,), form="vec")
            dg = lm.frag(shape=(D,), dtype=lm.f32, form="vec", init=0, like=g)
            db = lm.frag(shape=(D,), dtype=lm.f32, form="vec", init=0, like=g)
            hi = lm.min((t.p + 1) * ROWS_A_CTA, ROWS)
            for r in lm.range(t.p * ROWS_A_CTA, hi):
                mu = lm.ld(mean, r)
                rs = lm.ld(rstd, r)
                dy = lm.cast(lm.load(dY, coords=(0, r), shape=(D,), form="vec", like=g, cache="stream"), lm.f32)
                xh = (lm.cast(lm.load(X, coords=(0, r), shape=(D,), form="vec", like=g, cache="stream"), lm.f32) - mu) * rs
                dxh = dy * g
                c1 = lm.reduce(dxh * xh, "add", axis=None, across=work, scratch=s_1[r % 2], sync=meet)
                c2 = lm.reduce(dxh, "add", axis=None, across=work, scratch=s_2[r % 2], sync=meet)
                dx = (dxh - (xh * c1 + c2) * (1.0 / D)) * rs
                lm.store(dX, lm.cast(dx, lm.bf16), coords=(0, r))
                dg = dg + dy * xh
                db = db + dy
            lm.store(dG, dg, coords=(0, t.p))
            lm.store(dB, db, coords=(0, t.p))
