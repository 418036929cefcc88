"""Sums into memory that add one part of a row to the places of others, too."""

from __future__ import annotations

from cake_verify import verify_text

PARTS = """
@cake.schedule(target="sm_90a")
def parts(lm, X: LM.gmem2d[LM.f32, "R", "D"], S: LM.gmem1d[LM.f32, "D"].zeroed, R: LM.i32, *, D=512):
    lm.launch(grid="persistent")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="static", tiles=(4, R), names=("p", "r"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.p * 128, t.r), shape=(128,), form="vec")
            lm.atomic(S, x, coords=(t.p * 128,), order="any")
"""


def test_one_part_that_is_added_to_all() -> None:
    assert [d.code for d in verify_text(PARTS, suggest=False).errors] == []
    found = verify_text(PARTS.replace("coords=(t.p * 128, t.r)", "coords=(0, t.r)"), suggest=False).errors
    assert [d.code for d in found] == ["S034"]


def test_a_part_that_is_always_added_elsewhere_may_be_meant() -> None:
    text = PARTS.replace('S: LM.gmem1d[LM.f32, "D"]', 'S: LM.gmem1d[LM.f32, "E"]').replace("D=512", "D=512, E=512")
    assert [d.code for d in verify_text(text.replace("coords=(t.p * 128, t.r)", "coords=(0, t.r)"), suggest=False).errors] == []
