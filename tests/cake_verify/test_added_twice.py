"""Sums that take the part that they start with once more."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency.d050_added_twice import PAGE

TEXT = PAGE.passing
TWICE = PAGE.failing


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def test_the_first_round_adds_what_the_sum_starts_with() -> None:
    (error,) = verify_text(TWICE).errors
    assert error.code == "D050" and "the round `p` = 0 adds it once more" in error.message
    assert codes(applied(TWICE, error.fixes[0].edits)) == []
    named = TWICE.replace("lm.range(0, N // 256)", "lm.range(first, N // 256)").replace("            for p", "            first = 1 - 1\n            for p")
    assert codes(named) == ["D050"]


@pytest.mark.parametrize(("was", "now"), [
    ("total = lm.load(X, coords=(0, t.r), shape=(256,))", "total = lm.load(X, coords=(0, t.r), shape=(256,)) * 0.0"),
    ("total = lm.load(X, coords=(0, t.r), shape=(256,))", "total = lm.frag(shape=(256,), dtype=lm.f32, form=\"vec\", init=0.0, like=lm.load(X, coords=(0, t.r), shape=(256,)))"),
    ("total = lm.load(X, coords=(0, t.r), shape=(256,))", "total = lm.load(X, coords=(256, t.r), shape=(256,))"),
    ("total = total + lm.load(", "total = lm.max(total, lm.load("),
    ("total = total + lm.load(X, coords=(p * 256, t.r), shape=(256,))", "total = total * 0.5 + 0.5 * lm.load(X, coords=(p * 256, t.r), shape=(256,))"),
])  # fmt: skip
def test_zeros_models_other_parts_maxima_and_averages_are_no_sums_of_it(was: str, now: str) -> None:
    text = TWICE.replace(was, now)
    assert text != TWICE
    if "lm.max(" in now:
        text = text.replace("coords=(p * 256, t.r), shape=(256,))", "coords=(p * 256, t.r), shape=(256,)))")
    assert "D050" not in codes(text)


RESCALED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def weights(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0 and N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            head = lm.load(X, coords=(0, t.r), shape=(256,))
            top = head
            den = lm.exp(head - top)
            for p in lm.range(1, N // 256):
                x = lm.load(X, coords=(p * 256, t.r), shape=(256,))
                new = lm.max(top, x)
                den = den * lm.exp(top - new) + lm.exp(x - new)
                top = new
            most = lm.reduce(top, "max", axis=1)
            lm.store(Y, lm.reduce(den * lm.exp(top - most), "add", axis=1), coords=(t.r,))
"""


def test_a_sum_that_is_rescaled_to_a_running_maximum_is_one() -> None:
    assert codes(RESCALED) == []
    assert codes(RESCALED.replace("lm.range(1, N", "lm.range(N")) == ["D050"]


SHARED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def crew(lm, X: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem2d[LM.f32, "R", 64], R: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(1024)
    part = pool.view(offset=0, shape=(4, 64), dtype=lm.f32)
    work = lm.role(warps=range(0, 4), members=4)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            part.rows(work.index, 1).store(lm.load(X, coords=(64 * work.index, t.r), shape=(64,)))
            lm.sync(meet)
            if work.index == 0:
                c = part.rows(0, 1).load(form="vec")
                for j in lm.static_range(1, 4):
                    c = c + part.rows(j, 1).load(form="vec", like=c)
                lm.store(Y, c, coords=(0, t.r))
            lm.sync(meet)
"""


def test_parts_in_shared_memory_are_followed_to_the_next_meeting() -> None:
    assert codes(SHARED) == []
    twice = SHARED.replace("static_range(1, 4)", "static_range(4)")
    assert codes(twice) == ["D050"]
    anew = twice.replace("                for j", "                part.rows(0, 1).store(c * 0.0)\n                lm.sync(meet)\n                for j")
    assert "D050" not in codes(anew)
