"""Running maxima and minima that start at what nothing exceeds."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d040_stands_still import LARGEST


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(("number", "wrong"), [("-lm.inf", False), ("-1e30", False), ("0.0", False), ("lm.inf", True)])
def test_a_running_maximum(number: str, wrong: bool) -> None:
    assert codes(changed(LARGEST, ("lm.rowvec(x, init=-lm.inf)", f"lm.rowvec(x, init={number})"))) == (["D040"] if wrong else [])


MINIMUM = """
@cake.schedule(target=("sm_80", "sm_90a"))
def least(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0 and N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            low = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=lm.inf)
            for p in lm.range(N // 256):
                low = lm.min(low, lm.load(X, coords=(p * 256, t.r), shape=(256,)))
            lm.store(Y, low, coords=(0, t.r))
"""


def test_a_running_minimum_of_a_tile() -> None:
    assert codes(MINIMUM) == []
    assert codes(changed(MINIMUM, ("init=lm.inf", "init=-lm.inf"))) == ["D040"]
    bounded = changed(MINIMUM, ("init=lm.inf", "init=-lm.inf"), ("            for p", "            low = lm.load(X, coords=(0, t.r), shape=(256,))\n            for p"))
    assert "D040" not in codes(bounded)
