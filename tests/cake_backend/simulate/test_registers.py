"""What a warp holds of a fragment is what the ownership maps say, for every form."""

from __future__ import annotations

import numpy as np
import pytest

from cake_backend.simulate.faults import NotSimulated
from cake_backend.simulate.registers import held, regrid
from cake_ir.forms import element, registers
from cake_ir.placement import fragment
from cake_ir.types import FragT

CASES = (
    (FragT("acc", 128, 32, "f32"), 4),
    (FragT("acc", 64, 64, "f32", warps=(2, 4)), 8),
    (FragT("a", 64, 32, "bf16"), 4),
    (FragT("a", 64, 32, "bf16", warps=(2, 4)), 8),
    (FragT("b", 64, 32, "bf16", warps=(2, 4)), 8),
    (FragT("rows", 128, 16, "f32"), 4),
    (FragT("rowvec", 128, 1, "f32", parent="acc"), 4),
    (FragT("rowvec", 128, 1, "f32", parent="rows"), 4),
    (FragT("colvec", 1, 64, "f32", warps=(2, 4), parent="acc"), 8),
)


@pytest.mark.parametrize(("t", "warps"), CASES, ids=str)
def test_a_warp_holds_the_elements_that_the_ownership_map_gives_it(t: FragT, warps: int) -> None:
    f = fragment(t, warps)
    for warp in range(warps):
        want = {element(f, warp, lane, r) for lane in range(32) for r in range(registers(f))}
        h = held(t, warps, warp)
        got = {(int(r), int(c)) for r in h.rows[:, 0] for c in h.cols[0]}
        assert got == want and h.shape == (len(h.rows), len(h.cols[0]))


def test_a_vec_keeps_lanes_and_registers_and_marks_what_is_past_the_end() -> None:
    t = FragT("vec", 1, 200, "f32", chunk=4, rank=1)
    f = fragment(t, 2)
    for warp in range(2):
        h = held(t, 2, warp)
        for lane in range(0, 32, 7):
            for r in range(registers(f)):
                want = element(f, warp, lane, r)
                assert (int(h.rows[lane, r]), int(h.cols[lane, r])) == (want or (-1, -1))


def test_a_warp_can_only_regrid_what_it_holds() -> None:
    t = FragT("acc", 64, 32, "f32")
    h = held(t, 4, 1)
    x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    part = regrid(x, h, h.rows, h.cols[:, 8:16], "a slice")
    assert np.array_equal(part, x[:, 8:16])
    with pytest.raises(NotSimulated, match="other warps hold"):
        regrid(x, h, held(t, 4, 2).rows, h.cols, "a slice")
