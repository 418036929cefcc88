@cake.schedule(target="sm_90a")
def swa_sink_paged(lm, Q: LM.tma3d[LM.bf16, "T", "HQ", 64], KC: LM.tma4d[LM.bf16, "PAGES", 64, "HK", 64], VC: LM.tma4d[LM.bf16, "PAGES", 64, "HK", 64],
                   SINK: LM.gmem1d[LM.f32, "HQ"], CUQ: LM.gmem1d[LM.i32, "B1"], KVLEN: LM.gmem1d[LM.i32, "B"], TABLE: LM.gmem1d[LM.i32, "BP"],
                   O: LM.gmem3d[LM.bf16, "T", "HQ", 64], T: LM.i32, HQ: LM.i32, HK: LM.i32, PAGES: LM.i32, B: LM.i32, B1: LM.i32, MAXP: LM.i32, BP: LM.i32, QT: LM.i32, scale: LM.f32, *,
                   WINDOW=128, STAGES=3):
    """Chunked prefill over a paged cache, a sliding window and one learned sink a head: the sink is a key without a value."""
    lm.launch(grid="persistent")
    lm.assume(B1 == B + 1 and BP == B * MAXP)
    lm.assume(HK > 0)
    lm.assume(HQ % HK == 0)
    lm.assume_values(CUQ, 0, T + 1, sorted=True)
    lm.assume_values(TABLE, 0, PAGES)
    kv_bytes = STAGES * 64 * 64 * 2
    pool = lm.smem(128 * 64 * 2 + 2 * kv_bytes)
    smem_q = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    smem_k = pool.view(offset=128 * 64 * 2, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_v = pool.view(offset=128 * 64 * 2 + kv_bytes, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=208, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    qring = lm.pipeline(stages=1)
    kv = lm.pipeline(stages=STAGES)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(QT, HQ, B), names=("m", "h", "b"))
    group = HQ // HK

    with load:
        for t in lm.tiles(sched):
            q0 = lm.ld(CUQ, t.b)
            qn = lm.ld(CUQ, t.b + 1) - q0
            if t.m * 128 < qn:
                kn = lm.ld(KVLEN, t.b)
                first = kn - qn + t.m * 128
                lo = lm.max(first - WINDOW + 1, 0) // 64
                hi = lm.cdiv(lm.min(first + 128, kn), 64)
                q = lm.step(qring)
                lm.wait(qempty, stage=q)
                smem_q.tma_load(Q, coords=(0, t.h, q0 + t.m * 128), box=(64, 1, 128), stage=q, barrier=qfull)
                for j in lm.range(lo, hi):
                    page = lm.ld(TABLE, t.b * MAXP + j)
                    s = lm.step(kv)
                    lm.wait(empty, stage=s)
                    smem_k.tma_load(KC, coords=(0, t.h // group, 0, page), box=(64, 1, 64, 1), stage=s, barrier=full)
                    smem_v.tma_load(VC, coords=(0, t.h // group, 0, page), box=(64, 1, 64, 1), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            q0 = lm.ld(CUQ, t.b)
            qn = lm.ld(CUQ, t.b + 1) - q0
            if t.m * 128 < qn:
                kn = lm.ld(KVLEN, t.b)
                first = kn - qn + t.m * 128
                lo = lm.max(first - WINDOW + 1, 0) // 64
                hi = lm.cdiv(lm.min(first + 128, kn), 64)
                o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                top = lm.rowvec(like=o, init=0.0) + lm.ld(SINK, t.h) * 1.44269504
                total = lm.rowvec(like=o, init=0.0) + 1.0
                q = lm.step(qring)
                lm.wait(qfull, stage=q)
                for j in lm.range(lo, hi):
                    s = lm.step(kv)
                    lm.wait(full, stage=s)
                    lm.mma(acc, smem_q[q].rows(64 * math.index, 64), smem_k[s], init=True)
                    lm.mma_wait(pending=0)
                    pos = first + 64 * math.index + lm.iota(acc, 0)
                    key = 64 * j + lm.iota(acc, 1)
                    x = lm.where(key <= pos and key > pos - WINDOW, acc * (scale * 1.44269504), -lm.inf)
                    new = lm.max(top, lm.reduce(x, "max", axis=1))
                    fix = lm.exp2(top - new)
                    p = lm.exp2(x - new)
                    total = total * fix + lm.reduce(p, "add", axis=1)
                    top = new
                    o = o * fix
                    lm.mma(o, lm.cast(p, lm.bf16, form="a"), smem_v[s].T)
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                lm.arrive(qempty, stage=q)
                row = t.m * 128 + 64 * math.index
                lm.store(O, lm.cast(o * lm.rcp(total), lm.bf16), coords=(0, t.h, q0 + row + lm.iota(o, 0)), mask=lm.in_bounds(o, qn - row, 64))
