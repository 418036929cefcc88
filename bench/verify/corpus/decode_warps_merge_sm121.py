@cake.schedule(target=("sm_120a", "sm_121a"))
def decode_warps_merge_sm121(lm, Q: LM.gmem3d[LM.bf16, "B", "H", 128], K: LM.tma4d[LM.bf16, "B", "HK", "S", 128], V: LM.tma4d[LM.bf16, "B", "HK", "S", 128], LEN: LM.gmem1d[LM.i32, "B"], O: LM.gmem3d[LM.bf16, "B", "H", 128], B: LM.i32, H: LM.i32, HK: LM.i32, S: LM.i32, scale: LM.f32, *, G=8, STAGES=2, WARPS=4):
    """Heads of a group share keys: every warp takes 16 of a block's 64 keys through a softmax of its own; at the end each leaves its part and the first warp adds them up."""
    lm.launch(grid="tiles", ctas_per_sm=1)
    lm.assume(H == HK * G)
    lm.assume_values(LEN, 1, S + 1)
    kv = 64 * 256
    pool = lm.smem(2 * STAGES * kv + WARPS * 128)
    sk = pool.view(offset=0, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sv = pool.view(offset=STAGES * kv, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    left = pool.view(offset=0, shape=(16 * WARPS, 128), dtype=lm.f32)
    tops = pool.view(offset=2 * STAGES * kv, shape=(16,), dtype=lm.f32, stage=WARPS)
    sums = pool.view(offset=2 * STAGES * kv + WARPS * 64, shape=(16,), dtype=lm.f32, stage=WARPS)
    load = lm.role(warps=range(WARPS, WARPS + 1))
    math = lm.role(warps=range(0, WARPS), members=WARPS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    warps_meet = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(HK, B), names=("h", "b"))
    with load:
        for t in lm.tiles(sched):
            for j in lm.range(lm.cdiv(lm.ld(LEN, t.b), 64)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sk.tma_load(K, coords=(0, 64 * j, t.h, t.b), stage=s, barrier=full)
                sv.tma_load(V, coords=(0, 64 * j, t.h, t.b), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            o = lm.frag(shape=(16, 128), dtype=lm.f32, form="acc", init=0)
            q = lm.load(Q, coords=(0, t.h * G, t.b), shape=(16, 128), form="a", mask=lm.in_bounds(o, G, 128))
            m = lm.rowvec(o, init=-1e30)
            l = lm.rowvec(o, init=0.0)
            lo = 16 * math.index
            for j in lm.range(lm.cdiv(n, 64)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                z = lm.frag(shape=(16, 16), dtype=lm.f32, form="acc", init=0)
                lm.mma(z, q, sk[s].rows(lo, 16).ldmatrix(form="b"))
                z = lm.where(lm.iota(z, 1) + (64 * j + lo) < n, z * scale, -lm.inf)
                top = lm.max(m, lm.reduce(z, "max", axis=1))
                p = lm.exp2(z - top)
                fix = lm.exp2(m - top)
                l = l * fix + lm.sum(p, axis=1)
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), sv[s].rows(lo, 16).T.ldmatrix(form="b"))
                m = top
                lm.arrive(empty, stage=s)
            lm.sync(warps_meet)
            left.rows(lo, 16).store(o)
            tops[math.index].store(m)
            sums[math.index].store(l)
            lm.sync(warps_meet)
            if math.index == 0:
                best = m
                for w in lm.static_range(1, WARPS):
                    best = lm.max(best, tops[w].load(form="rowvec", like=o))
                total = l * lm.exp2(m - best)
                o = o * lm.exp2(m - best)
                for w in lm.static_range(1, WARPS):
                    by = lm.exp2(tops[w].load(form="rowvec", like=o) - best)
                    total = total + sums[w].load(form="rowvec", like=o) * by
                    o = o + left.rows(16 * w, 16).load(form="acc") * by
                lm.store(O, lm.cast(o / total, lm.bf16), coords=(0, t.h * G, t.b), mask=lm.in_bounds(o, G, 128))
