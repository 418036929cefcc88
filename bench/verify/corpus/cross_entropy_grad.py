@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def cross_entropy_grad(lm, Logits: LM.gmem2d[LM.bf16, "B", "V"], Label: LM.gmem1d[LM.i32, "B"], Loss: LM.gmem1d[LM.f32, "B"], Grad: LM.gmem2d[LM.bf16, "B", "V"],
              B: LM.i32, V: LM.i32, inv_count: LM.f32, *, PART=1024, CREW=4):
    """Loss and its gradient in two passes over the vocabulary, the running maximum and sum kept a run of columns; label -100 gives zeros."""
    lm.launch(grid="tiles")
    lm.assume(V > 0 and V % 8 == 0)
    lm.assume_values(Label, -100, V)
    scr = lm.smem(3 * CREW * 4)
    smax = scr.view(offset=0, shape=(CREW,), dtype=lm.f32)
    ssum = scr.view(offset=CREW * 4, shape=(CREW,), dtype=lm.f32)
    spick = scr.view(offset=2 * CREW * 4, shape=(CREW,), dtype=lm.f32)
    squad = lm.role(warps=range(0, CREW))
    gate1 = lm.named_barrier(squad)
    gate2 = lm.named_barrier(squad)
    order = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    parts = lm.cdiv(V, PART)
    with squad:
        for t in lm.tiles(order):
            target = lm.ld(Label, t.b)
            head = lm.cast(lm.load(Logits, coords=(0, t.b), shape=(PART,), form="vec", clip=True, fill=-lm.inf), lm.f32)
            top = lm.max(head, -1e30)
            den = lm.exp(head - top)
            mine = lm.where(lm.iota(head, 0) == target, head, 0.0)
            for p in lm.range(1, parts):
                z = lm.cast(lm.load(Logits, coords=(p * PART, t.b), shape=(PART,), form="vec", clip=True, fill=-lm.inf), lm.f32)
                fresh = lm.max(top, z)
                den = den * lm.exp(top - fresh) + lm.exp(z - fresh)
                top = fresh
                mine = mine + lm.where(lm.iota(z, 0, base=p * PART) == target, z, 0.0)
            peak = lm.reduce(top, "max", axis=None, across=squad, scratch=smax, sync=gate1)
            total = lm.reduce(den * lm.exp(top - peak), "add", axis=None, across=squad, scratch=ssum, sync=gate2)
            picked = lm.reduce(mine, "add", axis=None, across=squad, scratch=spick, sync=gate1)
            lse = peak + lm.log(total)
            if target >= 0:
                lm.store(Loss, lse - picked, coords=(t.b,))
            else:
                lm.store(Loss, lse * 0.0, coords=(t.b,))
            for q in lm.range(parts):
                z2 = lm.cast(lm.load(Logits, coords=(q * PART, t.b), shape=(PART,), form="vec", clip=True), lm.f32)
                prob = lm.exp(z2 - lse)
                hit = lm.iota(z2, 0, base=q * PART) == target
                grad = lm.where(hit, prob - 1.0, prob) * inv_count
                if target < 0:
                    grad = grad * 0.0
                lm.store(Grad, lm.cast(grad, lm.bf16), coords=(q * PART, t.b), clip=True)
