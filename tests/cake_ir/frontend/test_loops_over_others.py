"""Loops over something else than ranges and tiles are refused with the way that works."""

from __future__ import annotations

from cake_verify.gates import verify_text

HALVES = """
@cake.schedule(target="sm_80")
def halves(lm, X: LM.gmem2d[LM.f32, "R", 1024], Y: LM.gmem2d[LM.f32, "R", 128], R: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(4096)
    part = pool.view(offset=0, shape=(1024,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            part.store(lm.load(X, coords=(0, t.r), shape=(1024,), form="vec"))
            lm.sync(meet)
            LOOP
                part.cols(0, h).store(part.cols(0, h).load(form="vec") + part.cols(h, h).load(form="vec"))
                lm.sync(meet)
            lm.store(Y, part.cols(0, 128).load(form="vec"), coords=(0, t.r))
"""


def test_a_list_of_numbers_is_told_how_to_be_a_rule() -> None:
    (error,) = verify_text(HALVES.replace("LOOP", "for h in [512, 256, 128]:")).errors
    assert error.code == "N039" and "lm.static_range(3)" in error.help and "h // 2" in error.help
    written = HALVES.replace("            LOOP\n", "            h = 1024\n            for i in lm.static_range(3):\n                h = h // 2\n")
    assert verify_text(written).verdict == "pass"


def test_pythons_own_range_is_told_of_the_other_two() -> None:
    (error,) = verify_text(HALVES.replace("LOOP", "for h in range(3):")).errors
    assert error.code == "N039" and "lm.range(..)" in error.help
