@cake.schedule(target=("sm_80", "sm_89", "sm_120a"))
def moe_pairs_gemm(lm, TOK: LM.gmem2d[LM.bf16, "NT", "HID"], W: LM.gmem3d[LM.bf16, "NE", "FF", "HID"].const, SORTED: LM.gmem1d[LM.i32, "PADDED"], EXPERT: LM.gmem1d[LM.i32, "BLOCKS"],
               OUT: LM.gmem2d[LM.bf16, "PAIRS", "FF"], SCALE: LM.gmem1d[LM.f32, "PAIRS"], NT: LM.i32, NE: LM.i32, HID: LM.i32, FF: LM.i32, PADDED: LM.i32, BLOCKS: LM.i32, PAIRS: LM.i32, TOPK: LM.i32,
               *, BM=32, BN=64, BK=32, ST=3):
    """vLLM's fused-MoE layout: SORTED holds pair numbers, padded with PAIRS to blocks of BM rows of one expert; row pair // TOPK of TOK."""
    lm.launch(grid="tiles")
    lm.assume(HID > 0 and HID % 8 == 0 and FF % 8 == 0)
    lm.assume(PADDED == BLOCKS * BM)
    lm.assume(PAIRS == NT * TOPK and TOPK > 0)
    lm.assume_values(SORTED, 0, PAIRS + 1)
    lm.assume_values(EXPERT, -1, NE)
    mem = lm.smem(ST * (BM + BN) * BK * 2)
    tok_s = mem.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=ST, swizzle="64b")
    w_s = mem.view(offset=ST * BM * BK * 2, shape=(BN, BK), dtype=lm.bf16, stage=ST, swizzle="64b")
    g = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=ST)
    nb = lm.named_barrier(g)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(FF, BN), BLOCKS), names=("n", "b"))
    steps = lm.cdiv(HID, BK)
    with g:
        for t in lm.tiles(sched):
            e = lm.ld(EXPERT, t.b)
            if e >= 0:
                acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0)
                pair = lm.load(SORTED, coords=(t.b * BM,), shape=(BM,), form="rowvec", like=acc)
                live = pair < PAIRS
                row = lm.where(live, pair // TOPK, -1)
                for pre in lm.static_range(ST - 1):
                    s = lm.step(ring)
                    tok_s.cp_async_rows(TOK, rows=row, coords=(pre * BK, 0), stage=s)
                    w_s.cp_async(W, coords=(pre * BK, t.n * BN, e), stage=s)
                    lm.cp_commit()
                for it in lm.range(steps):
                    lm.cp_wait(pending=ST - 2)
                    lm.sync(nb)
                    s = lm.step(ring)
                    tok_s.cp_async_rows(TOK, rows=row, coords=((it + ST - 1) * BK, 0), stage=s)
                    w_s.cp_async(W, coords=((it + ST - 1) * BK, t.n * BN, e), stage=s)
                    lm.cp_commit()
                    use = s.prev(ST - 1)
                    lm.mma(acc, tok_s[use].load(form="a", like=acc), w_s[use].load(form="b", like=acc))
                lm.cp_wait(pending=0)
                sc = lm.load(SCALE, coords=(pair,), shape=(BM,), form="rowvec", like=acc, mask=live)
                lm.store(OUT, lm.cast(acc * sc, lm.bf16), coords=(t.n * BN, pair), mask=live, clip=True)
