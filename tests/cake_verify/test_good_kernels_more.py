"""More right kernels that rules refused once: maxima that a branch keeps from nothing, caches that grow behind what is read."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text
from cake_verify.rules.consistency.d077_no_maximum_yet import PAGE

HEAD, TAIL = PAGE.passing.split("                x = lm.load", 1)[0], "            lm.store(M, m" + PAGE.passing.split("            lm.store(M, m", 1)[1]
ASKED = """                at = (i * 4 + work.index) * 64
                if at < n:
                    x = lm.load(X, coords=(at, 0), shape=(64, 64), form="acc", clip=True)
                    z = lm.where(lm.iota(x, 1, base=at) < n, x, -lm.inf)
                    top = lm.max(m, lm.reduce(z, "max", axis=1))
                    l = l * lm.exp(m - top) + lm.sum(lm.exp(z - top), axis=1)
                    m = top
"""
LOW = """                at = (i * 4 + work.index) * 64
                x = lm.load(X, coords=(at, 0), shape=(64, 64), form="acc", clip=True)
                z = lm.where(lm.iota(x, 1, base=at) < n, x, -1e30)
                top = lm.max(m, lm.reduce(z, "max", axis=1))
                l = l * lm.exp(m - top) + lm.sum(lm.where(lm.iota(x, 1, base=at) < n, lm.exp(z - top), 0.0), axis=1)
                m = top
"""

DECODE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def decode(lm, Q: LM.gmem2d[LM.f32, "B", 128], KNEW: LM.gmem2d[LM.f32, "B", 128], CACHE: LM.gmem3d[LM.f32, "B", "S", 128].inout, LEN: LM.gmem1d[LM.i32, "B"].const, Y: LM.gmem2d[LM.f32, "B", "S"], B: LM.i32, S: LM.i32):
    """Old keys are scored from the cache, the new one from where it comes, and stored."""
    lm.launch(grid="tiles")
    lm.assume_values(LEN, 0, S)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            q = lm.load(Q, coords=(0, t.b), shape=(128,))
            fresh = lm.load(KNEW, coords=(0, t.b), shape=(128,))
            for i in lm.range(n):
                k = lm.load(CACHE, coords=(0, i, t.b), shape=(128,))
                lm.store(Y, lm.sum(q * k, axis=0), coords=(i, t.b))
            lm.store(CACHE, fresh, coords=(0, n, t.b))
            lm.store(Y, lm.sum(q * fresh, axis=0), coords=(n, t.b))
'''

CONCAT = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def concat(lm, A: LM.gmem2d[LM.f32, "TA", 128], CA: LM.gmem1d[LM.i32, "B1"].const, X: LM.gmem2d[LM.f32, "TX", 128], CX: LM.gmem1d[LM.i32, "B1"].const, Y: LM.gmem2d[LM.f32, "TY", 128], TA: LM.i32, TX: LM.i32, TY: LM.i32, B: LM.i32, B1: LM.i32):
    """Each sequence of A, then that of X behind it."""
    lm.launch(grid="tiles")
    lm.assume(B1 == B + 1 and TY == TA + TX)
    lm.assume_values(CA, 0, TA + 1, sorted=True)
    lm.assume_values(CX, 0, TX + 1, sorted=True)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            a0, x0 = lm.ld(CA, t.b), lm.ld(CX, t.b)
            na, nx = lm.ld(CA, t.b + 1) - a0, lm.ld(CX, t.b + 1) - x0
            for i in lm.range(na):
                lm.store(Y, lm.load(A, coords=(0, a0 + i), shape=(128,)), coords=(0, a0 + x0 + i))
            for i in lm.range(nx):
                lm.store(Y, lm.load(X, coords=(0, x0 + i), shape=(128,)), coords=(0, a0 + x0 + na + i))
'''

SEGMENTS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem2d[LM.f32, "T", 128], SEG: LM.gmem1d[LM.i32, "T"].const, Y: LM.gmem2d[LM.f32, "S", 128].zeroed, T: LM.i32, S: LM.i32):
    """Sorted segments: a sum goes out when the segment changes."""
    lm.launch(grid="tiles")
    lm.assume(T % 32 == 0)
    lm.assume_values(SEG, 0, S, sorted=True)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T // 32,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(32):
                r = t.t * 32 + i
                acc = acc + lm.load(X, coords=(0, r), shape=(128,), like=acc)
                s = lm.ld(SEG, r)
                last = i == 31
                if last:
                    lm.atomic(Y, acc, coords=(0, s), order="any")
                else:
                    if lm.ld(SEG, r + 1) != s:
                        lm.atomic(Y, acc, coords=(0, s), order="any")
                        acc = acc * 0.0
'''

GOOD = {"one sequence behind the other": CONCAT, "sorted segments": SEGMENTS, "a branch asks": HEAD + ASKED + TAIL, "a low number": HEAD + LOW + TAIL, "behind what is read": DECODE}


COPY = '''
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.tma2d[LM.bf16, "M", "K"], Y: LM.gmem2d[LM.bf16, "M", "K"], M: LM.i32, K: LM.i32, A: LM.i32, B: LM.i32, C: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(ASSUME)
    pool = lm.smem(3 * 8192)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=3, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=3)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64),), names=("m",))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                tile.tma_load(X, coords=(k * 64, t.m * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = tile[s].load(form="acc")
                lm.arrive(empty, stage=s)
                lm.store(Y, x, coords=(k * 64, t.m * 64), clip=True)
'''


@pytest.mark.parametrize("assumed", ["K < A and A < B and B < C and K % 8 == 0 and C < 4096", "K - A >= 64 and A >= 64 and K % 8 == 0", "A <= K and K <= A + 64 and K % 8 == 0"])
def test_assumptions_that_tie_arguments_are_kept(assumed: str) -> None:
    assert verify_text(COPY.replace("ASSUME", assumed)).verdict == "pass"


LAGGING = """
@cake.schedule(target=("sm_80", "sm_90a"))
def copy(lm, X: LM.gmem2d[LM.f32, "T", 256], Y: LM.gmem2d[LM.f32, "T", 256], T: LM.i32):
    \"\"\"Each round loads a row and stores the one before.\"\"\"
    lm.launch(grid="tiles")
    lm.assume(T % 4 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T // 4,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r * 4), shape=(256,))
            for i in lm.range(1, 6):
                if i > 1:
                    lm.store(Y, x, coords=(0, t.r * 4 + i - 2))
                    if i < 5:
                        x = lm.load(X, coords=(0, t.r * 4 + i - 1), shape=(256,))
"""

PROLOGUE = """
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem2d[LM.f32, "SLOTS", 256], WHERE: LM.gmem1d[LM.i32, "N"].const, Y: LM.gmem2d[LM.f32, "T", 256], SLOTS: LM.i32, N: LM.i32, T: LM.i32, TOP: LM.i32):
    \"\"\"One name for a number from memory, in two loops.\"\"\"
    lm.launch(grid="tiles")
    lm.assume(N == T * TOP)
    lm.assume_values(WHERE, -1, SLOTS)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            for k in lm.range(TOP // 2):
                slot = lm.ld(WHERE, t.t * TOP + k)
                if slot >= 0:
                    total = total + lm.load(X, coords=(0, slot), shape=(256,), like=total)
            for k in lm.range(TOP // 2, TOP):
                slot = lm.ld(WHERE, t.t * TOP + k)
                if slot >= 0:
                    total = total - lm.load(X, coords=(0, slot), shape=(256,), like=total)
            lm.store(Y, total, coords=(0, t.t))
"""

LATE = COPY.replace("ASSUME", "K % 8 == 0").replace("                lm.arrive(empty, stage=s)\n", "                if k > 0:\n                    lm.arrive(empty, stage=s.prev())\n") + "            if kt > 0:\n                lm.arrive(empty, stage=lm.at(ring))\n"


def test_rounds_that_a_branch_chooses() -> None:
    assert verify_text(LAGGING).verdict == "pass"
    assert verify_text(PROLOGUE).verdict == "pass"
    assert verify_text(LATE).verdict == "pass"


def test_a_copy_a_round_late_goes_on_behind_the_first_tiles() -> None:
    case = CASES["router_topk_fused"]
    head, loop = case.text().split("            for k in lm.range(kt):\n")
    body, tail = loop.split("            lm.cp_wait(pending=0)\n")
    late = "            for i in lm.range(kt + 1):\n                if i > 0:\n                    k = i - 1\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert verdict_of(head + late + "            lm.cp_wait(pending=0)\n" + tail, case.name)[0].verdict == "pass"


@pytest.mark.parametrize("name", GOOD)
def test_right_kernels_pass(name: str) -> None:
    verdict = verify_text(GOOD[name])
    assert verdict.verdict == "pass", [(d.code, d.message) for d in verdict.diagnostics]


def test_a_branch_on_something_else_asks_nothing() -> None:
    text = HEAD + ASKED.replace("if at < n:", "if N > 64:") + TAIL
    assert [d.code for d in verify_text(text).errors] == ["D077"]


def test_sequences_that_are_shifted_by_a_row_are_not_decided() -> None:
    assert verify_text(CONCAT.replace("a0 + x0 + na + i", "a0 + x0 + na - 1 + i")).verdict != "pass"
    assert verify_text(CONCAT.replace("(CX, 0, TX + 1, sorted=True)", "(CX, 0, TX + 1)")).verdict != "pass"


def test_members_that_write_one_row_are_not_apart() -> None:
    assert verify_text(CONCAT.replace("lm.role(warps=[0])", "lm.role(warps=range(0, 2), members=2)")).verdict != "pass"


def test_what_is_read_up_to_the_new_row_is_not_decided() -> None:
    assert verify_text(DECODE.replace("lm.range(n)", "lm.range(n + 1)")).verdict != "pass"
