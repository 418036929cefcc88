"""Flash decoding as a plan of three launches: parts of the keys by themselves, their combination, and a residual added in place behind it."""


@cake.schedule(target="sm_90a")
def parts(lm, Q: LM.gmem2d[LM.bf16, "B", "D"], K: LM.gmem3d[LM.bf16, "B", "S", "D"], V: LM.gmem3d[LM.bf16, "B", "S", "D"], PO: LM.gmem3d[LM.f32, "B", "NP", "D"],
          PM: LM.gmem1d[LM.f32], PL: LM.gmem1d[LM.f32], B: LM.i32, S: LM.i32, NP: LM.i32, scale: LM.f32, *, D=64, KEYS=16):
    lm.launch(grid="tiles")
    lm.assume(S == NP * KEYS)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(NP, B), names=("p", "b"))
    with work:
        lm.pdl_launch()
        for t in lm.tiles(sched):
            q = lm.cast(lm.load(Q, coords=(0, t.b), shape=(D,), form="vec"), lm.f32)
            o = lm.cast(q, lm.f32) * 0.0
            m = -1e30
            l = 0.0
            for i in lm.range(KEYS):
                k = lm.cast(lm.load(K, coords=(0, t.p * KEYS + i, t.b), shape=(D,), form="vec"), lm.f32)
                v = lm.cast(lm.load(V, coords=(0, t.p * KEYS + i, t.b), shape=(D,), form="vec"), lm.f32)
                x = lm.reduce(q * k, "add") * scale
                top = lm.max(m, x)
                fix = lm.exp(m - top)
                p = lm.exp(x - top)
                o = o * fix + v * p
                l = l * fix + p
                m = top
            lm.store(PO, o, coords=(0, t.p, t.b))
            lm.store(PM, m, coords=(t.b * NP + t.p,))
            lm.store(PL, l, coords=(t.b * NP + t.p,))


@cake.schedule(target="sm_90a")
def combine(lm, PO: LM.gmem3d[LM.f32, "B", "NP", "D"], PM: LM.gmem1d[LM.f32], PL: LM.gmem1d[LM.f32], O: LM.gmem2d[LM.f32, "B", "D"],
            B: LM.i32, NP: LM.i32, *, D=64):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            m = -1e30
            for i in lm.range(NP):
                m = lm.max(m, lm.ld(PM, t.b * NP + i))
            o = lm.frag(shape=(D,), dtype=lm.f32, form="vec", init=0.0)
            l = 0.0
            for i in lm.range(NP):
                w = lm.exp(lm.ld(PM, t.b * NP + i) - m)
                o = o + lm.load(PO, coords=(0, i, t.b), shape=(D,), form="vec", like=o) * w
                l = l + lm.ld(PL, t.b * NP + i) * w
            lm.store(O, o * lm.rcp(l), coords=(0, t.b))


@cake.schedule(target="sm_90a")
def add_to(lm, X: LM.gmem2d[LM.f32, "B", "D"], R: LM.gmem2d[LM.f32, "B", "D"], Y: LM.gmem2d[LM.f32, "B", "D"], B: LM.i32, *, D=64):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            lm.store(Y, lm.load(X, coords=(0, t.b), shape=(D,)) + lm.load(R, coords=(0, t.b), shape=(D,)), coords=(0, t.b))


@cake.plan()
def decode(lm, Q: LM.gmem2d[LM.bf16], K: LM.gmem3d[LM.bf16], V: LM.gmem3d[LM.bf16], R: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], B: LM.i32, S: LM.i32, scale: LM.f32, *, D=64, KEYS=16):
    n = S // KEYS
    po = lm.workspace(shape=(B, n, D), dtype=lm.f32)
    pm = lm.workspace(shape=(B * n,), dtype=lm.f32)
    pl = lm.workspace(shape=(B * n,), dtype=lm.f32)
    o = lm.workspace(shape=(B, D), dtype=lm.f32)
    lm.run(parts, Q=Q, K=K, V=V, PO=po, PM=pm, PL=pl, B=B, S=S, NP=n, scale=scale, D=D, KEYS=KEYS)
    lm.run(combine, PO=po, PM=pm, PL=pl, O=o, B=B, NP=n, after="pdl", D=D)
    lm.run(add_to, X=o, R=R, Y=Y, B=B, after="pdl", D=D)
