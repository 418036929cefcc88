"""LayerNorm of rows too long for one CTA: the CTAs of a cluster hold a part each and tell every other one their sums through distributed shared memory."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a"))
def layernorm_cluster(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const, Y: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32, eps: LM.f32,
                      *, D=2048, PARTS=4, WARPS=2):
    """y = (x - mean) * rsqrt(var + eps) * w; CTA t.p of a cluster holds columns t.p * D / PARTS on."""
    lm.launch(grid="tiles", cluster=(PARTS, 1))
    width = D // PARTS
    pool = lm.smem(PARTS * 512 + 512)
    inbox = pool.view(offset=0, shape=(PARTS, 128), dtype=lm.f32)
    per_warp = pool.view(offset=PARTS * 512, shape=(WARPS,), dtype=lm.f32, stage=2, stage_bytes=256)
    work = lm.role(warps=range(0, WARPS))
    mail = lm.pipeline(stages=1)
    told = lm.barrier(pipeline=mail, prod=[work], cons=[work], arrive="tx", scope="cluster")
    all_warps = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(PARTS, ROWS), names=("p", "r"), cluster=(PARTS, 1))

    with work:
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(t.p * width, t.r), shape=(width,), form="vec"), lm.f32)
            w = lm.cast(lm.load(W, coords=(t.p * width,), shape=(width,), form="vec", like=x), lm.f32)
            total = lm.reduce(x, "add", across=work, scratch=per_warp[0], sync=all_warps)
            squares = lm.reduce(x * x, "add", across=work, scratch=per_warp[1], sync=all_warps)
            pair = lm.frag(shape=(1, 128), dtype=lm.f32, form="vec", init=0.0)
            pair = lm.where(lm.iota(pair, axis=1) < 64, pair + total, pair + squares)
            box = lm.step(mail)
            for c in lm.static_range(PARTS):
                inbox.rows(lm.cta_rank(), 1).send(pair, cta=c, barrier=told, stage=box)
            lm.wait(told, stage=box)
            total = inbox.ld(0)
            squares = inbox.ld(64)
            for c in lm.static_range(1, PARTS):
                total = total + inbox.ld(128 * c)
                squares = squares + inbox.ld(128 * c + 64)
            mean = total * (1.0 / D)
            scale = lm.rsqrt(squares * (1.0 / D) - mean * mean + eps)
            lm.store(Y, lm.cast((x - mean) * scale * w, lm.bf16), coords=(t.p * width, t.r))
