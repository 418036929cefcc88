"""Checks of an index from both sides that leave out the first one, where nothing is stated of its values."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify.gates import verify_text
from cake_verify.proposals import applied

SHRINK = (Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus" / "lora_shrink.py").read_text("utf-8")
CHECK = "if i >= 0 and i < NL:"


def changed(check: str) -> str:
    assert SHRINK.count(CHECK) == 1
    return SHRINK.replace(CHECK, f"if {check}:")


@pytest.mark.parametrize("check", ["i > 0 and i < NL", "i >= 1 and i < NL", "i < NL and 0 < i"])
def test_the_first_index_is_one_of_those_that_the_check_lets_through(check: str) -> None:
    text = changed(check)
    (error,) = verify_text(text).errors
    assert error.code == "Q015" and "nothing says that 0 is none" in error.message
    assert verify_text(applied(text, error.fixes[0].edits)).verdict == "pass"


def test_who_says_that_the_first_is_none_is_believed() -> None:
    stated = changed("i > 0 and i < NL").replace("    work = lm.role", "    lm.assume_values(INDEX, 0, NL)\n    work = lm.role")
    assert [d.code for d in verify_text(stated).errors] == []


def test_an_index_that_ends_elsewhere_is_another_matter() -> None:
    assert "Q015" not in [d.code for d in verify_text(changed("i > 0 and i < R")).errors]


def test_the_other_arm_of_a_check_and_places_counted_from_the_index() -> None:
    text = CASES["delta_rule_step"].text()
    assert verdict_of(text, "delta_rule_step")[0].verdict == "pass"
    (error,) = verdict_of(text.replace("if slot < 0:", "if slot <= 0:"), "delta_rule_step")[0].errors
    assert error.code == "Q015" and error.message.startswith("`slot <= 0` takes for none index 0 of `POOL`")
    assert [e.text for e in error.fixes[0].edits] == ["slot < 0"]


LOSS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def loss(lm, X: LM.gmem2d[LM.f32, "B", 256], LABEL: LM.gmem1d[LM.i32, "B"], LOSS: LM.gmem1d[LM.f32, "B"], G: LM.gmem2d[LM.f32, "B", 256], B: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(LABEL, -100, 256)
    work = lm.role(warps=range(0, 1))
    space = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(space):
            label = lm.ld(LABEL, t.b)
            x = lm.load(X, coords=(0, t.b), shape=(256,), form="vec")
            hit = lm.iota(x, 0) == label
            if label >= 0:
                lm.store(LOSS, lm.reduce(lm.where(hit, x, 0.0), "add", axis=None), coords=(t.b,))
            else:
                lm.store(LOSS, 0.0, coords=(t.b,))
            g = lm.where(hit, x - 1.0, x)
            if label < 0:
                g = g * 0.0
            lm.store(G, g, coords=(0, t.b))
"""


def test_a_label_that_positions_are_compared_with_is_an_index() -> None:
    def codes(text: str) -> list[str]:
        return [d.code for d in verify_text(text, suggest=False).errors]

    assert codes(LOSS) == []
    for was, now in (("if label >= 0:", "if label > 0:"), ("if label < 0:", "if label <= 0:"), ("if label < 0:", "if label < 1:"), ("if label >= 0:", "if 1 <= label:")):
        assert codes(LOSS.replace(was, now)) == ["Q015"], now
    assert codes(LOSS.replace("-100, 256", "0, 256").replace("if label >= 0:", "if label > 0:")) == []  # class 0 is none


def test_what_stands_before_an_index_is_asked_for_behind_the_first() -> None:
    text = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def before(lm, X: LM.gmem2d[LM.f32, "S", 128], L: LM.gmem1d[LM.i32, "R"].const, Y: LM.gmem2d[LM.f32, "R", 128], R: LM.i32, S: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(L, -1, S)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(L, t.r)
            x = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            if n >= 0:
                x = lm.load(X, coords=(0, n), shape=(128,), form="vec", like=x)
            if n > 0:
                x = x + lm.load(X, coords=(0, n - 1), shape=(128,), form="vec", like=x)
            lm.store(Y, x, coords=(0, t.r))
'''
    found = [d.code for d in verify_text(text, suggest=False).errors]
    assert found == []
    assert [d.code for d in verify_text(text.replace("if n >= 0", "if n > 0"), suggest=False).errors] == ["Q015"]
