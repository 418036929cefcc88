"""Guards that tell members or tiles apart, and accesses that they hold: what strangers' schedules showed."""

from __future__ import annotations

from cake_verify import verify_text
from cake_verify.verdict import Verdict

HEADS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def scaled(lm, X: LM.gmem3d[LM.f32, "ROWS", "HEADS", 128], S: LM.gmem1d[LM.f32, "ROWHEADS"], ptr: LM.gmem1d[LM.i32, "NP"],
           Y: LM.gmem3d[LM.f32, "N", "HEADS", 128], ROWS: LM.i32, HEADS: LM.i32, ROWHEADS: LM.i32, N: LM.i32, NP: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(NP == N + 1)
    lm.assume(ROWHEADS == ROWS * HEADS)
    lm.assume_values(ptr, 0, ROWS + 1, sorted=True)
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(HEADS, 4), N), names=("h", "n"))
    with work:
        for t in lm.tiles(sched):
            head = t.h * 4 + work.index
            if head < HEADS:
                out = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
                for i in lm.range(lm.ld(ptr, t.n), lm.ld(ptr, t.n + 1)):
                    out = out + lm.load(X, coords=(0, head, i), shape=(128,), form="vec", like=out) * lm.ld(S, i * HEADS + head)
                lm.store(Y, out, coords=(0, head, t.n))
'''

STAGED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def turned(lm, X: LM.gmem2d[LM.f32, "T", "HW"], Y: LM.gmem2d[LM.f32, "T", "HW"], T: LM.i32, H: LM.i32, HW: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(HW == 128 * H)
    pool = lm.smem(2 * 512)
    s = pool.view(offset=0, shape=(128,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 2), members=2)
    own = lm.named_barrier(work, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(H, 2), T), names=("h", "t"))
    with work:
        for t in lm.tiles(sched):
            head = t.h * 2 + work.index
            if head < H:
                mine = s[work.index]
                x = lm.load(X, coords=(head * 128, t.t), shape=(128,), form="vec")
                mine.store(x)
                lm.sync(own)
                lm.store(Y, x + mine.ld(127), coords=(head * 128, t.t))
'''

ARMS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def picked(lm, n: LM.gmem1d[LM.i32, "B"], p: LM.gmem1d[LM.f32, "TOK"], out: LM.gmem2d[LM.i32, "B", "K1"], B: LM.i32, TOK: LM.i32, K1: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(TOK >= K1)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            many = lm.min(lm.ld(n, t.b), K1 - 1)
            alive = 1
            for i in lm.range(many):
                if alive > 0:
                    if lm.ld(p, i) > 0.5:
                        lm.store(out, 1, coords=(i, t.b))
                    else:
                        alive = 0
                        lm.store(out, 2, coords=(i, t.b))
            if alive > 0:
                lm.store(out, 3, coords=(many, t.b))
'''

PARTS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def normed(lm, X: LM.gmem2d[LM.f32, "ROWS", "D"], flags: LM.gmem1d[LM.i32, "WORDS"].zeroed, S: LM.gmem2d[LM.f32, "ROWS", "D"], Y: LM.gmem2d[LM.f32, "ROWS", "D"],
           ROWS: LM.i32, WORDS: LM.i32, *, D=1024):
    lm.launch(grid="persistent")
    lm.assume(WORDS == ROWS * 4)
    work = lm.role(warps=range(0, 2))
    sched = lm.scheduler(kind="static", tiles=(5, ROWS), names=("c", "r"))
    with work:
        for t in lm.tiles(sched):
            if t.c < 4:
                lm.store(S, lm.load(X, coords=(t.c * 256, t.r), shape=(256,), form="vec") * 2.0, coords=(t.c * 256, t.r))
                lm.signal(flags, t.r * 4 + t.c, 1)
            else:
                for c in lm.static_range(4):
                    lm.spin(flags, t.r * 4 + c, 1)
                lm.store(Y, lm.load(S, coords=(0, t.r), shape=(D,), form="vec"), coords=(0, t.r))
'''

HALVES = '''
@cake.schedule(target="sm_90a")
def gated(lm, X: LM.tma2d[LM.bf16, "M", "K"], W: LM.tma2d[LM.bf16, "N2", "K"], Y: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, K: LM.i32, N: LM.i32, N2: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N2 == 2 * N and N % 64 == 0 and K > 0)
    pool = lm.smem(3 * 64 * 64 * 2)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    g = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    u = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), N // 64))
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                x.tma_load(X, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                g.tma_load(W, coords=(k * 64, t.n * 64), stage=s, barrier=full)
                u.tma_load(W, coords=(k * 64, N + t.n * 64), stage=s, barrier=full)
    with math:
        a = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        b = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(a, x[s], g[s], init=(k == 0))
                lm.mma(b, x[s], u[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(Y, lm.silu(a) * b, coords=(t.n * 64, t.m * 64), mask=lm.in_bounds(a, M - t.m * 64, 64))
'''


def _codes(text: str) -> tuple[str, list[str]]:
    verdict: Verdict = verify_text(text)
    return verdict.verdict, [d.code for d in verdict.diagnostics]


def test_a_guard_on_the_tile_holds_an_access_in_a_loop_as_long_as_memory_says() -> None:
    assert _codes(HEADS) == ("pass", [])
    assert _codes(HEADS.replace("if head < HEADS:", "if head < HEADS + 1:"))[0] == "fail"


def test_members_that_a_guard_lets_through_together_are_seen_to_share_a_stage() -> None:
    assert _codes(STAGED) == ("pass", [])
    verdict, codes = _codes(STAGED.replace("s[work.index]", "s[0]"))
    assert (verdict, codes[0][0]) == ("fail", "S")


def test_a_number_names_no_stage_that_the_view_has_not() -> None:
    assert _codes(STAGED.replace("stage=2", "stage=1")) == ("fail", ["S032"])


def test_one_thread_that_stores_in_several_arms_is_in_order_with_itself() -> None:
    assert _codes(ARMS) == ("pass", [])


def test_stores_of_several_threads_in_several_arms_are_not_decided() -> None:
    text = ARMS.replace('"B", "K1"], B', '"B", "K1"], x: LM.gmem1d[LM.i32, 256], B').replace("lm.store(out, 1, coords=(i, t.b))", 'lm.store(out, lm.load(x, coords=(0,), shape=(256,), form="vec"), coords=(0, t.b), clip=True)')
    assert _codes(text)[0] != "pass"


def test_tiles_of_two_kinds_along_an_axis_of_five_are_both_walked() -> None:
    assert _codes(PARTS) == ("pass", [])
    assert _codes(PARTS.replace("lm.static_range(4)", "lm.static_range(3)"))[0] == "fail"


def test_gate_and_up_of_one_matrix_lie_an_argument_apart() -> None:
    assert _codes(HALVES)[0] == "pass"
    assert _codes(HALVES.replace("N + t.n * 64", "64 + t.n * 64"))[1][0] == "S034"


def test_an_index_of_which_no_value_is_possible_belongs_to_no_argument() -> None:
    text = HEADS.replace("ptr: LM", 'which: LM.gmem1d[LM.i32, "N"], ptr: LM').replace("    lm.assume_values(ptr", "    lm.assume_values(which, 0, NP - 1)\n    lm.assume_values(ptr")
    assert _codes(text.replace("lm.ld(ptr, t.n)", "lm.ld(ptr, lm.ld(which, t.n))").replace("lm.ld(ptr, t.n + 1)", "lm.ld(ptr, lm.ld(which, t.n) + 1)")) == ("pass", [])


SOLVED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def solved(lm, X: LM.gmem3d[LM.f32, "T", "H", 64], Y: LM.gmem3d[LM.f32, "T", "H", 64], n: LM.gmem1d[LM.i32, "B"], T: LM.i32, H: LM.i32, B: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(n, 0, T + 1)
    work = lm.role(warps=range(0, 2), members=2)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(H, 2), B), names=("h", "b"))
    with work:
        for t in lm.tiles(sched):
            head = t.h * 2 + work.index
            if head < H:
                first = 16 * t.b
                left = lm.min(lm.ld(n, t.b) - first, 16)
                x = lm.load(X, coords=(0, head, first), shape=(16, 64), form="acc", clip=True)
                lm.store(Y, x + x, coords=(0, head, lm.iota(x, 0, base=first)), mask=lm.in_bounds(x, left, 64))
'''


def test_a_mask_of_rows_counts_what_is_left_along_their_own_axis() -> None:
    assert "S033" not in _codes(SOLVED)[1]
    assert _codes(SOLVED.replace("lm.iota(x, 0, base=first)", "first"))[1] == ["S033"]


def test_a_mask_read_from_memory_does_not_excuse_the_other_axis() -> None:
    text = STAGED.replace("H: LM.i32, HW", "n: LM.gmem1d[LM.i32, \"T\"], H: LM.i32, HW").replace("lm.store(Y, x + mine.ld(127), coords=(head * 128, t.t))", "lm.store(Y, x + mine.ld(127), coords=(head * 128, t.t), mask=lm.in_bounds(x, lm.ld(n, t.t), 128))")
    assert _codes(text)[0] == "pass"
    assert _codes(text.replace("if head < H:", "if head <= H:"))[0] == "fail"


def test_the_last_of_rounds_that_memory_may_leave_out_is_as_ragged_as_any() -> None:
    text = ARMS.replace('"B", "K1"], B', '"B", "K1"], x: LM.gmem2d[LM.f32, "TOK", "V"], V: LM.i32, B').replace(
        "                        alive = 0\n", '                        alive = 0\n                        best = 0.0\n                        for c in lm.range(lm.cdiv(V, 128)):\n                            best = best + lm.reduce(lm.load(x, coords=(c * 128, i), shape=(128,), form="vec", clip=True), "add", across=work, scratch=s, sync=meet)\n                            lm.sync(meet)\n')  # fmt: skip
    text = text.replace("    sched = ", "    pool = lm.smem(16)\n    s = pool.view(offset=0, shape=(4,), dtype=lm.f32)\n    meet = lm.named_barrier(work)\n    sched = ").replace("lm.store(out, 2,", "lm.store(out, lm.where(best > 0.0, 2, 4),")
    assert _codes(text) == ("pass", [])
    assert _codes(text.replace(', form="vec", clip=True), "add"', ', form="vec"), "add"')) == ("fail", ["S033"])
