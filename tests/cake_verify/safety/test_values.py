"""What values mean: tiles that belong together, products that are lost, results that nobody uses, accesses that leave their tensor."""

from pathlib import Path

import pytest

from cake_verify import verify_text
from cake_verify.analyses.labels import UNKNOWN, apart, join, moved
from cake_verify.rules.examples import COPY, LOOP, TILE, edit
from cake_verify.rules.safety.texts import NAMED

MATMUL = '''
@cake.schedule(target="sm_120a")
def gemm(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"], BIAS: LM.gmem1d[LM.f32, "N"].const,
         M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    pool = lm.smem(8192)
    sa = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    sb = pool.view(offset=4096, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    math = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 64)))
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", warps=(4, 1), init=0.0)
            bias = lm.load(BIAS, coords=(t.n * 64,), shape=(64,), form="colvec", like=acc, clip=True)
            for k in lm.range(lm.cdiv(K, 32)):
                sa.cp_async(A, coords=(k * 32, t.m * 64))
                sb.cp_async(B, coords=(k * 32, t.n * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(cta)
                for kk in lm.static_range(2):
                    a = sa.cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb.cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.sync(cta)
            lm.store(C, lm.cast(acc + bias, lm.bf16), coords=(t.n * 64, t.m * 64), clip=True)
'''


def first(text: str):
    verdict = verify_text(text)
    assert verdict.verdict == "fail", [d.message for d in verdict.diagnostics]
    return verdict.errors[0]


@pytest.mark.parametrize("text", [NAMED, MATMUL], ids=["wgmma", "mma_sync"])
def test_the_good_schedule_passes(text):
    verdict = verify_text(text)
    assert verdict.verdict == "pass", [(d.code, d.message) for d in verdict.diagnostics]


TILES = {
    "b one step ahead": (NAMED, "b.tma_load(B, coords=(k * 64,", "b.tma_load(B, coords=((k + 1) * 64,"),
    "coordinates exchanged": (NAMED, "a.tma_load(A, coords=(k * 64, t.m * 64)", "a.tma_load(A, coords=(t.m * 64, k * 64)"),
    "rows of the next tile": (NAMED, "a.tma_load(A, coords=(k * 64, t.m * 64)", "a.tma_load(A, coords=(k * 64, (t.m + 1) * 64)"),
    "a part that does not move": (MATMUL, "a = sa.cols(16 * kk, 16)", "a = sa.cols(0, 16)"),
    "another tile's columns": (MATMUL, "sb.cp_async(B, coords=(k * 32, t.n * 64))", "sb.cp_async(B, coords=(k * 32, t.m * 64))"),
    "the bias of the next tile": (MATMUL, "coords=(t.n * 64,), shape", "coords=((t.n + 1) * 64,), shape"),
}


@pytest.mark.parametrize("name", TILES)
def test_another_tile_is_found(name):
    text, old, new = TILES[name]
    found = first(edit(text, (old, new)))
    assert found.code == ("D035" if name == "coordinates exchanged" else "S034"), found.message


@pytest.mark.parametrize("name", ["b one step ahead", "coordinates exchanged", "rows of the next tile", "a part that does not move"])
def test_the_message_stands_at_the_odd_one(name):
    text, old, new = TILES[name]
    changed = edit(text, (old, new))
    line = next(i for i, row in enumerate(changed.split("\n"), 1) if new in row)
    assert first(changed).span.line == line


def test_axes_without_names_are_not_compared():
    assert verify_text(edit(LOOP, ("b.tma_load(B, coords=(k * 64,", "b.tma_load(B, coords=((k + 1) * 64,"))).verdict == "pass"


def test_an_output_may_name_an_axis_differently_and_rearrange_it():
    text = edit(
        NAMED, ('C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32,', 'C: LM.tma2d[LM.bf16, "MOUT", "N"], M: LM.i32, MOUT: LM.i32,'),
        ("c.tma_store(C, coords=(t.n * 128, t.m * 64))", "c.tma_store(C, coords=(t.n * 128, t.m * 64 + 64))"),
    )  # fmt: skip
    assert "S034" not in {d.code for d in verify_text(text).errors}


def test_products_that_start_over_each_time_are_lost():
    found = first(edit(LOOP, ("init=(k == 0)", "init=True")))
    assert (found.code, found.facts["role"]) == ("S035", "math")
    assert found.fixes[0].edits[0].text == "(k == 0)"


def test_computing_the_same_product_again_loses_nothing():
    text = edit(TILE, ("        lm.mma(acc, a, b, init=True)\n", "        lm.mma(acc, a, b, init=True)\n        lm.mma(acc, a, b, init=True)\n"))
    assert "S035" not in {d.code for d in verify_text(text).errors}


def test_the_same_product_added_twice_is_found():
    found = first(edit(MATMUL, ("                    lm.mma(acc, a, b)\n", "                    lm.mma(acc, a, b)\n                    lm.mma(acc, a, b)\n")))
    assert found.code in ("S035", "H014")


def test_a_step_of_the_sum_that_is_left_out_is_found():
    found = first(edit(MATMUL, ("lm.static_range(2)", "lm.static_range(1)")))
    assert (found.code, found.facts["axis"], found.facts["found"]) == ("S035", "K", 16)


def test_a_result_that_nobody_stores_is_found_at_its_end():
    text = edit(TILE, ("        lm.store(C, acc, coords=(0, 0))\n", ""))
    found = first(text)
    assert (found.code, found.facts["place"]) == ("S036", "acc")
    assert found.span.line == next(i for i, row in enumerate(text.split("\n"), 1) if "mma_wait" in row)


def test_a_load_that_nobody_uses_is_found_and_an_underscore_says_that_it_is_meant():
    text = edit(COPY, ("        lm.store(Y, x, coords=(0,))", "        y = lm.load(X, coords=(512,), shape=(512,))\n        lm.store(Y, x, coords=(0,))"))
    assert first(text).code == "S036"
    assert verify_text(text.replace(" y = ", " _y = ")).verdict == "pass"


BOUNDED = '''
@cake.schedule(target="sm_90a")
def rows(lm, X: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(R, 4),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            row = t.m * 4 + work.index
            if row < R:
                x = lm.load(X, coords=(0, row), shape=(1, 256))
                lm.store(Y, x, coords=(0, row))
'''


def test_a_guard_that_lets_one_row_too_many_through_is_found():
    assert verify_text(BOUNDED).verdict == "pass"
    found = first(edit(BOUNDED, ("if row < R:", "if row <= R:")))
    assert (found.code, found.facts["axis"]) == ("S033", 1)


def test_upstream_data_may_be_touched_after_a_partners_wait():
    text = edit(NAMED, ("    with load:\n", "    with load:\n        lm.pdl_wait()\n"))
    assert verify_text(text).verdict == "pass", [(d.code, d.message) for d in verify_text(text).errors]
    late = edit(NAMED, ("            for k in lm.range(kt):\n                s = lm.step(ring)\n                lm.wait(full", "            lm.pdl_wait()\n            for k in lm.range(kt):\n                s = lm.step(ring)\n                lm.wait(full"))
    assert first(late).code == "S016"


REARRANGING = sorted((Path(__file__).parents[1] / "schedules").glob("moved_*.py"))


@pytest.mark.parametrize("path", REARRANGING, ids=lambda p: p.stem)
def test_schedules_that_move_values_on_purpose_pass(path):
    verdict = verify_text(path.read_text("utf-8"), filename=path.name)
    assert verdict.verdict == "pass", [(d.code, d.message) for d in verdict.errors]


HALVES = '''
@cake.schedule(target="sm_90a")
def rotate_half(lm, X: LM.gmem2d[LM.bf16, "T", "D"], Y: LM.gmem2d[LM.bf16, "T", "D"], T: LM.i32, *, D=128):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 4),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            row = t.m * 4 + work.index
            if row < T:
                a = lm.load(X, coords=(0, row), shape=(1, 64), form="vec")
                b = lm.load(X, coords=(64, row), shape=(1, 64), form="vec", like=a)
                lm.store(Y, a, coords=(64, row))
                lm.store(Y, lm.cast(lm.cast(b, lm.f32) * -1.0, lm.bf16), coords=(0, row))
'''


def test_a_copy_that_rearranges_is_a_warning():
    verdict = verify_text(HALVES)
    assert verdict.verdict == "pass"
    assert [(d.code, d.severity) for d in verdict.diagnostics if d.severity != "note"] == [("S034", "warning")]


def test_labels_join_move_and_compare():
    a, b = ("K", 64, 1), ("K", 128, 2)
    assert join(None, a) == a and join(a, ("K", 64, 9)) == a and join(a, b) == UNKNOWN
    assert moved(a, 16) == ("K", 80, 1) and moved(None, 16) is None and moved(UNKNOWN, 16) == UNKNOWN
    assert apart(b, a) == 64 and apart(a, ("N", 64, 1)) is None and apart(None, a) is None
