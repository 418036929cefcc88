@cake.schedule(target=("sm_120a", "sm_90a"))
def mhc_sinkhorn(lm, X: LM.gmem3d[LM.f32, "T", 16, 16], Y: LM.gmem3d[LM.f32, "T", 16, 16], T: LM.i32, *, ROUNDS=20, WARPS=4):
    """Mixing matrices of hyper-connections: exp, then rows and columns normalised in turns; a warp a matrix."""
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, WARPS),), names=("t",))
    with work:
        for t in lm.tiles(sched):
            token = t.t * WARPS + work.index
            if token < T:
                x = lm.load(X, coords=(0, 0, token), shape=(16, 16), form="acc")
                x = lm.exp(x - lm.reduce(x, "max", axis=1))
                for i in lm.range(ROUNDS):
                    x = x * lm.rcp(lm.reduce(x, "add", axis=1) + 1e-8)
                    x = x * lm.rcp(lm.reduce(x, "add", axis=0) + 1e-8)
                lm.store(Y, x, coords=(0, 0, token))
