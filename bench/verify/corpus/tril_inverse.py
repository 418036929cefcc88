@cake.schedule(target=("sm_80", "sm_90a"))
def tril_inverse(lm, A: LM.gmem2d[LM.f32, "T", "HW"], Ai: LM.gmem2d[LM.bf16, "T", "HW"], cu: LM.gmem1d[LM.i32, "NP"], chunk1: LM.gmem1d[LM.i32, "NC2"],
                 T: LM.i32, H: LM.i32, HW: LM.i32, NP: LM.i32, NC: LM.i32, NC2: LM.i32, *, WARPS=4, BT=16):
    """(I + A)^-1 of the strictly lower BT x BT chunks of a gated delta rule, by forward substitution: a warp a head. Chunks of sequences of unequal length:
    chunk1 holds (sequence, its chunk); rows behind a sequence's end are those of the identity and not stored."""
    lm.launch(grid="tiles")
    lm.assume(NC2 == 2 * NC and NP > 1 and HW == BT * H)
    lm.assume_values(cu, 0, T + 1, sorted=True)
    lm.assume_values(chunk1, 0, NP - 1)
    pool = lm.smem(WARPS * BT * BT * 4 * 2)
    a_s = pool.view(offset=0, shape=(BT, BT), dtype=lm.f32, stage=WARPS)
    x_s = pool.view(offset=WARPS * BT * BT * 4, shape=(BT, BT), dtype=lm.f32, stage=WARPS)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    own = lm.named_barrier(work, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(H, WARPS), NC), names=("h", "c"))
    with work:
        for t in lm.tiles(sched):
            head = t.h * WARPS + work.index
            seq = lm.ld(chunk1, 2 * t.c)
            first = lm.ld(cu, seq) + BT * lm.ld(chunk1, 2 * t.c + 1)
            rows = lm.min(lm.ld(cu, seq + 1) - first, BT)
            if head < H:
                a = a_s[work.index]
                xs = x_s[work.index]
                tile = lm.load(A, coords=(head * BT, first), shape=(BT, BT), form="vec", clip=True)
                a.store(lm.where(lm.in_bounds(tile, rows, BT), tile, 0.0))
                lm.sync(own)
                for i in lm.range(BT):
                    row = lm.frag(shape=(BT,), dtype=lm.f32, form="vec", init=0.0)
                    row = lm.where(lm.iota(row, 0) == i, 1.0, 0.0)
                    for j in lm.range(i):
                        row = row - a.ld(i * BT + j) * xs.rows(j, 1).load(form="vec", like=row)
                    xs.rows(i, 1).store(row)
                    lm.sync(own)
                res = xs.load(form="vec")
                lm.store(Ai, lm.cast(res, lm.bf16), coords=(head * BT, first), mask=lm.in_bounds(res, rows, BT))
