"""Rotary embedding: the halves of a row are combined crosswise."""


@cake.schedule(target="sm_90a")
def rope(lm, X: LM.gmem2d[LM.bf16, "T", "D"], COS: LM.gmem2d[LM.f32, "T", 64].const, SIN: LM.gmem2d[LM.f32, "T", 64].const, Y: LM.gmem2d[LM.bf16, "T", "D"], T: LM.i32, *, D=128):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 4),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            row = t.m * 4 + work.index
            if row < T:
                a = lm.load(X, coords=(0, row), shape=(1, 64), form="vec")
                b = lm.load(X, coords=(64, row), shape=(1, 64), form="vec", like=a)
                c = lm.load(COS, coords=(0, row), shape=(1, 64), form="vec", like=a)
                s = lm.load(SIN, coords=(0, row), shape=(1, 64), form="vec", like=a)
                x, y = lm.cast(a, lm.f32), lm.cast(b, lm.f32)
                lm.store(Y, lm.cast(x * c - y * s, lm.bf16), coords=(0, row))
                lm.store(Y, lm.cast(y * c + x * s, lm.bf16), coords=(64, row))
