@cake.schedule(target=("sm_89", "sm_100a"))
def gla_decode_step(lm, Q: LM.gmem2d[LM.f32, "BH", 64], K: LM.gmem2d[LM.f32, "BH", 64], V: LM.gmem2d[LM.f32, "BH", 64], G: LM.gmem2d[LM.f32, "BH", 64], U: LM.gmem1d[LM.f32, 64],
                    ST: LM.gmem3d[LM.f32, "BH", 64, 64].inout, O: LM.gmem2d[LM.f32, "BH", 64], BH: LM.i32, *, WARPS=4):
    """One step of a recurrence as in RWKV-6: o = q (u k v + S), then S = g S + k v, S kept value by key so that a row sums in a warp."""
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(BH,), names=("h",))
    with work:
        for t in lm.tiles(sched):
            st = lm.load(ST, coords=(0, 0, t.h), shape=(64, 64), form="acc")
            q = lm.load(Q, coords=(0, t.h), shape=(64,), form="colvec", like=st)
            k = lm.load(K, coords=(0, t.h), shape=(64,), form="colvec", like=st)
            g = lm.load(G, coords=(0, t.h), shape=(64,), form="colvec", like=st)
            u = lm.load(U, coords=(0,), shape=(64,), form="colvec", like=st)
            v = lm.load(V, coords=(0, t.h), shape=(64,), form="rowvec", like=st)
            kv = v * k
            o = lm.reduce((st + kv * u) * q, "add", axis=1)
            lm.store(O, o, coords=(0, t.h))
            lm.store(ST, st * lm.exp(g) + kv, coords=(0, 0, t.h))
