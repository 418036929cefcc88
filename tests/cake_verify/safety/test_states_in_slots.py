"""States that a launch reads and replaces in slots of a table: the update of a convolution at every decoded token."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text

UPDATE = """
@cake.schedule(target=("sm_80", "sm_90a"))
def conv1d_update(lm, X: LM.gmem2d[LM.bf16, "B", "C"], W: LM.gmem2d[LM.f32, 4, "C"].const, SLOT: LM.gmem1d[LM.i32, "B"], OTHER: LM.gmem1d[LM.i32, "B"],
                  STATE: LM.gmem3d[LM.bf16, "SLOTS", 3, "C"].inout, Y: LM.gmem2d[LM.bf16, "B", "C"], B: LM.i32, C: LM.i32, SLOTS: LM.i32, *, BC=256):
    lm.launch(grid="tiles")
    lm.assume(C % BC == 0)
    lm.assume_values(SLOT, -1, SLOTS)
    lm.assume_values(OTHER, -1, SLOTS)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(C // BC, B), names=("c", "b"))
    with work:
        for t in lm.tiles(sched):
            s = lm.ld(SLOT, t.b)
            if s >= 0:
                w0 = lm.load(W, coords=(t.c * BC, 0), shape=(BC,), form="vec")
                w1 = lm.load(W, coords=(t.c * BC, 1), shape=(BC,), form="vec", like=w0)
                w2 = lm.load(W, coords=(t.c * BC, 2), shape=(BC,), form="vec", like=w0)
                w3 = lm.load(W, coords=(t.c * BC, 3), shape=(BC,), form="vec", like=w0)
                a = lm.cast(lm.load(STATE, coords=(t.c * BC, 0, s), shape=(BC,), form="vec", like=w0), lm.f32)
                b = lm.cast(lm.load(STATE, coords=(t.c * BC, 1, s), shape=(BC,), form="vec", like=w0), lm.f32)
                c = lm.cast(lm.load(STATE, coords=(t.c * BC, 2, s), shape=(BC,), form="vec", like=w0), lm.f32)
                d = lm.cast(lm.load(X, coords=(t.c * BC, t.b), shape=(BC,), form="vec", like=w0), lm.f32)
                lm.store(Y, lm.cast(lm.silu(a * w0 + b * w1 + c * w2 + d * w3), lm.bf16), coords=(t.c * BC, t.b))
                lm.store(STATE, lm.cast(b, lm.bf16), coords=(t.c * BC, 0, s))
                lm.store(STATE, lm.cast(c, lm.bf16), coords=(t.c * BC, 1, s))
                lm.store(STATE, lm.cast(d, lm.bf16), coords=(t.c * BC, 2, s))
"""
OUTPUTS = {"STATE": "an output"}


def verdict(text: str) -> str:
    return verify_text(text, outputs=OUTPUTS).verdict


def changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_a_slot_is_its_own_requests() -> None:
    assert verdict(UPDATE) == "pass"
    assert verdict(changed(UPDATE, ("s = lm.ld(SLOT, t.b)", "at = t.b\n            s = lm.ld(SLOT, at)"))) == "pass"


@pytest.mark.parametrize("edits", [
    (("            if s >= 0:", "            o = lm.ld(OTHER, t.b)\n            if s >= 0:"), ("lm.load(STATE, coords=(t.c * BC, 1, s)", "lm.load(STATE, coords=(t.c * BC, 1, o)")),
    (("STATE, coords=(t.c * BC, ", "STATE, coords=(0, "),),
    (("s = lm.ld(SLOT, t.b)", "s = lm.ld(SLOT, t.b // 2)"),),
    (("coords=(t.c * BC, 0, s), shape", "coords=(t.c * BC, 0, s + 1), shape"),),
])  # fmt: skip
def test_two_tables_one_slot_for_two_tiles_and_neighbours_of_a_slot_are_not_decided(edits: tuple[tuple[str, str], ...]) -> None:
    assert verdict(changed(UPDATE, *edits)) != "pass"


def test_a_tables_entries_that_the_launch_writes_name_nothing() -> None:
    written = changed(UPDATE, ("                lm.store(STATE, lm.cast(d", "                lm.store(SLOT, 0, coords=(t.b,))\n                lm.store(STATE, lm.cast(d"))
    assert verdict(written) != "pass"
