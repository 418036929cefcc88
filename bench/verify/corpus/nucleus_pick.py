@cake.schedule(target=("sm_80", "sm_89", "sm_90a"))
def nucleus_pick(lm, LOGITS: LM.gmem2d[LM.bf16, "ROWS", "V"], TEMP: LM.gmem1d[LM.f32, "ROWS"].const, TOPP: LM.gmem1d[LM.f32, "ROWS"].const, NOISE: LM.gmem2d[LM.f32, "ROWS", "V"].const,
                 TOKEN: LM.gmem1d[LM.i32, "ROWS"], KEPT: LM.gmem1d[LM.i32, "ROWS"], ROWS: LM.i32, *, V=4096, ROUNDS=20, WARPS=8):
    """Top-p sampling without sorting: bisect the probability that the smallest kept token has, then take the largest of kept mass over exponential noise."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    pool = lm.smem(4 * WARPS * 4)
    box = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    ids = pool.view(offset=2 * WARPS * 4, shape=(WARPS,), dtype=lm.i32, stage=2)
    crowd = lm.role(warps=range(0, WARPS))
    gather = lm.named_barrier(crowd)
    flip = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    with crowd:
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(LOGITS, coords=(0, t.r), shape=(V,), form="vec"), lm.f32) * (1.4426950408889634 / lm.ld(TEMP, t.r))
            a = lm.step(flip)
            peak = lm.reduce(x, "max", across=crowd, scratch=box[a], sync=gather)
            e = lm.exp2(x - peak)
            b = lm.step(flip)
            mass = lm.reduce(e, "add", across=crowd, scratch=box[b], sync=gather)
            want = mass * lm.ld(TOPP, t.r)
            lo, hi = mass * 0.0, mass * 0.0 + 1.0
            for i in lm.range(ROUNDS):
                mid = (lo + hi) * 0.5
                s = lm.step(flip)
                above = lm.reduce(lm.where(e >= mid, e, 0.0), "add", across=crowd, scratch=box[s], sync=gather)
                lo = lm.where(above >= want, mid, lo)
                hi = lm.where(above >= want, hi, mid)
            kept = lm.where(e >= lo, e, 0.0)
            c = lm.step(flip)
            count = lm.reduce(lm.where(e >= lo, 1.0, 0.0), "add", across=crowd, scratch=box[c], sync=gather)
            race = kept * lm.rcp(lm.load(NOISE, coords=(0, t.r), shape=(V,), form="vec", like=x, cache="stream"))
            d = lm.step(flip)
            best = lm.reduce(race, "max", across=crowd, scratch=box[d], sync=gather)
            f = lm.step(flip)
            winner = lm.reduce(lm.where(race == best, lm.iota(race, axis=0), V), "min", across=crowd, scratch=ids[f], sync=gather)
            lm.store(KEPT, lm.cast(count, lm.i32), coords=(t.r,))
            lm.store(TOKEN, winner, coords=(t.r,))
