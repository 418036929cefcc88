"""What may be stated of the values of an index tensor."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text

ROWS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def rows(lm, X: LM.gmem1d[LM.i32, "T"], Y: LM.gmem2d[LM.f32, "S", 256], Z: LM.gmem2d[LM.f32, "T", 256], T: LM.i32, S: LM.i32, scale: LM.f32):
    lm.launch(grid="tiles")
    lm.assume_values(X, 0, S)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            i = lm.ld(X, t.t)
            lm.store(Z, lm.load(Y, coords=(0, i), shape=(256,)) * scale, coords=(0, t.t))
"""


def test_bounds_are_integers_of_the_text_or_of_arguments() -> None:
    for bounds in ("0, S", "0, lm.min(S, 100)", "0, 1", "-1 + 1, S"):
        assert verify_text(ROWS.replace("0, S)", f"{bounds})", 1)).verdict == "pass", bounds


@pytest.mark.parametrize("bounds", ["0, 1e999", "0, lm.inf", "-lm.inf, S", "0, 1.5", "0.5, S", "0, scale", "0, True"])
def test_what_is_no_integer_bounds_nothing(bounds: str) -> None:
    (error,) = verify_text(ROWS.replace("0, S)", f"{bounds})", 1)).errors
    assert error.code == "N055" and "is an integer" in error.message and error.span.line == 5
