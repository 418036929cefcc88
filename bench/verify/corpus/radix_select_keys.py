@cake.schedule(target=("sm_90a", "sm_121a"))
def radix_select_keys(lm, KEYS: LM.gmem2d[LM.u32, "R", "N"], KTH: LM.gmem1d[LM.u32, "R"], OUT: LM.gmem2d[LM.u32, "R", "N"], R: LM.i32, N: LM.i32, TOP: LM.i32, *, WARPS=8):
    """The TOP largest keys of each row survive, the others become 0: the key in place TOP is found byte by byte from histograms."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(TOP > 0 and TOP <= N)
    pool = lm.smem(1024 + 16)
    hist = pool.view(offset=0, shape=(256,), dtype=lm.i32)
    found = pool.view(offset=1024, shape=(4,), dtype=lm.u32)
    work = lm.role(warps=range(0, WARPS))
    pick = lm.role(warps=range(WARPS, WARPS + 1))
    everyone = lm.named_barrier([work, pick])
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",))
    chunk = WARPS * 128

    with work:
        for t in lm.tiles(sched):
            prefix = lm.cast(0, lm.u32)
            for b in lm.static_range(4):
                hist.store(lm.frag(shape=(256,), dtype=lm.i32, form="vec", init=0))
                lm.sync(everyone)
                for c in lm.range(lm.cdiv(N, chunk)):
                    keys = lm.load(KEYS, coords=(c * chunk, t.r), shape=(chunk,), form="vec", clip=True)
                    high = keys >> lm.cast(24 - 8 * b, lm.u32)
                    n = c * chunk + lm.iota(keys, 0)
                    same = n < N and (high >> 8) == prefix
                    ones = lm.frag(shape=(chunk,), dtype=lm.i32, form="vec", like=keys, init=1)
                    hist.atomic(ones, lm.where(same, lm.cast(high & 255, lm.i32), -1), op="add")
                lm.sync(everyone)
                lm.sync(everyone)
                prefix = prefix * 256 + found.ld(0)
            for c in lm.range(lm.cdiv(N, chunk)):
                keys = lm.load(KEYS, coords=(c * chunk, t.r), shape=(chunk,), form="vec", clip=True)
                lm.store(OUT, lm.where(keys >= prefix, keys, 0), coords=(c * chunk, t.r), clip=True)
            lm.store(KTH, prefix, coords=(t.r,))

    with pick:
        for t in lm.tiles(sched):
            left = TOP
            for b in lm.static_range(4):
                lm.sync(everyone)
                lm.sync(everyone)
                n = hist.load(form="vec")
                upto = lm.scan(n, "add", axis=0)
                all = lm.reduce(n, "add", axis=0)
                above = all - upto
                digit = lm.reduce(lm.where(above < left and above + n >= left, lm.iota(n, 0), 0), "add", axis=0)
                rest = lm.reduce(lm.where(above < left and above + n >= left, left - above, 0), "add", axis=0)
                found.store(lm.frag(shape=(4,), dtype=lm.u32, form="vec", init=0) + lm.cast(digit, lm.u32))
                left = rest
                lm.sync(everyone)
