@cake.schedule(target=("sm_80", "sm_90a", "sm_100a"))
def spec_reject(lm, draft: LM.gmem1d[LM.i32, "TOK"], cu: LM.gmem1d[LM.i32, "BP"], q: LM.gmem2d[LM.f32, "TOK", "V"], p: LM.gmem2d[LM.f32, "TOK", "V"],
                q1: LM.gmem1d[LM.f32, "TOKV"], p1: LM.gmem1d[LM.f32, "TOKV"],
                u: LM.gmem1d[LM.f32, "TOK"], noise: LM.gmem2d[LM.f32, "B", "V"], bonus: LM.gmem1d[LM.i32, "B"], out: LM.gmem2d[LM.i32, "B", "K1"],
                TOK: LM.i32, TOKV: LM.i32, BP: LM.i32, B: LM.i32, V: LM.i32, K1: LM.i32, *, WARPS=4, C=512):
    """Speculative decoding: a request's draft tokens are accepted while p >= u q; the first rejected one is replaced by
    argmax(max(p - q, 0) / noise); where all are accepted the bonus token follows. Places behind stay -1 (set by the caller).
    q1 and p1 are the same memory as q and p, flat."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    lm.assume(BP == B + 1)
    lm.assume(TOKV == TOK * V)
    lm.assume_values(cu, 0, TOK + 1, sorted=True)
    lm.assume_values(draft, 0, V)
    pool = lm.smem(WARPS * 4 * 2)
    best_s = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32)
    place_s = pool.view(offset=WARPS * 4, shape=(WARPS,), dtype=lm.i32)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            first = lm.ld(cu, t.b)
            n = lm.min(lm.ld(cu, t.b + 1) - first, K1 - 1)
            alive = 1
            for i in lm.range(n):
                if alive > 0:
                    tok = lm.ld(draft, first + i)
                    at = lm.cast(first + i, lm.i64) * V + tok
                    if lm.ld(p1, at) >= lm.ld(u, first + i) * lm.ld(q1, at):
                        lm.store(out, tok, coords=(i, t.b))
                    else:
                        alive = 0
                        best = -1.0
                        place = 0
                        for c in lm.range(lm.cdiv(V, C)):
                            pc = lm.load(p, coords=(c * C, first + i), shape=(C,), form="vec", clip=True)
                            qc = lm.load(q, coords=(c * C, first + i), shape=(C,), form="vec", like=pc, clip=True)
                            nc = lm.load(noise, coords=(c * C, t.b), shape=(C,), form="vec", like=pc, clip=True, fill=1.0)
                            r = lm.where(lm.iota(pc, 0, base=c * C) < V, lm.max(pc - qc, 0.0) / nc, -2.0)
                            top = lm.reduce(r, "max", across=work, scratch=best_s, sync=meet)
                            here = lm.reduce(lm.where(r == top, lm.iota(r, 0, base=c * C), V), "min", across=work, scratch=place_s, sync=meet)
                            place = lm.where(top > best, here, place)
                            best = lm.max(best, top)
                        lm.store(out, place, coords=(i, t.b))
            if alive > 0:
                lm.store(out, lm.ld(bonus, t.b), coords=(n, t.b))
