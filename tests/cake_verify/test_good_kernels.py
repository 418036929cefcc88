"""Small right kernels that rules refused once, or could not decide: texts of their own, each with what it becomes where it is wrong."""

from __future__ import annotations

import pytest

from cake_verify import verify_text

FLIP = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def flip(lm, X: LM.gmem2d[LM.bf16, "T", 256], Y: LM.gmem2d[LM.bf16, "T", 256], T: LM.i32):
    """The rows of a sequence the other way round."""
    lm.launch(grid="tiles")
    lm.assume(T % 4 == 0)
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="grid", tiles=(T // 4,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            row = t.t * 4 + work.index
            x = lm.load(X, coords=(0, row), shape=(256,))
            lm.store(Y, x, coords=(0, T - 1 - row))
'''

APPEND = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def append(lm, X: LM.gmem2d[LM.bf16, "T", 128], CACHE: LM.gmem2d[LM.bf16, "S", 128].inout, T: LM.i32, S: LM.i32, POS: LM.i32):
    """The rows of a step go behind those that a cache has."""
    lm.launch(grid="tiles")
    lm.assume(POS >= 0 and POS + T <= S)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            lm.store(CACHE, lm.load(X, coords=(0, t.t), shape=(128,)), coords=(0, POS + t.t))
'''

ROPE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def rope(lm, X: LM.gmem2d[LM.f32, "T", 256].inout, C: LM.gmem2d[LM.f32, "T", 128], S: LM.gmem2d[LM.f32, "T", 128], T: LM.i32):
    """Rotary embedding in place, neighbours form a pair."""
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            c = lm.load(C, coords=(0, t.t), shape=(128,))
            s = lm.load(S, coords=(0, t.t), shape=(128,), like=c)
            i = lm.iota(c, 0)
            a = lm.load(X, coords=(2 * i, t.t), shape=(128,), like=c)
            b = lm.load(X, coords=(2 * i + 1, t.t), shape=(128,), like=c)
            lm.store(X, a * c - b * s, coords=(2 * i, t.t))
            lm.store(X, b * c + a * s, coords=(2 * i + 1, t.t))
'''

HIGHEST = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def highest(lm, Q: LM.gmem2d[LM.bf16, "S", 64], K: LM.gmem2d[LM.bf16, "S", 64], Y: LM.gmem2d[LM.f32, 2, "S"], S: LM.i32):
    """The largest score of each row up to the diagonal; two blocks share the keys of a tile of rows."""
    lm.launch(grid="tiles")
    lm.assume(S % 64 == 0)
    pool = lm.smem(64 * 64 * 2)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(S // 64, 2), names=("m", "h"))
    with work:
        for t in lm.tiles(sched):
            q = lm.load(Q, coords=(0, t.m * 64), shape=(64, 64), form="a")
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            top = lm.rowvec(o, init=-lm.inf)
            half = lm.cdiv(t.m + 1, 2)
            for j in lm.range(t.h * half, lm.min((t.h + 1) * half, t.m + 1)):
                lm.sync(each)
                ks.cp_async(K, coords=(0, j * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(each)
                s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(s, q, ks.ldmatrix(form="b"))
                x = lm.where(lm.iota(s, 1, base=j * 64) <= lm.iota(s, 0, base=t.m * 64), s, -lm.inf)
                top = lm.max(top, lm.reduce(x, "max", axis=1))
            lm.store(Y, top, coords=(t.m * 64, t.h))
'''

PEELED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def highest(lm, Q: LM.gmem2d[LM.bf16, "S", 64], K: LM.gmem2d[LM.bf16, "S", 64], Y: LM.gmem1d[LM.f32, "S"], S: LM.i32):
    """The tile on the diagonal by itself, in front of those on its left."""
    lm.launch(grid="tiles")
    lm.assume(S % 64 == 0)
    pool = lm.smem(64 * 64 * 2)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(S // 64,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            q = lm.load(Q, coords=(0, t.m * 64), shape=(64, 64), form="a")
            ks.cp_async(K, coords=(0, t.m * 64))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(each)
            d = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            lm.mma(d, q, ks.ldmatrix(form="b"))
            top = lm.reduce(lm.where(lm.iota(d, 1) <= lm.iota(d, 0), d, -lm.inf), "max", axis=1)
            for j in lm.range(lm.cdiv(t.m * 64, 64)):
                lm.sync(each)
                ks.cp_async(K, coords=(0, j * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(each)
                s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(s, q, ks.ldmatrix(form="b"))
                x = lm.where(lm.iota(s, 1, base=j * 64) <= lm.iota(s, 0, base=t.m * 64), s, -lm.inf)
                top = lm.max(top, lm.reduce(x, "max", axis=1))
            lm.sync(each)
            lm.store(Y, top, coords=(t.m * 64,))
'''

ROOM = '''
@cake.schedule(target="sm_90a")
def widen(lm, A: LM.tma2d[LM.bf16, "M", "K"], C: LM.gmem2d[LM.bf16, "M", "ROOM"], M: LM.i32, K: LM.i32, ROOM: LM.i32):
    """Into a buffer with room for more: columns from the right, which the other ones are left alone by."""
    lm.launch(grid="persistent")
    lm.assume(K > 64 and K % 8 == 0 and ROOM >= K + 64)
    pool = lm.smem(16384)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64),), names=("m",))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=((kt - 1 - k) * 64, t.m * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = a[s].load(form="acc")
                lm.arrive(empty, stage=s)
                lm.store(C, x, coords=((kt - 1 - k) * 64, t.m * 64), clip=True)
'''

PACKED = '''
@cake.schedule(target="sm_90a")
def double(lm, X: LM.tma2d[LM.bf16, "T", 64], Y: LM.tma2d[LM.bf16, "T", 64], CU: LM.gmem1d[LM.i32, "NS1"].const, NSEQ: LM.i32, NS1: LM.i32, T: LM.i32):
    """Packed sequences: whole tiles one way, what is left another."""
    lm.launch(grid="tiles")
    lm.assume(NS1 == NSEQ + 1)
    lm.assume_values(CU, 0, T + 1, sorted=True)
    pool = lm.smem(32768)
    rows = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    out = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    oring = lm.pipeline(stages=2)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(NSEQ,), names=("seq",))
    with load:
        for t in lm.tiles(sched):
            bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
            for i in lm.range(lm.cdiv(eos - bos, 64)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                rows.tma_load(X, coords=(0, bos + i * 64), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
            for i in lm.range(lm.cdiv(eos - bos, 64)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = rows[s].load(form="acc")
                lm.arrive(empty, stage=s)
                o = lm.step(oring)
                lm.store_wait(pending=1)
                lm.sync(cta)
                out[o].store(x + x)
                lm.fence_proxy()
                lm.sync(cta)
                if eos - bos - i * 64 >= 64:
                    out[o].tma_store(Y, coords=(0, bos + i * 64))
                else:
                    out[o].tma_store(Y, coords=(0, bos + i * 64), rows=eos - bos - i * 64)
        lm.store_wait(pending=0)
'''

FROM_THE_END = PACKED.replace("lm.cdiv(eos - bos, 64)", "(eos - bos) // 64").replace("bos + i * 64", "eos - (i + 1) * 64").replace("                if eos - bos - i * 64 >= 64:\n    ", "")
FROM_THE_END = FROM_THE_END[: FROM_THE_END.index("                else:")] + "        lm.store_wait(pending=0)\n"

ORDINARY = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def double(lm, X: LM.gmem2d[LM.f32, "T", 64], Y: LM.gmem2d[LM.f32, "T", 64], CU: LM.gmem1d[LM.i32, "NS1"].const, NSEQ: LM.i32, NS1: LM.i32, T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(NS1 == NSEQ + 1)
    lm.assume_values(CU, 0, T + 1, sorted=True)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(NSEQ,), names=("seq",))
    with work:
        for t in lm.tiles(sched):
            bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
            for i in lm.range(lm.cdiv(eos - bos, 64)):
                x = lm.load(X, coords=(0, bos + i * 64), shape=(64, 64), form="acc", clip=True)
                if bos + i * 64 + 64 <= eos:
                    lm.store(Y, x + x, coords=(0, bos + i * 64))
                else:
                    lm.store(Y, x + x, coords=(0, bos + i * 64), mask=lm.in_bounds(x, eos - bos - i * 64, 64))
'''

SCALES = '''
@cake.schedule(target="sm_100a")
def quantise(lm, X: LM.gmem2d[LM.f32, "R", 1024], Q: LM.gmem2d[LM.e4m3, "R", 1024], S: LM.gmem2d[LM.e4m3, "R", 8], R: LM.i32, whole: LM.f32):
    """Two levels of scales: those of blocks are stored in e4m3, relative to one of the whole tensor."""
    lm.launch(grid="persistent")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(1, 1024), form="vec")
            s = lm.amax_scale(x, axis=1, block=128)
            lm.store(S, lm.cast(s * whole, lm.e4m3), coords=(0, t.r))
            lm.store(Q, lm.cast(x * lm.rcp(s), lm.e4m3), coords=(0, t.r))
'''

DISTANCES = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def distances(lm, X: LM.gmem2d[LM.bf16, "N", 64], SQ: LM.gmem1d[LM.f32, "N"], Y: LM.gmem2d[LM.f32, "N", "NC"], N: LM.i32, NC: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 64 == 0 and NC == N)
    pool = lm.smem(2 * 64 * 64 * 2)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(N // 64, N // 64), names=("i", "j"))
    with work:
        for t in lm.tiles(sched):
            a.cp_async(X, coords=(0, t.i * 64))
            b.cp_async(X, coords=(0, t.j * 64))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(each)
            s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            lm.mma(s, a.ldmatrix(form="a"), b.ldmatrix(form="b"))
            mine = lm.load(SQ, coords=(t.i * 64,), shape=(64,), form="rowvec", like=s)
            other = lm.load(SQ, coords=(t.j * 64,), shape=(64,), form="colvec", like=s)
            lm.store(Y, mine + other - 2.0 * s, coords=(t.j * 64, t.i * 64))
'''

PAIRS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def pairs(lm, X: LM.gmem2d[LM.f32, "T", 256], Y: LM.gmem3d[LM.f32, "T", "T", 256], T: LM.i32):
    """Differences of all pairs of rows."""
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T, T), names=("i", "j"))
    with work:
        for t in lm.tiles(sched):
            a = lm.load(X, coords=(0, t.i), shape=(256,))
            b = lm.load(X, coords=(0, t.j), shape=(256,))
            lm.store(Y, lm.abs(a - b), coords=(0, t.j, t.i))
'''

SHARES = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def parts(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", "P"], R: LM.i32, N: LM.i32, P: LM.i32, PART: LM.i32):
    """Parts of whole tiles, as many as an equation says."""
    lm.launch(grid="tiles")
    lm.assume(PART == lm.cdiv(lm.cdiv(N, P), 64) * 64 and N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(P, R), names=("p", "r"))
    with work:
        for t in lm.tiles(sched):
            lo = t.p * PART
            hi = lm.min(lo + PART, N)
            acc = lm.frag(shape=(64,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(lm.cdiv(hi - lo, 64)):
                acc = acc + lm.load(X, coords=(lo + i * 64, t.r), shape=(64,), clip=True)
            lm.store(Y, lm.sum(acc, axis=0), coords=(t.p, t.r))
'''

RELATIVE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def spread(lm, X: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem2d[LM.f32, "R", 64], R: LM.i32):
    """The parts relative to the first one."""
    lm.launch(grid="tiles")
    pool = lm.smem(1024)
    parts = pool.view(offset=0, shape=(4, 64), dtype=lm.f32)
    work = lm.role(warps=range(0, 4), members=4)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            parts.rows(work.index, 1).store(lm.load(X, coords=(64 * work.index, t.r), shape=(64,)))
            lm.sync(meet)
            if work.index == 0:
                sums = lm.frag(shape=(64,), dtype=lm.f32, form="vec", init=0.0)
                for j in lm.static_range(4):
                    d = parts.rows(j, 1).load(form="vec", like=sums) - parts.rows(0, 1).load(form="vec", like=sums)
                    sums = sums + d * d
                lm.store(Y, sums, coords=(0, t.r))
            lm.sync(meet)
'''

CLASS_TOKEN = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32, N: LM.i32):
    """The first tile counts twice."""
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0 and N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            head = lm.load(X, coords=(0, t.r), shape=(256,))
            rest = head * 0.0
            for i in lm.range(1, N // 256):
                rest = rest + lm.load(X, coords=(i * 256, t.r), shape=(256,))
            lm.store(Y, lm.sum(head, axis=0) * 2.0 + lm.sum(rest, axis=0), coords=(t.r,))
'''

GOOD = {"packed": PACKED, "from the end": FROM_THE_END, "ordinary stores": ORDINARY, "two levels of scales": SCALES, "distances": DISTANCES, "pairs": PAIRS, "shares": SHARES, "relative": RELATIVE, "class token": CLASS_TOKEN, "flip": FLIP, "append": APPEND, "ring": APPEND.replace("POS + t.t)", "(POS + t.t) % S)"), "rope": ROPE, "rope by shifts": ROPE.replace("2 * i + 1", "(i << 1) + 1").replace("2 * i,", "i << 1,"), "shared keys": HIGHEST, "peeled": PEELED, "room": ROOM}


@pytest.mark.parametrize("name", GOOD)
def test_right_kernels_pass(name: str) -> None:
    verdict = verify_text(GOOD[name])
    assert verdict.verdict == "pass", [(d.code, d.message) for d in verdict.diagnostics]


def test_the_partner_s_row_is_another_one_s() -> None:
    assert [d.code for d in verify_text(FLIP.replace("T - 1 - row", "t.t * 4 + 3 - work.index")).errors] == ["Q018"]


@pytest.mark.parametrize(
    ("text", "old", "new", "code"),
    [
        (PACKED, ">= 64:", ">= 63:", "S013"),
        (FROM_THE_END, "(eos - bos) // 64", "lm.cdiv(eos - bos, 64)", "S013"),
        (ORDINARY, "                if bos + i * 64 + 64 <= eos:\n                    lm.store(Y, x + x, coords=(0, bos + i * 64))\n                else:\n                    lm.store(Y, x + x, coords=(0, bos + i * 64), mask=lm.in_bounds(x, eos - bos - i * 64, 64))",
         "                lm.store(Y, x + x, coords=(0, bos + i * 64))", "S033"),
        (SCALES, "x * lm.rcp(s)", "lm.max(lm.min(x * s, 448.0), -448.0)", "D059"),
        (SHARES, " * 64 and", " * 32 and", "D072"),
    ],
    ids=["a whole tile too many", "rows in front of the sequence", "no arm", "multiplied under a bound", "parts of halves"],
)  # fmt: skip
def test_what_these_become_where_they_are_wrong(text: str, old: str, new: str, code: str) -> None:
    assert old in text
    assert code in [d.code for d in verify_text(text.replace(old, new), suggest=False).errors]


def test_a_mask_one_element_behind_a_peeled_loop() -> None:
    wrong = PEELED.replace("base=j * 64) <= lm.iota(s, 0, base=t.m * 64)", "base=j * 64) <= lm.iota(s, 0, base=t.m * 64) + 1")
    assert {d.code for d in verify_text(wrong).errors} & {"D037", "D045"}


def test_pairs_that_overlap_are_not_decided() -> None:
    assert verify_text(ROPE.replace("2 * i + 1", "i + 1")).verdict == "undecided"
