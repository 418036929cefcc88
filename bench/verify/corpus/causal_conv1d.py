"""Depthwise causal convolution of width 4 over packed sequences, then SiLU; the last three inputs live in registers."""


@cake.schedule(target=("sm_80", "sm_90a"))
def causal_conv1d(lm, X: LM.gmem2d[LM.bf16, "T", "C"], W: LM.gmem2d[LM.f32, 4, "C"], BIAS: LM.gmem1d[LM.f32, "C"], CU: LM.gmem1d[LM.i32, "NS1"],
                  Y: LM.gmem2d[LM.bf16, "T", "C"], T: LM.i32, NS1: LM.i32, *, C=2048, BC=1024, BT=16):
    """Depthwise causal convolution of width 4 over packed sequences, then SiLU; the last three inputs live in registers."""
    lm.launch(grid="persistent")
    lm.assume_values(CU, 0, T + 1, sorted=True)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grouped", tiles=(C // BC,), offsets=CU, block=BT)
    with work:
        for t in lm.tiles(sched):
            w0 = lm.load(W, coords=(t.n * BC, 0), shape=(BC,), form="vec")
            w1 = lm.load(W, coords=(t.n * BC, 1), shape=(BC,), form="vec", like=w0)
            w2 = lm.load(W, coords=(t.n * BC, 2), shape=(BC,), form="vec", like=w0)
            w3 = lm.load(W, coords=(t.n * BC, 3), shape=(BC,), form="vec", like=w0)
            bias = lm.load(BIAS, coords=(t.n * BC,), shape=(BC,), form="vec", like=w0)
            a = lm.frag(shape=(BC,), dtype=lm.f32, form="vec", init=0.0, like=w0)
            b = lm.frag(shape=(BC,), dtype=lm.f32, form="vec", init=0.0, like=w0)
            c = lm.frag(shape=(BC,), dtype=lm.f32, form="vec", init=0.0, like=w0)
            if t.m > 0:
                a = lm.cast(lm.load(X, coords=(t.n * BC, t.row0 - 3), shape=(BC,), form="vec", like=w0), lm.f32)
                b = lm.cast(lm.load(X, coords=(t.n * BC, t.row0 - 2), shape=(BC,), form="vec", like=w0), lm.f32)
                c = lm.cast(lm.load(X, coords=(t.n * BC, t.row0 - 1), shape=(BC,), form="vec", like=w0), lm.f32)
            for r in lm.range(lm.min(t.rows, BT)):
                d = lm.cast(lm.load(X, coords=(t.n * BC, t.row0 + r), shape=(BC,), form="vec", like=w0), lm.f32)
                y = lm.silu(a * w0 + b * w1 + c * w2 + d * w3 + bias)
                lm.store(Y, lm.cast(y, lm.bf16), coords=(t.n * BC, t.row0 + r))
                a = b
                b = c
                c = d
