@cake.schedule(target=("sm_80", "sm_90a"))
def allreduce_rmsnorm(lm, part: LM.gmem3d[LM.bf16, "P", "ROWS", "D"], residual: LM.gmem2d[LM.bf16, "ROWS", "D"], weight: LM.gmem1d[LM.f32, "D"].const,
                      total: LM.gmem2d[LM.bf16, "ROWS", "D"], flags: LM.gmem1d[LM.i32, "WORDS"].zeroed, y: LM.gmem2d[LM.bf16, "ROWS", "D"],
                      P: LM.i32, ROWS: LM.i32, WORDS: LM.i32, eps: LM.f32, *, D=1024, C=256, WARPS=2):
    """Two-shot: slices of a row's columns are summed over the P ranks' buffers and the residual by whatever block comes first and flagged;
    the row's last tile waits for all of its slices and normalises."""
    lm.launch(grid="persistent")
    lm.assume(P > 0)
    lm.assume(WORDS == ROWS * (D // C))
    pool = lm.smem(WARPS * 4)
    sums = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    parts = D // C
    sched = lm.scheduler(kind="static", tiles=(parts + 1, ROWS), names=("c", "r"))
    with work:
        for t in lm.tiles(sched):
            if t.c < parts:
                acc = lm.cast(lm.load(residual, coords=(t.c * C, t.r), shape=(C,), form="vec"), lm.f32)
                for p in lm.range(P):
                    acc = acc + lm.cast(lm.load(part, coords=(t.c * C, t.r, p), shape=(C,), form="vec", cache="stream"), lm.f32)
                lm.store(total, lm.cast(acc, lm.bf16), coords=(t.c * C, t.r))
                lm.signal(flags, t.r * parts + t.c, 1)
            else:
                for c in lm.static_range(D // C):
                    lm.spin(flags, t.r * parts + c, 1)
                x = lm.cast(lm.load(total, coords=(0, t.r), shape=(D,), form="vec"), lm.f32)
                w = lm.load(weight, coords=(0,), shape=(D,), form="vec", like=x)
                ss = lm.reduce(x * x, "add", across=work, scratch=sums, sync=meet)
                lm.sync(meet)
                lm.store(y, lm.cast(x * lm.rsqrt(ss / D + eps) * w, lm.bf16), coords=(0, t.r))
