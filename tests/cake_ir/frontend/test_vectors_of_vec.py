"""A `vec` has row vectors and no column vectors, and an extent that is computed is named as it was written."""

from __future__ import annotations

import pytest

from cake_ir import parse, specialise
from cake_ir.fault import Fault

TEXT = """
@cake.schedule(target="sm_90a")
def k(lm, X: LM.gmem2d[LM.f32, "R", 32], W: LM.gmem1d[LM.f32, 32], Y: LM.gmem2d[LM.f32, "R", 32], R: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(R % 32 == 0)
    w = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="static", tiles=(R // 32,), names=("m",))
    with w:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 32), shape=(32, 32), form="FORM")
            BODY
            lm.store(Y, y, coords=(0, t.m * 32))
"""


def faults(body: str, form: str = "vec", warps: int = 4) -> list[Fault]:
    module = parse(TEXT.replace("BODY", body).replace("FORM", form).replace("WARPS", str(warps)))
    return [*module.faults, *(specialise(module.schedules[0]).faults if module.schedules else ())]


@pytest.mark.parametrize("body", [
    'y = x * lm.load(W, coords=(0,), shape=(32,), form="colvec", like=x)',
    "y = x - lm.colvec(x, init=1.0)",
    'y = x * lm.load(W, coords=(0,), shape=(32,), form="colvec")',
    'y = x - lm.reduce(x, "max", axis=0)',
])  # fmt: skip
def test_a_vec_has_no_column_vector(body: str) -> None:
    found = faults(body, warps=1)
    assert [f.code for f in found] == ["D002"]
    assert "column" in found[0].message and found[0].help


@pytest.mark.parametrize("body", ["y = x * lm.cast(lm.iota(x, 1), lm.f32)", "y = lm.where(lm.in_bounds(x, 3, 5), x, 0.0)", 'y = x - lm.reduce(x, "max", axis=1)'])
def test_what_a_vec_can_say_of_its_rows_and_columns_is_taken(body: str) -> None:
    assert faults(body) == []


@pytest.mark.parametrize("body", ['y = x * lm.load(W, coords=(0,), shape=(32,), form="colvec", like=x)', 'y = x - lm.reduce(x, "max", axis=0)'])
def test_a_tile_has_column_vectors(body: str) -> None:
    assert faults(body, "acc", 1) == []


def test_a_computed_extent_is_named_and_told_apart_from_a_misspelt_one() -> None:
    text = TEXT.replace("LM.gmem1d[LM.f32, 32]", 'LM.gmem1d[LM.f32, "R // 2"]')
    (found,) = specialise(parse(text.replace("BODY", "y = x").replace("FORM", "vec").replace("WARPS", "4")).schedules[0]).faults
    assert found.code == "N018" and "`R // 2`" in found.message and "tunable of its own" in found.help
