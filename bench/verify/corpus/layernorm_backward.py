@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def layernorm_backward(lm, X: LM.gmem2d[LM.bf16, "N", "D"], DY: LM.gmem2d[LM.bf16, "N", "D"], GAMMA: LM.gmem1d[LM.f32, "D"].const, MU: LM.gmem1d[LM.f32, "N"],
                RSTD: LM.gmem1d[LM.f32, "N"], DX: LM.gmem2d[LM.bf16, "N", "D"], DGAMMA: LM.gmem1d[LM.f32, "D"].zeroed, DBETA: LM.gmem1d[LM.f32, "D"].zeroed,
                N: LM.i32, *, D=512, CREW=2):
    """dx, dgamma and dbeta of a layer norm: each CTA keeps its share of the two sums in registers and adds it to memory at the end."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    pad = lm.smem(4 * CREW * 4)
    first = pad.view(offset=0, shape=(CREW,), dtype=lm.f32, stage=2)
    second = pad.view(offset=8 * CREW, shape=(CREW,), dtype=lm.f32, stage=2)
    team = lm.role(warps=range(0, CREW))
    swap = lm.pipeline(stages=2)
    meet = lm.named_barrier(team)
    meet2 = lm.named_barrier(team)
    rows = lm.scheduler(kind="static", tiles=(N,), names=("row",))
    with team:
        g = lm.load(GAMMA, coords=(0,), shape=(D,), form="vec")
        sum_g = g * 0.0
        sum_b = g * 0.0
        for t in lm.tiles(rows):
            slot = lm.step(swap)
            x = lm.cast(lm.load(X, coords=(0, t.row), shape=(D,), form="vec", like=g), lm.f32)
            dy = lm.cast(lm.load(DY, coords=(0, t.row), shape=(D,), form="vec", like=g), lm.f32)
            mean = lm.ld(MU, t.row)
            inv = lm.ld(RSTD, t.row)
            xhat = (x - mean) * inv
            wdy = dy * g
            c1 = lm.reduce(wdy * xhat, "add", axis=None, across=team, scratch=first[slot], sync=meet)
            c2 = lm.reduce(wdy, "add", axis=None, across=team, scratch=second[slot], sync=meet2)
            dx = (wdy - (xhat * c1 + c2) * (1.0 / D)) * inv
            lm.store(DX, lm.cast(dx, lm.bf16), coords=(0, t.row))
            sum_g = sum_g + dy * xhat
            sum_b = sum_b + dy
        lm.atomic(DGAMMA, sum_g, coords=(0,), op="add", order="any")
        lm.atomic(DBETA, sum_b, coords=(0,), op="add", order="any")
