@cake.schedule(target="sm_90a")
def rmsnorm_bwd_cluster(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], G: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const, RS: LM.gmem1d[LM.f32, "ROWS"],
                        DX: LM.gmem2d[LM.bf16, "ROWS", "D"], DW: LM.gmem1d[LM.f32, "D"].zeroed, ROWS: LM.i32, *, D=2048, EACH=16, WARPS=4):
    """Gradients of y = x * rs * w: dx a row, dw over all rows; the four CTAs of a cluster add up a quarter of dw each from what the others send."""
    lm.launch(grid="tiles", cluster=(4, 1))
    part = D // 4
    pool = lm.smem(D * 4 + 4 * part * 4 + WARPS * 4 * 2)
    stagev = pool.view(offset=0, shape=(D,), dtype=lm.f32)
    inbox = pool.view(offset=D * 4, shape=(4, part), dtype=lm.f32, stage=1)
    scratch = pool.view(offset=2 * D * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sums = lm.pipeline(stages=2)
    mail = lm.pipeline(stages=1)
    came = lm.barrier(pipeline=mail, prod=[work], cons=[work], arrive="tx", scope="cluster")
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(ROWS, EACH),), names=("block",))
    with work:
        w = lm.cast(lm.load(W, coords=(0,), shape=(D,), form="vec"), lm.f32)
        for t in lm.tiles(sched):
            dw = w * 0.0
            n = lm.max(lm.min(EACH, ROWS - t.block * EACH), 0)
            for i in lm.range(n):
                r = t.block * EACH + i
                rs = lm.ld(RS, r)
                xh = lm.cast(lm.load(X, coords=(0, r), shape=(D,), form="vec", cache="stream"), lm.f32) * rs
                g = lm.cast(lm.load(G, coords=(0, r), shape=(D,), form="vec", cache="stream"), lm.f32)
                dw = dw + g * xh
                gw = g * w
                s = lm.step(sums)
                dot = lm.reduce(gw * xh, "add", across=work, scratch=scratch[s], sync=meet)
                lm.store(DX, lm.cast((gw - xh * (dot * (1.0 / D))) * rs, lm.bf16), coords=(0, r))
            stagev.store(dw)
            lm.sync(meet)
            me = lm.cta_rank()
            m = lm.step(mail)
            for peer in lm.static_range(4):
                piece = stagev.cols(peer * part, part).load(form="vec")
                inbox.rows(me, 1).send(piece, cta=peer, barrier=came, stage=m)
            lm.wait(came, stage=m)
            quarter = inbox[m].rows(0, 1).load(form="vec")
            for other in lm.static_range(1, 4):
                quarter = quarter + inbox[m].rows(other, 1).load(form="vec")
            lm.atomic(DW, quarter, coords=(me * part,), order="any")
