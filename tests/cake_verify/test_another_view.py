"""Copies that go on with a tensor's tiles in another tensor's view."""

from __future__ import annotations

from cake_verify import verify_text
from cake_verify.rules.consistency.d085_another_view import PAGE

GOOD = str(PAGE.passing)
AHEAD = "k.cp_async(K, coords=(0, (j + 1) * 64))"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_the_next_tile_in_the_other_view() -> None:
    assert codes(GOOD) == []
    assert codes(GOOD.replace(AHEAD, AHEAD.replace("k.cp", "q.cp"))) == ["D085"]


def test_a_view_that_is_not_read_any_more_may_be_used_again() -> None:
    again = GOOD.replace("            for j in", "            lm.cp_wait(pending=0)\n            lm.sync(own)\n            first = q.ldmatrix(form=\"a\")\n            for j in").replace('q.ldmatrix(form="a"), k.ld', 'first, k.ld')
    assert "D085" not in codes(again.replace(AHEAD, AHEAD.replace("k.cp", "q.cp")))
    assert "D085" not in codes(GOOD.replace(AHEAD, f"{AHEAD}\n                q.cp_async(Q, coords=(0, t.m * 64))"))


def test_the_place_of_a_tile_that_has_served() -> None:
    before = """            lm.cp_wait(pending=0)
            lm.sync(own)
            z = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            lm.mma(z, q.ldmatrix(form="a"), k.ldmatrix(form="b"), init=True)
            lm.store(Y, lm.reduce(z, "max", axis=1), coords=(t.m * 64,), clip=True)
            lm.sync(own)
            for j in"""
    text = GOOD.replace("            for j in", before).replace(AHEAD, AHEAD.replace("k.cp", "q.cp"))
    assert "D085" not in codes(text)
