@cake.schedule(target="sm_89")
def int8_kv_decode(lm, Q: LM.gmem3d[LM.bf16, "B", "HQ", 128], KC: LM.gmem3d[LM.i8, "B", "S", 128], VC: LM.gmem3d[LM.i8, "B", "S", 128], KS: LM.gmem2d[LM.f32, "B", "S"], VS: LM.gmem2d[LM.f32, "B", "S"],
                   LEN: LM.gmem1d[LM.i32, "B"], O: LM.gmem3d[LM.bf16, "B", "HQ", 128], B: LM.i32, HQ: LM.i32, S: LM.i32, scale: LM.f32, *, BK=64):
    """Multi-query decode with keys and values in int8, one scale a token: scores are scaled a column, weights are scaled before the second product."""
    lm.launch(grid="tiles")
    lm.assume(HQ > 0 and HQ <= 16)
    lm.assume_values(LEN, 1, S + 1)
    raw = BK * 128
    pool = lm.smem(16 * 256 + 4 * raw)
    smem_q = pool.view(offset=0, shape=(16, 128), dtype=lm.bf16, swizzle="128b")
    smem_k = pool.view(offset=16 * 256, shape=(BK, 128), dtype=lm.i8, stage=2, swizzle="128b")
    smem_v = pool.view(offset=16 * 256 + 2 * raw, shape=(BK, 128), dtype=lm.i8, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 1))
    ring = lm.pipeline(stages=2)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            blocks = lm.cdiv(n, BK)
            smem_q.cp_async(Q, coords=(0, 0, t.b))
            s = lm.step(ring)
            smem_k.cp_async(KC, coords=(0, 0, t.b), stage=s)
            smem_v.cp_async(VC, coords=(0, 0, t.b), stage=s)
            lm.cp_commit()
            o = lm.frag(shape=(16, 128), dtype=lm.f32, form="acc", init=0.0)
            top = lm.rowvec(like=o, init=0.0) - lm.inf
            total = lm.rowvec(like=o, init=0.0)
            for j in lm.range(blocks):
                lm.cp_wait(pending=0)
                lm.sync(meet)
                e = lm.step(ring)
                if j + 1 < blocks:
                    smem_k.cp_async(KC, coords=(0, (j + 1) * BK, t.b), stage=e)
                    smem_v.cp_async(VC, coords=(0, (j + 1) * BK, t.b), stage=e)
                lm.cp_commit()
                c = e.prev()
                acc = lm.frag(shape=(16, BK), dtype=lm.f32, form="acc", init=0.0)
                k = lm.cast(lm.cast(smem_k[c].load(form="acc"), lm.f32), lm.bf16, form="b")
                lm.mma(acc, smem_q.ldmatrix(form="a"), k)
                ks = lm.load(KS, coords=(j * BK, t.b), shape=(BK,), form="colvec", like=acc, clip=True)
                vs = lm.load(VS, coords=(j * BK, t.b), shape=(BK,), form="colvec", like=acc, clip=True)
                x = lm.where(j * BK + lm.iota(acc, 1) < n, acc * ks * scale, -lm.inf)
                new = lm.max(top, lm.reduce(x, "max", axis=1))
                fix = lm.exp(top - new)
                p = lm.exp(x - new)
                total = total * fix + lm.reduce(p, "add", axis=1)
                top = new
                v = lm.transpose(lm.cast(lm.cast(smem_v[c].load(form="acc"), lm.f32), lm.bf16, form="b"))
                o = o * fix
                lm.mma(o, lm.cast(p * vs, lm.bf16, form="a"), v)
            lm.cp_wait(pending=0)
            lm.store(O, lm.cast(o * lm.rcp(total), lm.bf16), coords=(0, 0, t.b), mask=lm.in_bounds(o, HQ, 128))
