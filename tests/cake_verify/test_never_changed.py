"""Numbers that every tile starts anew and that nothing changes."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.examples import FLAG

SUM = """
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", "N"], R: LM.i32, N: LM.i32, *, EPS=0.0):
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            carry = 0.0
            for i in lm.range(N // 256):
                x = lm.load(X, coords=(i * 256, t.r), shape=(256,), form="vec")
                lm.store(Y, x + carry, coords=(i * 256, t.r))
                carry = carry + lm.reduce(x, "add", axis=0)
"""
UPDATE = "                carry = carry + lm.reduce(x, \"add\", axis=0)\n"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_a_flag_that_nothing_clears_and_a_sum_that_nothing_is_added_to() -> None:
    assert codes(FLAG) == [] and codes(SUM) == []
    assert codes(FLAG.replace("                        looking = 0\n", "")) == ["N069"]
    assert codes(SUM.replace(UPDATE, "")) == ["N069"]
    assert codes(SUM.replace(UPDATE, "").replace("x + carry", "x").replace("            for i", "            for i", 1) + "            if carry > 0.0:\n                lm.store(Y, 1.0, coords=(0, t.r))\n") == ["N069"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("x + carry", "x + EPS"),
        ("x + carry", "lm.where(x > 0.0, x, carry)"),
        ("x + carry", "x * carry"),
        ("            carry = 0.0\n            for i in lm.range(N // 256):\n", "            for i in lm.range(N // 256):\n                carry = 0.0\n"),
        ("        for t in lm.tiles(sched):\n            carry = 0.0\n", "        carry = 0.0\n        for t in lm.tiles(sched):\n"),
        ("            carry = 0.0\n", "            carry = 1.0\n"),
    ],
)
def test_constants_may_be_meant(was: str, now: str) -> None:
    assert "N069" not in codes(SUM.replace(UPDATE, "").replace(was, now))
