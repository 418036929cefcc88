"""Halves of rows exchanged: values are stored where others were loaded, on purpose."""


@cake.schedule(target="sm_90a")
def rotate_half(lm, X: LM.gmem2d[LM.bf16, "T", "D"], Y: LM.gmem2d[LM.bf16, "T", "D"], T: LM.i32, *, D=128):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 4),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            row = t.m * 4 + work.index
            if row < T:
                a = lm.load(X, coords=(0, row), shape=(1, 64), form="vec")
                b = lm.load(X, coords=(64, row), shape=(1, 64), form="vec", like=a)
                lm.store(Y, a, coords=(64, row))
                lm.store(Y, lm.cast(lm.cast(b, lm.f32) * -1.0, lm.bf16), coords=(0, row))
