@cake.schedule(target="sm_80")
def tree_attention_masked(lm, Q: LM.gmem4d[LM.bf16, "B", "HQ", "ND", 128], KC: LM.gmem4d[LM.bf16, "B", "HK", "S", 128], VC: LM.gmem4d[LM.bf16, "B", "HK", "S", 128],
                          TREE: LM.gmem2d[LM.u32, "B", "ND"], CTX: LM.gmem1d[LM.i32, "B"], O: LM.gmem4d[LM.bf16, "B", "HQ", "ND", 128],
                          B: LM.i32, ND: LM.i32, S: LM.i32, HQ: LM.i32, HK: LM.i32, scale: LM.f32, *, BK=64):
    """Verification of a tree of up to 32 draft tokens: each sees the context, and of the drafts behind it those in its mask word."""
    lm.launch(grid="tiles")
    lm.assume(ND > 0 and ND <= 32 and HK > 0)
    lm.assume(HQ % HK == 0)
    lm.assume_values(CTX, 0, S - ND + 1)
    tile = BK * 128 * 2
    pool = lm.smem(32 * 128 * 2 + 4 * tile)
    smem_q = pool.view(offset=0, shape=(32, 128), dtype=lm.bf16, swizzle="128b")
    smem_k = pool.view(offset=32 * 128 * 2, shape=(BK, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_v = pool.view(offset=32 * 128 * 2 + 2 * tile, shape=(BK, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 2))
    meet = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid", tiles=(HQ, B), names=("h", "b"))

    with work:
        for t in lm.tiles(sched):
            ctx = lm.ld(CTX, t.b)
            hk = t.h // (HQ // HK)
            blocks = lm.cdiv(ctx + ND, BK)
            o = lm.frag(shape=(32, 128), dtype=lm.f32, form="acc", init=0.0)
            top = lm.rowvec(like=o, init=0.0) - lm.inf
            total = lm.rowvec(like=o, init=0.0)
            word = lm.load(TREE, coords=(0, t.b), shape=(32,), form="rowvec", like=o, clip=True)
            smem_q.cp_async(Q, coords=(0, 0, t.h, t.b))
            s = lm.step(ring)
            smem_k.cp_async(KC, coords=(0, 0, hk, t.b), stage=s)
            smem_v.cp_async(VC, coords=(0, 0, hk, t.b), stage=s)
            lm.cp_commit()
            for j in lm.range(blocks):
                lm.cp_wait(pending=0)
                lm.sync(meet)
                n = lm.step(ring)
                if j + 1 < blocks:
                    smem_k.cp_async(KC, coords=(0, (j + 1) * BK, hk, t.b), stage=n)
                    smem_v.cp_async(VC, coords=(0, (j + 1) * BK, hk, t.b), stage=n)
                lm.cp_commit()
                c = n.prev()
                acc = lm.frag(shape=(32, BK), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(acc, smem_q.ldmatrix(form="a"), smem_k[c].ldmatrix(form="b"))
                key = j * BK + lm.iota(acc, 1)
                bit = lm.cast(lm.min(lm.max(key - ctx, 0), 31), lm.u32)
                seen = key < ctx or (key < ctx + ND and ((word >> bit) & 1) == 1)
                x = lm.where(seen, acc * scale, -lm.inf)
                new = lm.max(top, lm.reduce(x, "max", axis=1))
                fix = lm.exp(top - new)
                p = lm.exp(x - new)
                total = total * fix + lm.reduce(p, "add", axis=1)
                top = new
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), smem_v[c].T.ldmatrix(form="b"))
            lm.cp_wait(pending=0)
            lm.store(O, lm.cast(o * lm.rcp(total), lm.bf16), coords=(0, 0, t.h, t.b), mask=lm.in_bounds(o, ND, 128))
