"""What schedules of somebody who knew the language page only were refused for, or passed with, wrongly: masks by numbers of a `vec` of rows, masks under
a name, row vectors that a reduction hands round, extents that an equation gives, and vectors of another form's rows."""

from __future__ import annotations

import pytest

from cake_verify import verify_text

ROWS_OF_VEC = '''
@cake.schedule(target="sm_89")
def rows(lm, X: LM.gmem2d[LM.bf16, "T", "D"], Y: LM.gmem2d[LM.bf16, "T", "D"], T: LM.i32, D: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(D, 128), lm.cdiv(T, 64)), names=("d", "r"))
    with work:
        for t in lm.tiles(sched):
            d, r = t.d * 128, t.r * 64
            z = lm.frag(shape=(64, 128), dtype=lm.bf16, form="FORM")
            rows, cols = lm.iota(z, 0), lm.iota(z, 1)
            x = lm.load(X, coords=(d, r), shape=(64, 128), form="FORM", like=z, mask=r + rows < T and d + cols < D)
            lm.store(Y, x, coords=(d, r), mask=MASK)
'''


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).diagnostics if d.severity == "error"]


@pytest.mark.parametrize("form", ["vec", "acc"])
@pytest.mark.parametrize("mask", ["r + rows < T and d + cols < D", "d + cols <= D - 1 and T > r + rows", "rows < T - r and cols < D - d", "rows < lm.min(64, T - r) and cols < D - d"])
def test_numbers_of_rows_mask_rows_in_every_form(form: str, mask: str) -> None:
    assert codes(ROWS_OF_VEC.replace("FORM", form).replace("MASK", mask)) == []


@pytest.mark.parametrize("form", ["vec", "acc"])
@pytest.mark.parametrize("mask", ["r + cols < T and d + rows < D", "r + rows < T"])
def test_numbers_of_the_other_axis_are_told(form: str, mask: str) -> None:
    assert "S033" in codes(ROWS_OF_VEC.replace("FORM", form).replace("MASK", mask))


TREE = '''
@cake.schedule(target="sm_80")
def tree(lm, Q: LM.gmem2d[LM.bf16, 16, 64], K: LM.gmem2d[LM.bf16, "S", 64], BITS: LM.gmem1d[LM.u32, 16], TOP: LM.gmem1d[LM.f32, 16], S: LM.i32, CTX: LM.i32):
    lm.assume(S > 0 and CTX >= 0 and CTX < S)
    pool = lm.smem(64 * 128)
    k = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=[0])
    with work:
        q = lm.load(Q, coords=(0, 0), shape=(16, 64), form="a")
        o = lm.frag(shape=(16, 64), dtype=lm.f32, form="acc")
        word = lm.load(BITS, coords=(0,), shape=(16,), form="rowvec", like=o)
        top = lm.rowvec(like=o, init=0.0) - lm.inf
        for j in lm.range(lm.cdiv(S, 64)):
            k.cp_async(K, coords=(0, j * 64))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(meet)
            lm.mma(o, q, k.ldmatrix(form="b"), init=True)
            key = j * 64 + lm.iota(o, 1)
            bit = lm.cast(lm.min(lm.max(key - CTX, 0), 31), lm.u32)
            seen = SEEN
            top = lm.max(top, lm.reduce(lm.where(seen, o, -lm.inf), "max", axis=1))
            lm.sync(meet)
        lm.store(TOP, top, coords=(0,))
'''.replace("    with work:", "    meet = lm.named_barrier(work)\n    with work:")


def test_a_mask_under_a_name_masks() -> None:
    assert codes(TREE.replace("SEEN", "key < CTX or (key < S and ((word >> bit) & 1) == 1)")) == []
    assert codes(TREE.replace("SEEN", "((word >> 1) & 1) == 1").replace("            key = j * 64 + lm.iota(o, 1)\n", "").replace("            bit = lm.cast(lm.min(lm.max(key - CTX, 0), 31), lm.u32)\n", "")) == ["D010"]


SCALES = '''
@cake.schedule(target="sm_89")
def moments(lm, G: LM.gmem2d[LM.bf16, "NB", 128], M: LM.gmem2d[LM.e4m3, "NB", 128].inout, S: LM.gmem1d[LM.f32, "NB"].inout, NB: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NB, 16),), names=("b",))
    with work:
        for t in lm.tiles(sched):
            g = lm.load(G, coords=(0, t.b * 16), shape=(16, 128), form="vec", clip=True)
            s = lm.load(S, coords=(t.b * 16,), shape=(16,), form="rowvec", like=g, clip=True)
            old = lm.cast(lm.load(M, coords=(0, t.b * 16), shape=(16, 128), form="vec", like=g, clip=True), lm.f32)
            m = old * s + lm.cast(g, lm.f32)
            new = lm.amax_scale(m, axis=1, block=128)
            lm.store(M, lm.cast(m * lm.rcp(new), lm.e4m3), coords=(0, t.b * 16), clip=True)
            lm.store(S, new, coords=(t.b * 16,), clip=True)
'''


def test_a_reduction_along_rows_waits_for_what_all_lanes_of_a_row_have_read() -> None:
    assert codes(SCALES) == []


@pytest.mark.parametrize("old, new", [
    ("lm.store(S, new,", "lm.store(S, s * 0.5,"),  # nothing was handed round
    ("old * s +", "old +"),  # what was read has no part in the new scale
    ("coords=(t.b * 16,), shape=(16,)", "coords=(t.b * 16 + 1,), shape=(16,)"),  # the scale of the row beside
])  # fmt: skip
def test_lanes_that_share_a_row_without_a_reduction_race(old: str, new: str) -> None:
    text = SCALES.replace(old, new)
    assert text != SCALES
    assert "S039" in codes(text if new != "old +" else text.replace("coords=(t.b * 16,), clip=True)\n", "coords=(t.b * 16,), clip=True)\n            lm.store(Y, s, coords=(t.b * 16,), clip=True)\n").replace("NB: LM.i32", 'Y: LM.gmem1d[LM.f32, "NB"], NB: LM.i32'))


SO_FAR = '''
@cake.schedule(target="sm_90a")
def greatest_so_far(lm, X: LM.gmem2d[LM.f32, "R", "N"], TOP: LM.gmem1d[LM.f32, "R"].inout, R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0 and N % 64 == 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(R, 64),), names=("m",))
    with work:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
        for t in lm.tiles(sched):
            top = lm.load(TOP, coords=(t.m * 64,), shape=(64,), form="rowvec", like=acc, clip=True)
            for j in lm.range(lm.cdiv(N, 64)):
                x = lm.load(X, coords=(j * 64, t.m * 64), shape=(64, 64), form="acc", clip=True)
                top = lm.reduce(lm.max(x, top), "max", axis=1)
            lm.store(TOP, top, coords=(t.m * 64,), clip=True)
'''


def test_rounds_that_surely_come_hand_round_what_was_read_in_front_of_them() -> None:
    assert codes(SO_FAR) == []


@pytest.mark.parametrize("old, new", [
    ("N > 0 and ", "N >= 0 and "),  # no round, no reduction
    ('lm.reduce(lm.max(x, top), "max", axis=1)', 'lm.max(top, lm.reduce(x, "max", axis=1))'),  # what the first round gives knows of no other lane's load
])  # fmt: skip
def test_rounds_that_may_not_come_or_do_not_ask_hand_nothing_round(old: str, new: str) -> None:
    assert old in SO_FAR and codes(SO_FAR.replace(old, new)) == ["S039"]


CHAIN = '''
@cake.schedule(target="sm_80")
def sums(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", "N"], CARRY: LM.gmem1d[LM.f32, "WORDS"], FLAG: LM.gmem1d[LM.i32, "WORDS"].zeroed,
         R: LM.i32, N: LM.i32, CH: LM.i32, WORDS: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(CH == lm.cdiv(N, 1024) and WORDS == R * CH)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="static", tiles=(CH, R), names=("c", "r"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.c * 1024, t.r), shape=(1024,), form="vec", clip=True)
            y = lm.scan(x, "add", axis=0)
            before = 0.0
            if t.c > 0:
                lm.spin(FLAG, t.r * CH + t.c - 1, 1)
                before = lm.ld(CARRY, t.r * CH + t.c - 1)
            lm.store(CARRY, before + lm.reduce(x, "add", axis=0), coords=(t.r * CH + t.c,))
            lm.signal(FLAG, t.r * CH + t.c, 1)
            lm.store(Y, y + before, coords=(t.c * 1024, t.r), clip=True)
'''


def test_tiles_that_an_equation_counts_are_walked_in_numbers() -> None:
    assert verify_text(CHAIN).verdict == "pass"
    assert "S039" in codes(CHAIN.replace("                lm.spin(FLAG, t.r * CH + t.c - 1, 1)\n", ""))


@pytest.mark.parametrize("form", ["rowvec", "colvec"])
def test_a_vector_without_like_belongs_to_an_acc(form: str) -> None:
    text = f'''
@cake.schedule(target="sm_100a")
def gate(lm, G: LM.gmem1d[LM.f32, 128], X: LM.gmem2d[LM.f32, 128, 128], Y: LM.gmem2d[LM.f32, 128, 128]):
    work = lm.role(warps=range(0, 4))
    with work:
        x = lm.load(X, coords=(0, 0), shape=(128, 128), form="rows")
        gate = lm.load(G, coords=(0,), shape=(128,), form="{form}", like=x)
        lm.store(Y, x * gate, coords=(0, 0))
'''
    assert codes(text) == []
    assert codes(text.replace(", like=x", "")) == ["D002"]
    assert codes(text.replace(", like=x", "").replace("rows\")", "acc\")")) == []


def test_what_is_computed_from_an_impossible_fragment_is_not_told_again() -> None:
    text = """
@cake.schedule(target="sm_90a")
def two(lm, Y: LM.gmem2d[LM.f32, 1, 2]):
    work = lm.role(warps=range(0, 4))
    with work:
        two = lm.frag(shape=(1, 2), dtype=lm.f32, form="vec", init=0.0)
        lm.store(Y, lm.where(lm.iota(two, 1) == 0, two, 1.0), coords=(0, 0))
"""
    assert codes(text) == ["D026"]


@pytest.mark.parametrize("mask, good", [
    ("lm.iota(total, 0) < N - i * 128", True), ("lm.iota(total, 0, base=i * 128) < N", True), ("i * 128 + lm.iota(total, 0) < N", True), ("lm.iota(total, 0, base=i * 128) <= N", False),
])  # fmt: skip
def test_numbers_of_a_line_mask_its_elements_whatever_the_tensor(mask: str, good: bool) -> None:
    text = f"""
@cake.schedule(target="sm_80")
def rows(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(lm.cdiv(N, 128)):
                x = lm.load(X, coords=(i * 128, t.r), shape=(128,), form="vec", mask={mask})
                total = total + x
            lm.store(Y, lm.reduce(total, "add", axis=0), coords=(t.r,))
"""
    assert codes(text) == ([] if good else ["S033"])
