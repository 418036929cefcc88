"""Gated linear attention, the pass over chunks: the state stays in registers, sequences have any length."""


@cake.schedule(target="sm_90a")
def gated_linear_attention(lm, QG: LM.tma3d[LM.bf16, "NC", "C", "DK"], KG: LM.tma3d[LM.bf16, "NC", "C", "DK"], V: LM.tma3d[LM.bf16, "T", "H", "DV"],
                           P: LM.tma3d[LM.bf16, "NC", "C", "C"], DECAY: LM.gmem1d[LM.f32].const, O: LM.tma3d[LM.bf16, "T", "H", "DV"],
                           S1: LM.gmem3d[LM.f32, "NSH", "DV", "DK"], CU: LM.gmem1d[LM.i32].const, CHUNK0: LM.gmem1d[LM.i32].const,
                           T: LM.i32, H: LM.i32, NS: LM.i32, NC: LM.i32, NSH: LM.i32, *, C=64, DK=64, DV=128):
    """Per chunk w with the state S as (DV, DK): O^T = S QG^T + V^T P^T, then S = DECAY[w] S + V^T KG."""
    lm.launch(grid="tiles")
    lm.assume(NSH == NS * H)
    lm.assume_values(CU, 0, T + 1, sorted=True)
    qk, vv, pp = C * DK * 2, C * DV * 2, C * C * 2
    pool = lm.smem(2 * (2 * qk + vv + pp) + 2 * vv)
    sq = pool.view(offset=0, shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
    sk = pool.view(offset=2 * qk, shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
    sv = pool.view(offset=4 * qk, shape=(C, DV), dtype=lm.bf16, stage=2, swizzle="128b")
    sp = pool.view(offset=4 * qk + 2 * vv, shape=(C, C), dtype=lm.bf16, stage=2, swizzle="128b")
    so = pool.view(offset=4 * qk + 2 * vv + 2 * pp, shape=(C, DV), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    oring = lm.pipeline(stages=2)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(H, NS), names=("h", "seq"))

    with load:
        for t in lm.tiles(sched):
            bos = lm.ld(CU, t.seq)
            eos = lm.ld(CU, t.seq + 1)
            for i in lm.range(lm.cdiv(eos - bos, C)):
                w = (lm.ld(CHUNK0, t.seq) + i) * H + t.h
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sq.tma_load(QG, coords=(0, 0, w), stage=s, barrier=full)
                sv.tma_load(V, coords=(0, t.h, bos + i * C), stage=s, barrier=full, box=(DV, 1, C))
                sp.tma_load(P, coords=(0, 0, w), stage=s, barrier=full)
                sk.tma_load(KG, coords=(0, 0, w), stage=s, barrier=full)

    with math:
        for t in lm.tiles(sched):
            bos = lm.ld(CU, t.seq)
            eos = lm.ld(CU, t.seq + 1)
            v0 = 64 * math.index
            st = lm.frag(shape=(64, DK), dtype=lm.f32, form="acc", init=0.0)
            ot = lm.frag(shape=(64, C), dtype=lm.f32, form="acc")
            for i in lm.range(lm.cdiv(eos - bos, C)):
                decay = lm.ld(DECAY, (lm.ld(CHUNK0, t.seq) + i) * H + t.h)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                vt = sv[s].cols(v0, 64).T
                sa = lm.cast(st, lm.bf16, form="a")
                lm.mma(ot, sa, sq[s], init=True)
                lm.mma(ot, vt, sp[s])
                st = st * decay
                lm.mma(st, vt, sk[s].T)
                lm.mma_wait(pending=1)                         # O^T is there, the state's update runs on
                o = lm.step(oring)
                lm.store_wait(pending=1)
                lm.sync(own)
                half = so[o].cols(v0, 64)
                half.T.store(lm.cast(ot, lm.bf16))
                lm.fence_proxy()
                lm.sync(own)
                half.tma_store(O, coords=(v0, t.h, bos + i * C), box=(64, 1, C), rows=lm.min(C, eos - bos - i * C))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(S1, st, coords=(0, v0, t.seq * H + t.h))
        lm.store_wait(pending=0)
