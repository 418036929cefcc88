"""RMSNorm over each query and key head, then rotary embedding; a warp a head, V heads are left alone."""


@cake.schedule(target=("sm_80", "sm_90a"))
def qk_norm_rope(lm, QKV: LM.gmem3d[LM.bf16, "T", "HEADS", "D"], G: LM.gmem2d[LM.bf16, 2, "D"], COS: LM.gmem2d[LM.f32, "MAXP", "H"],
                 SIN: LM.gmem2d[LM.f32, "MAXP", "H"], POS: LM.gmem1d[LM.i32, "T"], QO: LM.gmem3d[LM.bf16, "T", "HQ", "D"], KO: LM.gmem3d[LM.bf16, "T", "HK", "D"],
                 T: LM.i32, HEADS: LM.i32, HQ: LM.i32, HK: LM.i32, MAXP: LM.i32, eps: LM.f32, *, D=128, H=64):
    """RMSNorm over each query and key head, then rotary embedding; a warp a head, V heads are left alone."""
    lm.launch(grid="persistent", ctas_per_sm=8)
    lm.assume(HQ + HK <= HEADS)
    lm.assume_values(POS, 0, MAXP)
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="static", tiles=(T, lm.cdiv(HQ + HK, 4)), names=("t", "h"))
    with work:
        for t in lm.tiles(sched):
            h = t.h * 4 + work.index
            if h < HQ + HK:
                a = lm.cast(lm.load(QKV, coords=(0, h, t.t), shape=(H,), form="vec"), lm.f32)
                b = lm.cast(lm.load(QKV, coords=(H, h, t.t), shape=(H,), form="vec", like=a), lm.f32)
                ss = lm.sum(a * a + b * b, axis=1)
                r = lm.rsqrt(ss / D + eps)
                which = 0 if h < HQ else 1
                ga = lm.cast(lm.load(G, coords=(0, which), shape=(H,), form="vec", like=a), lm.f32)
                gb = lm.cast(lm.load(G, coords=(H, which), shape=(H,), form="vec", like=a), lm.f32)
                a = a * r * ga
                b = b * r * gb
                p = lm.ld(POS, t.t)
                c = lm.load(COS, coords=(0, p), shape=(H,), form="vec", like=a)
                s = lm.load(SIN, coords=(0, p), shape=(H,), form="vec", like=a)
                x = lm.cast(a * c - b * s, lm.bf16)
                y = lm.cast(b * c + a * s, lm.bf16)
                if h < HQ:
                    lm.store(QO, x, coords=(0, h, t.t))
                    lm.store(QO, y, coords=(H, h, t.t))
                else:
                    lm.store(KO, x, coords=(0, h - HQ, t.t))
                    lm.store(KO, y, coords=(H, h - HQ, t.t))
