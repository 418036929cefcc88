"""Arguments that assumptions tie to each other, and accesses that a number in memory only lets happen or not."""

from __future__ import annotations

import pytest

from cake_ir import parse, specialise
from cake_verify import verify_text
from cake_verify.analyses.fixed_scalars import fixed_scalars

CHAIN = """
@cake.schedule(target="sm_90a")
def chunks(lm, X: LM.tma2d[LM.f32, "ROWS", 32], Y: LM.gmem1d[LM.f32, "ALL"], H: LM.i32, NT: LM.i32, L: LM.i32, ROWS: LM.i32, ALL: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(ASSUMED)
    pool = lm.smem(2 * 64 * 128)
    x = pool.view(offset=0, shape=(64, 32), dtype=lm.f32, stage=2)
    math = lm.role(warps=range(0, 1))
    load = lm.role(warps=range(1, 2))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(H,), names=("h",))
    with load:
        for t in lm.tiles(sched):
            for c in lm.range(NT):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                x.tma_load(X, coords=(0, t.h * L + c * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            for c in lm.range(NT):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                v = x[s].load(form="vec")
                lm.arrive(empty, stage=s)
                lm.store(Y, lm.reduce(v, "add", axis=None), coords=(t.h * NT + c,))
"""
ORDERS = ("L == NT * 64 and ROWS == H * L and ALL == H * NT", "ALL == H * NT and ROWS == H * L and NT * 64 == L", "ROWS == H * L and L == NT * 64 and H * NT == ALL")


@pytest.mark.parametrize("assumed", ORDERS)
def test_equations_may_build_on_each_other_in_any_order(assumed: str) -> None:
    text = CHAIN.replace("ASSUMED", assumed)
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    fixed, _ = fixed_scalars(program, list(program.scalars))
    assert len(fixed) == 3 and verify_text(text).verdict == "pass"


READ = """
@cake.schedule(target="sm_80")
def pick(lm, X: LM.gmem2d[LM.f32, "T", 128], INDEX: LM.gmem1d[LM.i32, "T"], Y: LM.gmem2d[LM.f32, "T", 128], T: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="static", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            if lm.ld(INDEX, t.t) >= 0:
                lm.store(Y, lm.load(X, coords=(0, t.t), shape=(128,)), coords=(0, t.t))
            else:
                lm.store(Y, lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0), coords=(0, OTHER))
"""


PAGES = """
@cake.schedule(target="sm_90a")
def move(lm, X: LM.gmem3d[LM.f32, "NB", "H", 128], CACHE: LM.gmem3d[LM.f32, "PAGES", "H", 128], PAGE: LM.gmem1d[LM.i32, "NB"], NB: LM.i32, H: LM.i32, PAGES: LM.i32):
    lm.launch(grid="persistent")
    lm.assume_values(PAGE, 0, PAGES)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="static", tiles=(H, NB), names=("h", "b"))
    with work:
        for t in lm.tiles(sched):
            page = lm.ld(PAGE, AT)
            lm.store(CACHE, lm.load(X, coords=(0, t.h, t.b), shape=(128,)), coords=(0, t.h, page))
"""


def test_pages_that_memory_names_are_not_taken_for_one_page() -> None:
    assert verify_text(PAGES.replace("AT", "t.b")).verdict == "pass"


def test_one_page_number_for_two_tiles_is_one_place() -> None:
    assert [d.code for d in verify_text(PAGES.replace("AT", "t.b // 2")).shown() if d.severity == "error"] == ["Q011"]


def test_two_arms_that_memory_chooses_between_may_store_one_place() -> None:
    assert verify_text(READ.replace("OTHER", "t.t")).verdict == "pass"


def test_an_arm_that_stores_the_place_of_another_tile_does_not_pass() -> None:
    assert verify_text(READ.replace("OTHER", "T - 1 - t.t")).verdict != "pass"
