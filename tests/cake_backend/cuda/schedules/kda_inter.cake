import cake


@cake.schedule(target="sm_90a")
def kda_inter(lm, KD: LM.tma3d, QD: LM.tma3d, KR: LM.tma3d, INV: LM.tma3d, MQK: LM.tma3d, GT: LM.tma2d, BETA: LM.tma2d,
              V: LM.tma3d, O: LM.tma3d, S0: LM.gmem3d[LM.f32], S1: LM.gmem3d[LM.f32],
              CU: LM.gmem1d[LM.i32], CHUNK0: LM.gmem1d[LM.i32], H: LM.i32, NSEQ: LM.i32, *, C=64, DK=128, DV=128):
    """Inter-chunk KDA recurrence, one (sequence, head) per CTA, state resident in registers, transposed.

    Workspace tensors come from the intra-chunk kernel, one zero-padded block per (chunk, head):
    KD, QD, KR are (chunks*H, C, DK), INV and MQK (chunks*H, C, C), GT (chunks*H, DK), BETA (chunks*H, C).
    V and O are (tokens, H, DV).  Per chunk, with S^T as (DV, DK):
      U'^T = (V^T - S^T KD^T) * beta      U^T = U'^T INV^T
      O^T  = S^T QD^T + U^T MQK^T         S^T = S^T * gt + U^T KR
    """
    lm.launch(grid="tiles")
    sizes = (C * DK * 2, C * DK * 2, C * DK * 2, C * DV * 2, C * C * 2, C * C * 2)
    off = [2 * sum(sizes[:i]) for i in range(7)]
    pool = lm.smem(off[6] + 2 * 1024 + 2 * C * DV * 2)
    smem_kd = pool.view(offset=off[0], shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_qd = pool.view(offset=off[1], shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_kr = pool.view(offset=off[2], shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_v = pool.view(offset=off[3], shape=(C, DV), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_inv = pool.view(offset=off[4], shape=(C, C), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_mqk = pool.view(offset=off[5], shape=(C, C), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_gt = pool.view(offset=off[6], shape=(DK,), dtype=lm.f32, stage=2)
    smem_beta = pool.view(offset=off[6] + 1024, shape=(C,), dtype=lm.f32, stage=2)
    smem_o = pool.view(offset=off[6] + 2048, shape=(C, DV), dtype=lm.bf16, stage=2, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=232, members=2)      # each warpgroup owns 64 rows of S^T
    load = lm.role(warps=range(8, 12), regs=40)
    inp = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=inp, prod=[load], cons=[math], arrive="tx")                      # 8 views, 1 arrival
    empty = lm.barrier(pipeline=inp, prod=[math], cons=[load], arrive="warp", primed=True)      # 8
    oring = lm.pipeline(stages=2)
    both = lm.named_barrier(math)                               # 256 threads
    sched = lm.scheduler(kind="grid", tiles=(H, NSEQ), names=("h", "seq"))

    with load:
        for t in lm.tiles(sched):
            bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
            for i in lm.range(lm.cdiv(eos - bos, C)):
                s = lm.step(inp)
                w = (lm.ld(CHUNK0, t.seq) + i) * H + t.h
                lm.wait(empty, stage=s)
                smem_kd.tma_load(KD, coords=(0, 0, w), stage=s, barrier=full)
                smem_v.tma_load(V, coords=(0, t.h, bos + i * C), stage=s, barrier=full, box=(DV, 1, C))
                smem_inv.tma_load(INV, coords=(0, 0, w), stage=s, barrier=full)
                smem_beta.tma_load(BETA, coords=(0, w), stage=s, barrier=full)
                smem_qd.tma_load(QD, coords=(0, 0, w), stage=s, barrier=full)
                smem_mqk.tma_load(MQK, coords=(0, 0, w), stage=s, barrier=full)
                smem_kr.tma_load(KR, coords=(0, 0, w), stage=s, barrier=full)
                smem_gt.tma_load(GT, coords=(0, w), stage=s, barrier=full)

    with math:
        for t in lm.tiles(sched):
            bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
            n = lm.cdiv(eos - bos, C)
            v0 = 64 * math.index
            st = lm.load(S0, coords=(0, v0, t.seq * H + t.h), shape=(64, DK), form="acc")       # S^T, f32, 64 regs
            for i in lm.range(n):
                s = lm.step(inp)
                lm.wait(full, stage=s)
                sa = lm.cast(st, lm.bf16, form="a")                             # acc -> a, no data movement
                u = lm.frag(shape=(64, C), dtype=lm.f32, form="acc")
                ot = lm.frag(shape=(64, C), dtype=lm.f32, form="acc")
                lm.mma(u, sa, smem_kd[s], init=True)                            # S^T KD^T
                lm.mma(ot, sa, smem_qd[s], init=True)                           # S^T QD^T, overlaps the U chain
                vt = smem_v[s].cols(v0, 64).T.load(form="acc")                  # ldmatrix.trans
                beta = smem_beta[s].load(form="colvec")
                lm.mma_wait(pending=1)
                ua = lm.cast((vt - u) * beta, lm.bf16, form="a")
                u2 = lm.frag(shape=(64, C), dtype=lm.f32, form="acc")
                lm.mma(u2, ua, smem_inv[s], init=True)
                lm.mma_wait(pending=0)
                ub = lm.cast(u2, lm.bf16, form="a")
                lm.mma(ot, ub, smem_mqk[s])
                st = st * smem_gt[s].load(form="colvec")
                lm.mma(st, ub, smem_kr[s].T)                                    # accumulate into the state
                lm.mma_wait(pending=1)                                          # O^T done, state update in flight
                so = lm.step(oring)
                lm.store_wait(pending=1)
                lm.sync(both)
                smem_o[so].cols(v0, 64).T.store(lm.cast(ot, lm.bf16))           # stmatrix.trans
                lm.fence_proxy()
                lm.sync(both)
                rows = lm.min(C, eos - bos - i * C)
                if math.index == 0:
                    smem_o[so].tma_store(O, coords=(0, t.h, bos + i * C), box=(DV, 1, C), rows=rows)  # never past the sequence end
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(S1, st, coords=(0, v0, t.seq * H + t.h))
        lm.store_wait(pending=0)
