"""Results that are multiplied by zero."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d084_multiplied_away import PAGE

GOOD = str(PAGE.passing)
ZERO = "            if label < 0:\n                y = y * 0.0\n"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_a_result_that_is_zero_whatever_it_was() -> None:
    assert codes(GOOD) == []
    assert codes(GOOD.replace(ZERO, "            y = y * 0.0\n")) == ["D084"]
    assert codes(GOOD.replace(ZERO, "            y = 0.0 * y\n")) == ["D084"]


@pytest.mark.parametrize(
    "line",
    ["            z = y * 0.0\n            y = y + z\n", "            y = y * 0.5\n", "            if label < 0:\n                y = y + 1.0\n                if label < -1:\n                    y = y * 0.0\n"],
)
def test_other_zeros_pass(line: str) -> None:
    assert "D084" not in codes(GOOD.replace(ZERO, line))


@pytest.mark.parametrize(("tunable", "factor"), [(", *, BETA=0", "BETA"), (", *, BETA=1", "(BETA - 1)"), ("", "0.0")])
def test_what_an_epilogue_leaves_out_by_its_factor(tunable: str, factor: str) -> None:
    text = f'''
@cake.schedule(target=("sm_80", "sm_90a"))
def scaled(lm, X: LM.gmem2d[LM.f32, "R", 256], C: LM.gmem2d[LM.bf16, "R", 256], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32{tunable}):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(R, 64),), names=("r",))
    with work:
        for t in lm.tiles(sched):
            y = lm.exp(lm.load(X, coords=(0, t.r * 64), shape=(64, 64), form="acc", clip=True))
            c = lm.cast(lm.load(C, coords=(0, t.r * 64), shape=(64, 64), form="acc", clip=True), lm.f32)
            c = c * {factor}
            lm.store(Y, y + c, coords=(0, t.r * 64), clip=True)
'''
    assert codes(text) == []
