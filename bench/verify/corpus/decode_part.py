@cake.schedule(target=("sm_80", "sm_89"))
def decode_part(lm, Q: LM.gmem3d[LM.bf16, "B", "HQ", 128], KC: LM.gmem4d[LM.bf16, "B", "HK", "CAP", 128], VC: LM.gmem4d[LM.bf16, "B", "HK", "CAP", 128],
                LEN: LM.gmem1d[LM.i32, "B"], OP: LM.gmem4d[LM.f32, "SPLITS", "B", "HQ", 128], MP: LM.gmem3d[LM.f32, "SPLITS", "B", "HQ"], LP: LM.gmem3d[LM.f32, "SPLITS", "B", "HQ"],
                B: LM.i32, HQ: LM.i32, HK: LM.i32, CAP: LM.i32, SPLITS: LM.i32, scale: LM.f32, *, BN=64):
    """One slice of one sequence's cache for the 16 query heads of a key head: unnormalised output, running maximum and sum."""
    lm.launch(grid="tiles")
    lm.assume(HQ == 16 * HK and SPLITS >= 1 and CAP >= 1)
    lm.assume_values(LEN, 1, CAP + 1)
    kv = BN * 128 * 2
    pool = lm.smem(4 * kv + 16 * BN * 2 + 2 * 4 * 16 * 4)
    k_buf = pool.view(offset=0, shape=(BN, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    v_buf = pool.view(offset=2 * kv, shape=(BN, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    p_buf = pool.view(offset=4 * kv, shape=(16, BN), dtype=lm.bf16, swizzle="128b")
    max_part = pool.view(offset=4 * kv + 16 * BN * 2, shape=(4, 16), dtype=lm.f32)
    sum_part = pool.view(offset=4 * kv + 16 * BN * 2 + 256, shape=(4, 16), dtype=lm.f32)
    team = lm.role(warps=range(0, 4))
    all4 = lm.named_barrier(team)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid", tiles=(HK, B, SPLITS), names=("h", "b", "s"))

    with team:
        for t in lm.tiles(sched):
            length = lm.ld(LEN, t.b)
            blocks = lm.cdiv(length, BN)
            share = lm.cdiv(blocks, SPLITS)
            first = lm.min(t.s * share, blocks)
            last = lm.min(first + share, blocks)
            o = lm.frag(shape=(16, 128), dtype=lm.f32, form="acc", warps=(1, 4), init=0.0)
            z = lm.frag(shape=(16, BN), dtype=lm.f32, form="acc", warps=(1, 4))
            top = lm.rowvec(z, init=-1e30)
            den = lm.rowvec(z, init=0.0)
            q = lm.load(Q, coords=(0, 16 * t.h, t.b), shape=(16, 128), form="a", like=z)
            s0 = lm.step(ring)
            if first < last:
                k_buf.cp_async(KC, coords=(0, first * BN, t.h, t.b), stage=s0)
                v_buf.cp_async(VC, coords=(0, first * BN, t.h, t.b), stage=s0)
            lm.cp_commit()
            for j in lm.range(first, last):
                nxt = lm.step(ring)
                if j + 1 < last:
                    k_buf.cp_async(KC, coords=(0, (j + 1) * BN, t.h, t.b), stage=nxt)
                    v_buf.cp_async(VC, coords=(0, (j + 1) * BN, t.h, t.b), stage=nxt)
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(all4)
                now = nxt.prev()
                lm.mma(z, q, k_buf[now].ldmatrix(form="b", like=z), init=True)
                x = lm.where(lm.iota(z, axis=1, base=j * BN) < length, z * scale, -lm.inf)
                peak = lm.max(top, lm.reduce(x, "max", axis=1, across=team, scratch=max_part, sync=all4))
                p = lm.exp2(x - peak)
                fix = lm.exp2(top - peak)
                den = den * fix + lm.reduce(p, "add", axis=1, across=team, scratch=sum_part, sync=all4)
                top = peak
                p_buf.store(lm.cast(p, lm.bf16))
                lm.sync(all4)
                o = o * fix
                pa = p_buf.ldmatrix(form="a", like=o)
                lm.mma(o, pa, v_buf[now].T.ldmatrix(form="b", like=o))
                lm.sync(all4)
            lm.cp_wait(pending=0)
            lm.store(OP, o, coords=(0, 16 * t.h, t.b, t.s))
            lm.store(MP, top, coords=(16 * t.h, t.b, t.s))
            lm.store(LP, den, coords=(16 * t.h, t.b, t.s))
