@cake.schedule(target=("sm_89", "sm_90a"))
def reshape_and_cache_fp8(lm, K: LM.gmem2d[LM.bf16, "T", "HD"], V: LM.gmem2d[LM.bf16, "T", "HD"], SLOT: LM.gmem1d[LM.i32, "T"], KC: LM.gmem2d[LM.e4m3, "SLOTS", "HD"],
                          VC: LM.gmem2d[LM.e4m3, "SLOTS", "HD"], T: LM.i32, SLOTS: LM.i32, ks: LM.f32, vs: LM.f32, *, HD=1024, WARPS=4):
    """New keys and values go to their slots of the cache, in fp8; a token without a slot (-1) is padding."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="static", tiles=(T,), names=("t",))

    with work:
        for t in lm.tiles(sched):
            slot = lm.ld(SLOT, t.t)
            if slot >= 0 and slot < SLOTS:
                k = lm.load(K, coords=(0, t.t), shape=(HD,), form="vec")
                v = lm.load(V, coords=(0, t.t), shape=(HD,), form="vec")
                lm.store(KC, lm.cast(lm.cast(k, lm.f32) * ks, lm.e4m3), coords=(0, slot))
                lm.store(VC, lm.cast(lm.cast(v, lm.f32) * vs, lm.e4m3), coords=(0, slot))
