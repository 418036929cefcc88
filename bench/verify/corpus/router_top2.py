@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_120a"))
def router_top2(lm, H: LM.gmem2d[LM.bf16, "TOKENS", "HID"], G: LM.gmem2d[LM.bf16, 64, "HID"].const, ID: LM.gmem2d[LM.i32, "TOKENS", "PICK"], WT: LM.gmem2d[LM.f32, "TOKENS", "PICK"],
              LOAD: LM.gmem1d[LM.i32, 64].zeroed, TOKENS: LM.i32, HID: LM.i32, *, PICK=2, KB=64, RING=2):
    """Router: logits by mma.sync, the PICK largest of 64 with weights that are a softmax over the chosen, and how many tokens each expert got."""
    lm.launch(grid="tiles")
    lm.assume(HID > 0 and HID % 8 == 0)
    box = lm.smem(RING * (64 + 64) * KB * 2)
    h_s = box.view(offset=0, shape=(64, KB), dtype=lm.bf16, stage=RING, swizzle="128b")
    g_s = box.view(offset=RING * 64 * KB * 2, shape=(64, KB), dtype=lm.bf16, stage=RING, swizzle="128b")
    ones = lm.role(warps=range(0, 4))
    rg = lm.pipeline(stages=RING)
    bar = lm.named_barrier(ones)
    plan = lm.scheduler(kind="grid", tiles=(lm.cdiv(TOKENS, 64),), names=("blk",))
    blocks = lm.cdiv(HID, KB)
    with ones:
        for t in lm.tiles(plan):
            z = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0)
            sl = lm.step(rg)
            h_s.cp_async(H, coords=(0, t.blk * 64), stage=sl)
            g_s.cp_async(G, coords=(0, 0), stage=sl)
            lm.cp_commit()
            for b in lm.range(blocks):
                sl = lm.step(rg)
                h_s.cp_async(H, coords=((b + 1) * KB, t.blk * 64), stage=sl)
                g_s.cp_async(G, coords=((b + 1) * KB, 0), stage=sl)
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(bar)
                back = sl.prev(1)
                lm.mma(z, h_s[back].load(form="a", like=z), g_s[back].load(form="b", like=z))
                lm.sync(bar)
            lm.cp_wait(pending=0)
            best = lm.topk_list(like=z, k=PICK, largest=True)
            best = lm.topk(z, axis=1, base=0, into=best)
            best = lm.finish(best)
            rows = lm.iota(z, 0, base=t.blk * 64)
            inside = rows < TOKENS
            (top, first) = best[0]
            norm = lm.rowvec(like=z, init=0.0)
            for e in lm.static_range(PICK):
                (v, who) = best[e]
                norm = norm + lm.exp(v - top)
            for e in lm.static_range(PICK):
                (v, who) = best[e]
                lm.store(ID, who, coords=(e, rows), mask=inside)
                lm.store(WT, lm.exp(v - top) / norm, coords=(e, rows), mask=inside)
                lm.atomic(LOAD, who * 0 + 1, coords=(who,), op="add", mask=inside)
