@cake.schedule(target="sm_90a")
def decode_cluster_merge(lm, q: LM.gmem3d[LM.bf16, "B", "HEADS", "D"], kc: LM.tma3d[LM.bf16, "SLOTS", "KVH", "D"], vc: LM.tma3d[LM.bf16, "SLOTS", "KVH", "D"],
                         table: LM.gmem1d[LM.i32, "ENTRIES"], lens: LM.gmem1d[LM.i32, "B"], out: LM.gmem3d[LM.bf16, "B", "HEADS", "D"], lse: LM.gmem2d[LM.f32, "B", "HEADS"],
                         B: LM.i32, HEADS: LM.i32, SLOTS: LM.i32, KVH: LM.i32, PAGES: LM.i32, ENTRIES: LM.i32, scale: LM.f32, *, D=128, G=16, PAGE=16, RANKS=2):
    """Decode attention over pages of 16 tokens; the CTAs of a cluster share one sequence and meet in the leader's shared memory."""
    lm.launch(grid="tiles", cluster=(RANKS, 1))
    lm.assume(HEADS == KVH * G)
    lm.assume(ENTRIES == B * PAGES)
    lm.assume_values(table, 0, lm.cdiv(SLOTS, PAGE))
    lm.assume_values(lens, 0, PAGES * PAGE + 1)
    page_bytes = PAGE * D * 2
    base = 4 * page_bytes
    pool = lm.smem(base + RANKS * G * D * 4 + 2 * RANKS * G * 4)
    sk = pool.view(offset=0, shape=(PAGE, D), dtype=lm.bf16, stage=2, swizzle="128b")
    sv = pool.view(offset=2 * page_bytes, shape=(PAGE, D), dtype=lm.bf16, stage=2, swizzle="128b")
    all_o = pool.view(offset=base, shape=(RANKS * G, D), dtype=lm.f32)
    all_m = pool.view(offset=base + RANKS * G * D * 4, shape=(RANKS * G,), dtype=lm.f32)
    all_l = pool.view(offset=base + RANKS * G * D * 4 + RANKS * G * 4, shape=(RANKS * G,), dtype=lm.f32)
    solve = lm.role(warps=range(0, 1))
    fetch = lm.role(warps=range(1, 2))
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[solve], cons=[solve], arrive="tx", scope="cluster")
    buf = lm.pipeline(stages=2)
    landed = lm.barrier(pipeline=buf, prod=[fetch], cons=[solve], arrive="tx")
    spent = lm.barrier(pipeline=buf, prod=[solve], cons=[fetch], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(RANKS, KVH, B), names=("part", "h", "b"))
    with fetch:
        for t in lm.tiles(sched):
            for i in lm.range(lm.cdiv(lm.cdiv(lm.ld(lens, t.b), PAGE) - t.part, RANKS)):
                page = lm.ld(table, t.b * PAGES + t.part + i * RANKS)
                s = lm.step(buf)
                lm.wait(spent, stage=s)
                sk.tma_load(kc, coords=(0, t.h, page * PAGE), stage=s, barrier=landed, box=(D, 1, PAGE))
                sv.tma_load(vc, coords=(0, t.h, page * PAGE), stage=s, barrier=landed, box=(D, 1, PAGE))
    with solve:
        for t in lm.tiles(sched):
            n = lm.ld(lens, t.b)
            qa = lm.load(q, coords=(0, t.h * G, t.b), shape=(G, D), form="a")
            o = lm.frag(shape=(G, D), dtype=lm.f32, form="acc", init=0)
            m = lm.rowvec(o, init=-lm.inf)
            l = lm.rowvec(o, init=0.0)
            for i in lm.range(lm.cdiv(lm.cdiv(lm.ld(lens, t.b), PAGE) - t.part, RANKS)):
                s = lm.step(buf)
                lm.wait(landed, stage=s)
                x = lm.frag(shape=(G, PAGE), dtype=lm.f32, form="acc")
                lm.mma(x, qa, sk[s].ldmatrix(form="b"), init=True)
                x = x * (scale * 1.4426950408889634)
                x = lm.where(lm.iota(x, 1, base=(t.part + i * RANKS) * PAGE) < n, x, -lm.inf)
                top = lm.max(m, lm.reduce(x, "max", axis=1))
                fix = lm.exp2(m - top)
                e = lm.exp2(x - top)
                l = l * fix + lm.reduce(e, "add", axis=1)
                o = o * fix
                m = top
                lm.mma(o, lm.cast(e, lm.bf16, form="a"), sv[s].T.ldmatrix(form="b"))
                lm.arrive(spent, stage=s)
            r = lm.cta_rank()
            z = lm.step(mail)
            all_o.rows(r * G, G).send(o, cta=0, barrier=arrived, stage=z)
            all_m.cols(r * G, G).send(m, cta=0, barrier=arrived, stage=z)
            all_l.cols(r * G, G).send(l, cta=0, barrier=arrived, stage=z)
            if t.part == 0:
                lm.wait(arrived, stage=z)
                best = lm.rowvec(o, init=-lm.inf)
                for j in lm.static_range(RANKS):
                    best = lm.max(best, all_m.cols(j * G, G).load(form="rowvec", like=o))
                total = lm.rowvec(o, init=0.0)
                sum_o = lm.frag(shape=(G, D), dtype=lm.f32, form="acc", init=0)
                for j in lm.static_range(RANKS):
                    mj = all_m.cols(j * G, G).load(form="rowvec", like=o)
                    w = lm.where(mj == -lm.inf, 0.0, lm.exp2(mj - best))
                    total = total + w * all_l.cols(j * G, G).load(form="rowvec", like=o)
                    sum_o = sum_o + w * all_o.rows(j * G, G).load(form="acc", like=o)
                lm.store(out, lm.cast(lm.where(total > 0, sum_o / total, 0.0), lm.bf16), coords=(0, t.h * G, t.b))
                lm.store(lse, lm.where(total > 0, (best + lm.log2(total)) * 0.6931471805599453, -lm.inf), coords=(t.h * G, t.b))
