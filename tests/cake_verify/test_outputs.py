"""Outputs that a request names and nobody writes."""

from __future__ import annotations

from pathlib import Path

from cake_verify.gates import verify_text
from cake_verify.rules.examples import COPY

TWO = COPY.replace("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], Z: LM.gmem1d[LM.f32]")
BOTH = {"Y": "an output", "Z": "an output"}


def test_an_output_that_is_asked_for_is_written() -> None:
    (error,) = verify_text(TWO, outputs=BOTH).errors
    assert (error.code, error.facts["tensor"]) == ("Q013", "Z") and error.message == "nothing writes `Z`, an output"


def test_who_does_not_ask_gets_a_warning() -> None:
    verdict = verify_text(TWO)
    assert verdict.verdict == "pass" and [d.code for d in verdict.diagnostics if d.severity == "warning"] == ["Q003"]


def test_what_the_schedule_has_not_got_and_what_it_writes_are_no_matter() -> None:
    assert not verify_text(COPY, outputs=BOTH).errors
    assert not verify_text(TWO.replace("lm.store(Y, x, coords=(0,))", "lm.store(Y, x, coords=(0,))\n        lm.store(Z, x, coords=(0,))"), outputs=BOTH).errors


def test_where_something_else_is_wrong_that_is_told() -> None:
    text = TWO.replace("        lm.store(Y, x, coords=(0,))\n", "        pass\n")
    assert [d.code for d in verify_text(text, outputs=BOTH).errors] == ["S036"]


ROPE = """
@cake.schedule(target=("sm_80", "sm_90a"))
def halves(lm, X: LM.gmem3d[LM.f32, "T", "H", 128], SLOT: LM.gmem1d[LM.i32, "T"], Q: LM.gmem3d[LM.f32, "T", "QH", 128], C: LM.gmem3d[LM.f32, "S", "KH", 128],
           LAST: LM.gmem2d[LM.f32, 3, 64], T: LM.i32, H: LM.i32, QH: LM.i32, KH: LM.i32, S: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(H == QH + KH)
    lm.assume_values(SLOT, -1, S)
    work = lm.role(warps=range(0, 1))
    space = lm.scheduler(kind="grid", tiles=(H, T), names=("h", "tok"))
    with work:
        for t in lm.tiles(space):
            slot = lm.ld(SLOT, t.tok)
            low = lm.load(X, coords=(0, t.h, t.tok), shape=(64,), form="vec")
            high = lm.load(X, coords=(64, t.h, t.tok), shape=(64,), form="vec", like=low)
            if t.h < QH:
                lm.store(Q, low, coords=(0, t.h, t.tok))
                lm.store(Q, high, coords=(64, t.h, t.tok))
            elif slot >= 0:
                lm.store(C, low, coords=(0, t.h - QH, slot))
                lm.store(C, high, coords=(64, t.h - QH, slot))
            if t.h + 1 == H and t.tok + 1 >= T:
                for i in lm.static_range(3):
                    lm.store(LAST, low + 1.0, coords=(0, i))
"""
ALL = dict.fromkeys(("Q", "C", "LAST"), "an output")


def left_out(text: str) -> list[tuple[str, object]]:
    return [(d.code, d.message.partition(",")[0] if d.code != "Q013" else d.facts["tensor"]) for d in verify_text(text, outputs=ALL).errors]


def test_stores_that_together_cover_an_output_are_enough() -> None:
    verdict = verify_text(ROPE, outputs=ALL)
    assert verdict.verdict == "pass" and not verdict.errors


def test_each_of_several_stores_is_needed() -> None:
    for line in (x for x in ROPE.splitlines() if "lm.store(Q" in x or "lm.store(C" in x):
        verdict = verify_text(ROPE.replace(line, line[: line.index("lm.store")] + "pass"), outputs=ALL)
        (error,) = verdict.errors
        assert (error.code, error.facts["tensor"]) == ("Q013", line[line.index("(") + 1]), line
        assert "nothing writes element" in error.message


def test_conditions_and_rounds_that_leave_out_a_part() -> None:
    assert left_out(ROPE.replace("lm.static_range(3)", "lm.static_range(1, 3)")) == [("Q013", "LAST")]
    assert left_out(ROPE.replace("t.tok + 1 >= T", "t.tok >= T")) == [("Q013", "LAST")]


def test_which_places_are_written_is_the_authors_choice() -> None:
    assert left_out(ROPE.replace("if t.h < QH:", "if t.h + 1 < QH:").replace("elif slot", "elif t.h >= QH and slot")) == []
    folder = Path(__file__).resolve().parent / "schedules"
    for name, output in (("moved_gram", "G"), ("moved_shift", "Y")):  # the lower triangle of a product; all rows but the first
        assert verify_text((folder / f"{name}.py").read_text("utf-8"), outputs={output: "an output"}).verdict == "pass"


def test_what_memory_decides_is_taken_to_cover_most() -> None:
    assert left_out(ROPE.replace("elif slot >= 0:", "elif slot >= 7:")) == []
    assert left_out(ROPE.replace("if t.h < QH:", "if t.h < QH and slot >= 0:").replace("elif slot", "elif t.h >= QH and slot")) == []
    assert left_out(ROPE.replace("lm.static_range(3)", "lm.range(slot)")) == []


def test_arguments_that_nothing_ties_together_may_belong_together() -> None:
    assert left_out(ROPE.replace("    lm.assume(H == QH + KH)\n", "")) == []


def test_an_output_that_keeps_what_it_held_says_so() -> None:
    part = ROPE.replace("                lm.store(C, low, coords=(0, t.h - QH, slot))\n", "")
    (error,) = verify_text(part, outputs=ALL).errors
    assert "`.inout`" in error.help
    assert left_out(part.replace('C: LM.gmem3d[LM.f32, "S", "KH", 128]', 'C: LM.gmem3d[LM.f32, "S", "KH", 128].inout')) == []


MASKED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def rows(lm, X: LM.gmem2d[LM.f32, "M", 64], Y: LM.gmem2d[LM.f32, "M", 2], M: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    space = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64),), names=("b",))
    with work:
        for t in lm.tiles(space):
            x = lm.load(X, coords=(0, t.b * 64), shape=(64, 64), form="acc", clip=True)
            at = t.b * 64 + lm.iota(x, 0)
            inside = at < M
            lm.store(Y, lm.reduce(x, "add", axis=1), coords=(0, at), mask=inside)
            lm.store(Y, lm.reduce(x, "max", axis=1), coords=(1, at), mask=inside)
"""


def test_masks_over_rows_are_read() -> None:
    wants = {"Y": "an output"}
    assert verify_text(MASKED, outputs=wants).verdict == "pass"
    for wrong in (MASKED.replace("at < M", "at < M - 1"), MASKED.replace("coords=(1, at)", "coords=(0, at)"), MASKED.replace("lm.iota(x, 0)\n", "lm.iota(x, 0, base=1)\n")):
        assert "Q013" in [d.code for d in verify_text(wrong, outputs=wants).errors], wrong


PERSISTENT = """
@cake.schedule(target=("sm_80", "sm_90a"))
def turns(lm, X: LM.gmem2d[LM.f32, "M", 512], Y: LM.gmem2d[LM.f32, "M", 512], M: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    space = lm.scheduler(kind="static", tiles=(M,), names=("r",))
    with work:
        for t in lm.tiles(space):
            a = lm.step(ring)
            x = lm.load(X, coords=(0, t.r), shape=(512,))
            if a.index == 0:
                lm.store(Y, x + 1.0, coords=(0, t.r))
            else:
                lm.store(Y, x + 1.0, coords=(0, t.r))
"""


def test_every_slot_of_a_persistent_loop_stores_its_tile() -> None:
    wants = {"Y": "an output"}
    assert verify_text(PERSISTENT, outputs=wants).verdict == "pass"
    wrong = PERSISTENT.replace("            else:\n                lm.store(Y, x + 1.0, coords=(0, t.r))\n", "")
    (error,) = verify_text(wrong, outputs=wants).errors
    assert error.code == "Q013" and "in round 1 of the tiles of a block" in error.message
    inner = PERSISTENT.replace("            a = lm.step(ring)\n", "").replace("            if a.index", "            for k in lm.range(2):\n              a = lm.step(ring)\n              if a.index").replace("            else:", "              else:")
    assert verify_text(inner.replace("              else:\n                lm.store(Y, x + 1.0, coords=(0, t.r))\n", ""), outputs=wants).verdict == "pass"
