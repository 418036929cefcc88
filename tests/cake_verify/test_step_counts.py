"""How often roles step a ring is counted for each member, and given as a cause only where the counts do differ (Q002)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_ir.frontend import parse, specialise
from cake_verify.analyses.step_counts import Steps
from cake_verify.gates import verify_text
from cake_verify.proposals import applied

ARMS = """
@cake.schedule(target="sm_90a")
def arms(lm, A: LM.tma2d[LM.bf16, "M", "K"], C: LM.gmem2d[LM.f32, "M", 64], M: LM.i32, K: LM.i32, *, STAGES=3):
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    pool = lm.smem(STAGES * 64 * 128)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    work = lm.role(warps=range(0, 8), members=2)
    load = lm.role(warps=range(8, 9))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64),), names=("m",))
    n = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(n):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            if work.index == 0:
                for k in lm.range(n):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    acc = acc + lm.cast(a[s].load(form="acc"), lm.f32)
                    lm.arrive(empty, stage=s)
                lm.store(C, acc, coords=(0, t.m * 64), clip=True)
            else:
                for k in lm.range({second}):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    lm.arrive(empty, stage=s)
"""
GOOD = ARMS.format(second="n")
RELEASE = "                    lm.wait(full, stage=s)\n                    lm.arrive(empty, stage=s)\n"


def counts(text: str) -> dict[str, str]:
    program = specialise(parse(text, "t").schedules[0], {}, "sm_90a").program
    assert program is not None
    steps = Steps(program)
    return {r.who: steps.shown(r.count) for r in steps.rings["ring"]}


def test_members_that_agree_are_counted_once() -> None:
    assert counts(GOOD) == {"`load`": "lm.cdiv(K, 64) times a tile", "`work`": "lm.cdiv(K, 64) times a tile"}
    assert counts(ARMS.format(second="n + work.index - 1")) == counts(GOOD)
    assert verify_text(GOOD).verdict == "pass"


def test_members_that_do_not_are_named() -> None:
    text = ARMS.format(second="n - 1")
    assert counts(text)["`work` member 1"] == "lm.cdiv(K, 64) - 1 times a tile"
    (error,) = verify_text(text).errors
    assert error.code == "Q002" and error.message.startswith("`work` member 1 steps `ring`") and "lm.range(n - 1)" in text.split("\n")[error.span.line - 1]
    fixed = applied(text, error.fixes[0].edits)
    assert verify_text(fixed).verdict == "pass"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (RELEASE, RELEASE.split("\n")[0] + "\n", "S020"),
        ("                    lm.wait(full, stage=s)\n                    acc", "                    acc", "S004"),
        ("a[s].load", "a[s.prev()].load", "Q006"),
    ],
    ids=["one member does not release", "one member does not wait", "one member reads another slot"],
)
def test_what_is_wrong_in_one_arm_is_said_and_not_the_counts(old: str, new: str, code: str) -> None:
    assert GOOD.count(old) == 1
    error = verify_text(GOOD.replace(old, new)).errors[0]
    assert error.code == code
    assert error.facts.get("role") == "work" or "`work` member" in error.message


@pytest.mark.parametrize(("old", "new"), [(RELEASE, RELEASE.split("\n")[0] + "\n"), ("                    lm.wait(full, stage=s)\n                    acc", "                    acc")])
def test_the_first_fix_mends_one_arm(old: str, new: str) -> None:
    text = GOOD.replace(old, new)
    (error,) = verify_text(text).errors
    assert verify_text(applied(text, error.fixes[0].edits)).verdict == "pass"


def test_an_edit_in_front_of_a_read_inside_an_expression_stands_in_front_of_the_statement() -> None:
    text = GOOD.replace("                    lm.wait(full, stage=s)\n                    acc", "                    acc")
    (error,) = verify_text(text).errors
    (edit,) = error.fixes[0].edits
    line = text.split("\n")[edit.span.line - 1]
    assert line.lstrip().startswith("acc =") and edit.span.column == len(line) - len(line.lstrip()) + 1


def test_a_fixed_number_of_steps_leaves_no_ring_open() -> None:
    """Where no argument decides how often a ring is stepped, the runs have shown all there is."""
    text = (Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus" / "gemm_resident_b.py").read_text("utf-8")
    old = "        w = lm.step(once)\n        weights"
    assert text.count(old) == 1
    verdict = verify_text(text.replace(old, f"        lm.step(once)\n{old}"))
    assert verdict.verdict == "pass", [d.to_json() for d in verdict.diagnostics]


def test_arms_that_step_equally_often_count_as_none_whatever_tells_them_apart() -> None:
    """Only the load role asks which tensor a tile is of; the other counts without it."""
    copy = "                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)\n"
    inner = "            for k in lm.range(n):\n                s = lm.step(ring)\n                lm.wait(empty, stage=s)\n" + copy
    assert inner in GOOD
    deep = inner.replace("\n            ", "\n                ").replace("            for", "                for", 1)
    arms = "            if t.m < 1:\n" + deep + "            else:\n" + deep
    assert verify_text(GOOD.replace(inner, arms)).verdict == "pass"
    more = "            if t.m < 1:\n" + deep + "            else:\n" + deep.replace("lm.range(n)", "lm.range(n + 1)")
    assert verify_text(GOOD.replace(inner, more)).errors[0].code == "Q002"


SHARES = (Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus" / "streamk_ranges.py").read_text("utf-8")


def test_rounds_that_depend_on_the_rounds_around_them_are_not_multiplied() -> None:
    old = "                    lm.mma_wait(pending=0)\n"
    assert SHARES.count(old) == 1 and verify_text(SHARES).verdict == "pass"
    assert [e.code for e in verify_text(SHARES.replace(old, ""), suggest=False).errors] == ["S005"]
