"""Shared memory is bytes: views that overlap or disagree on a swizzle read each other's, and nothing is defined before it is written."""

from __future__ import annotations

import numpy as np
import pytest
from sim_schedules import caught, close, nan, normal, program

from cake_backend.simulate import simulate
from cake_backend.simulate.floats import decode
from cake_backend.simulate.memory import OutsideView, Placement, Pool, is_poison
from cake_ir.layout import offset
from cake_ir.placement import view_layout

COPY = """
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.tma2d, Y: LM.gmem2d[LM.bf16]):
    lm.launch(grid="persistent")
    pool = lm.smem(2 * 64 * 64 * 2)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=OFFSET, shape=(64, 64), dtype=lm.bf16, swizzle=SWIZZLE)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    with work:
        s = lm.step(ring)
        a.tma_load(X, coords=(0, 0), stage=s, barrier=full)
        lm.wait(full, stage=s)
        lm.store(Y, b.load(form="acc"), coords=(0, 0))
"""


def copy(offset_: int, swizzle: str) -> str:
    return COPY.replace("OFFSET", str(offset_)).replace("SWIZZLE", swizzle)


def test_an_alias_of_the_same_layout_reads_the_same_numbers() -> None:
    x = normal(1, 64, 64)
    r = simulate(program(copy(0, '"128b"')), {"X": x, "Y": nan(64, 64)}, {})
    assert r.ok and r.outputs["Y"].tobytes() == x.tobytes()


def test_an_alias_of_another_swizzle_reads_other_numbers() -> None:
    x = normal(1, 64, 64)
    r = simulate(program(copy(0, "None")), {"X": x, "Y": nan(64, 64)}, {})
    assert r.ok and not close(r.outputs["Y"], x, 1e-3)
    assert np.array_equal(np.sort(r.outputs["Y"].astype(float), None), np.sort(x.astype(float), None))


def test_bytes_that_nobody_wrote_are_not_a_number_and_are_reported_where_they_reach_an_output() -> None:
    x = normal(1, 64, 64)
    r = simulate(program(copy(64 * 64 * 2, '"128b"')), {"X": x, "Y": nan(64, 64)}, {})
    assert [f.code for f in r.faults] == ["X007"] and "`Y`" in r.faults[0].message
    assert r.faults[0].related and np.isnan(r.outputs["Y"].astype(float)).all()


def test_a_read_before_the_wait_meets_the_copy_in_flight() -> None:
    p = program(copy(0, '"128b"').replace("        lm.wait(full, stage=s)\n", ""))
    assert {"X004", "X003"} & caught(p, {"X": normal(1, 64, 64), "Y": nan(64, 64)})


def test_elements_of_a_view_are_where_the_layout_puts_them() -> None:
    p = program(copy(64 * 64 * 2, '"64b"'))
    place, layout = Placement(p), view_layout(p.views["b"])
    cells = place.rectangle("b", 0, 8, 16, 32, 32)
    assert cells.index.shape == (16, 32)
    assert all(int(cells.index[r, c]) * 2 == offset(layout, 0, 8 + r, 32 + c) for r in range(16) for c in range(0, 32, 5))
    turned = place.rectangle("b", 0, 8, 16, 32, 32, True)
    assert np.array_equal(turned.index, cells.index.T)


def test_a_rectangle_or_stage_outside_its_view_is_refused() -> None:
    place = Placement(program(copy(0, "None")))
    for row, rows, stage in ((60, 8, 0), (-8, 8, 0), (0, 8, 1)):
        with pytest.raises(OutsideView):
            place.rectangle("a", stage, row, rows, 0, 64)


def test_a_fence_is_of_the_warp_that_wrote() -> None:
    place, pool = Placement(program(copy(0, "None"))), Pool(2 * 64 * 64 * 2)
    cells = place.rectangle("b", 0, 0, 2, 0, 8)
    pool.write(cells, np.full((2, 8), 7, np.uint16), 1)
    pool.fence(2)
    assert pool.stale(cells)
    pool.fence(1)
    assert not pool.stale(cells)


def test_the_async_proxy_sees_ordinary_writes_after_a_fence_and_copies_at_once() -> None:
    place, pool = Placement(program(copy(0, "None"))), Pool(2 * 64 * 64 * 2)
    cells = place.rectangle("b", 0, 0, 2, 0, 8)
    assert is_poison(pool.read(cells)) and np.isnan(decode(pool.read(cells), "bf16")).all()
    pool.write(cells, np.full((2, 8), 7, np.uint16))
    assert pool.stale(cells) and is_poison(pool.read_async(cells)) and (pool.read(cells) == 7).all()
    pool.fence()
    assert not pool.stale(cells) and (pool.read_async(cells) == 7).all()
    pool.write_async(cells, np.full((2, 8), 9, np.uint16))
    assert (pool.read(cells) == 9).all() and (pool.read_async(cells) == 9).all()
    pool.poison(cells)
    assert is_poison(pool.read(cells)) and is_poison(pool.read_async(cells))
