"""Chains of tiles that follow each other by flags: the first link, links that a condition leaves out, and what nobody writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cake_backend.simulate import simulate
from cake_ir.frontend import parse, specialise
from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.safety.texts import CARRY, TURNS


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def sums(text: str, rows: int = 6) -> bool:
    """Whether the simulator gives running sums of the rows, under three blocks and one."""
    program = specialise(parse(text, "t").schedules[0], {}, "sm_90a").program
    assert program is not None
    x = np.random.default_rng(1).integers(-9, 9, (rows, 512)).astype(np.float32)
    for ctas in (3, 1):
        nan = np.full((rows, 512), np.nan, np.float32)
        run = simulate(program, {"X": x, "Y": nan.copy(), "LAST": nan.copy(), "FLAGS": np.zeros(rows, np.int32)}, {"G": rows}, ctas=ctas)
        if not run.ok or not np.array_equal(run.outputs["Y"], x.cumsum(0)):
            return False
    return True


@pytest.mark.parametrize("cond", ["t.g > 0", "t.g >= 1", "t.g != 0", "not t.g <= 0", "0 < t.g"])
def test_a_condition_that_leaves_out_the_first_tile_alone_passes_and_is_right(cond: str) -> None:
    text = edited(CARRY, ("t.g > 0", cond))
    assert codes(text) == [] and sums(text)


@pytest.mark.parametrize("cond", ["t.g > 1", "t.g >= 2", "t.g > 0 + 1", "t.g - 3 > 0", "t.g + 1 > 2"])
def test_a_condition_that_leaves_out_more_is_refused_and_wrong(cond: str) -> None:
    text = edited(CARRY, ("t.g > 0", cond))
    (error,) = verify_text(text).errors
    assert error.code == "S044" and "`t.g` = 1" in error.message and not sums(text)
    fixed = applied(text, error.fixes[0].edits)
    assert codes(fixed) == [] and sums(fixed)


def test_chains_that_start_anew_or_look_back_further_are_left_alone() -> None:
    assert codes(edited(CARRY, ("t.g > 0", "t.g % 4 > 0"))) == []
    behind = (("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, t.g - 2, 1)"), ("coords=(0, t.g - 1)", "coords=(0, t.g - 2)"))
    assert codes(edited(CARRY, ("t.g > 0", "t.g > 1"), *behind)) == []
    assert codes(edited(CARRY, ("t.g > 0", "t.g > 2"), *behind)) == ["S044"]


HEADS = edited(
    CARRY, ("G: LM.i32):", "G: LM.i32, H: LM.i32, *, C=8):"), ("tiles=(G,), names=(\"g\",)", "tiles=(H, C), names=(\"h\", \"c\")"), ("\"persistent\")\n", "\"persistent\")\n    lm.assume(G == H * 8)\n"),
    ("x = lm.load(X, coords=(0, t.g)", "g = t.h * C + t.c\n            x = lm.load(X, coords=(0, g)"), ("t.g > 0", "t.c > 0"), ("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, g - 1, 1)"),
    ("coords=(0, t.g - 1)", "coords=(0, g - 1)"), ("lm.store(Y, x, coords=(0, t.g))", "lm.store(Y, x, coords=(0, g))"), ("lm.store(LAST, x, coords=(0, t.g))", "lm.store(LAST, x, coords=(0, g))"),
    ("lm.signal(FLAGS, t.g, 1)", "lm.signal(FLAGS, g, 1)"))  # fmt: skip


def test_of_several_axes_the_one_of_the_condition_says_who_comes_before() -> None:
    """The first chunk of a head has a word before it that is raised too, but for another head."""
    late = edited(HEADS, ("t.c > 0", "t.c > 1"))
    assert codes(late) == ["S044"]
    assert "S044" not in codes(HEADS)


DOWN = edited(CARRY, ("x = lm.load(X", "g = G - 1 - t.g\n            x = lm.load(X"), ("coords=(0, t.g), shape=(512,))\n            if t.g > 0", "coords=(0, g), shape=(512,))\n            if g < G - 1"),
              ("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, g + 1, 1)"), ("coords=(0, t.g - 1)", "coords=(0, g + 1)"), ("lm.store(Y, x, coords=(0, t.g))", "lm.store(Y, x, coords=(0, g))"),
              ("lm.store(LAST, x, coords=(0, t.g))", "lm.store(LAST, x, coords=(0, g))"), ("lm.signal(FLAGS, t.g, 1)", "lm.signal(FLAGS, g, 1)"))  # fmt: skip


def test_a_chain_from_the_end_is_read_the_same_way() -> None:
    assert codes(DOWN) == []
    (error,) = verify_text(edited(DOWN, ("if g < G - 1", "if g < G - 2"))).errors
    assert error.code == "S044"


# ------------------------------------------------------------------ what nobody writes


def test_what_is_waited_for_and_read_is_written_by_somebody() -> None:
    text = edited(CARRY, ("            lm.store(LAST, x, coords=(0, t.g))\n", ""))
    (error,) = verify_text(text).errors
    assert error.code == "S043" and "LAST" in error.message and not sums(text)
    fixed = applied(text, error.fixes[0].edits)
    assert codes(fixed) == [] and sums(fixed)


@pytest.mark.parametrize("mark", [".const", ".zeroed", ".inout"])
def test_what_holds_something_at_the_start_may_be_read_behind_a_wait(mark: str) -> None:
    text = edited(CARRY, ("            lm.store(LAST, x, coords=(0, t.g))\n", ""), ("LAST: LM.gmem2d[LM.f32, \"G\", 512]", f"LAST: LM.gmem2d[LM.f32, \"G\", 512]{mark}"))
    assert codes(text) == []


def test_an_input_beside_what_is_handed_on_may_be_read_there() -> None:
    text = edited(CARRY, ("x = x + lm.load(LAST, coords=(0, t.g - 1), shape=(512,))", "x = x + lm.load(X, coords=(0, t.g - 1), shape=(512,)) * lm.load(LAST, coords=(0, t.g - 1), shape=(512,))"))
    assert codes(text) == []


# ------------------------------------------------------------------ the first link


@pytest.mark.parametrize("cond", ["t.p >= 0", "True", "t.p > -1"])
def test_the_first_part_does_not_read_what_nobody_has_written(cond: str) -> None:
    text = edited(TURNS, ("if t.p > 0:", f"if {cond}:"))
    (error,) = verify_text(text).errors
    assert error.code == "S042" and error.trace and ".inout" in error.help
    assert codes(applied(text, error.fixes[0].edits)) == []


@pytest.mark.parametrize("mark", [".inout", ".zeroed"])
def test_a_tensor_that_holds_something_at_the_start_may_be_added_to(mark: str) -> None:
    text = edited(TURNS, ("            if t.p > 0:\n                x = x + lm.load(Y", "            x = x + lm.load(Y"), ('Y: LM.gmem2d[LM.f32, "G", 512]', f'Y: LM.gmem2d[LM.f32, "G", 512]{mark}'))
    assert codes(text) == []


def test_a_row_that_the_launcher_gives_and_no_block_writes_may_start_a_chain() -> None:
    text = edited(CARRY, ("            if t.g > 0:\n                lm.spin(FLAGS, t.g - 1, 1)\n", "            if t.g > 0:\n                lm.spin(FLAGS, t.g - 1, 1)\n            if t.g >= 0:\n"),
                  ("coords=(0, t.g - 1)", "coords=(0, t.g)"), ("lm.store(LAST, x, coords=(0, t.g))", "lm.store(LAST, x, coords=(0, t.g + 1))"), ('LAST: LM.gmem2d[LM.f32, "G", 512]', "LAST: LM.gmem2d[LM.f32]"))  # fmt: skip
    assert codes(text) == []


def test_marks_are_printed_and_read_again() -> None:
    from cake_ir.printer import print_program

    text = edited(TURNS, ('Y: LM.gmem2d[LM.f32, "G", 512]', 'Y: LM.gmem2d[LM.f32, "G", 512].inout'))
    program = specialise(parse(text).schedules[0], {}, "sm_90a").program
    assert program is not None and program.tensors["Y"].inout
    again = specialise(parse(print_program(program)).schedules[0], {}, "sm_90a").program
    assert again is not None and again.tensors["Y"].inout and not again.tensors["X"].inout


SHARES = """
@cake.schedule(target=("sm_80", "sm_90a"))
def shares(lm, X: LM.gmem3d[LM.f32, "P", "G", 512], PART: LM.gmem3d[LM.f32, "P", "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], FLAGS: LM.gmem1d[LM.i32, "W"].zeroed,
           P: LM.i32, G: LM.i32, W: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(W == P * G and P > 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G, P), names=("g", "p"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.g, t.p), shape=(512,))
            if t.p < P - 1:
                lm.store(PART, x, coords=(0, t.g, t.p))
                lm.signal(FLAGS, t.p * G + t.g, 1)
            else:
                for q in lm.range(P - 1):
                    lm.spin(FLAGS, q * G + t.g, 1)
                    x = x + lm.load(PART, coords=(0, t.g, q), shape=(512,))
                lm.store(Y, x, coords=(0, t.g))
"""


def test_a_share_that_is_waited_for_by_its_number_is_one_that_its_tile_has_stored() -> None:
    assert codes(SHARES) == []
    lost = edited(SHARES, ("                lm.store(PART, x, coords=(0, t.g, t.p))\n", ""))
    (error,) = verify_text(lost).errors
    assert error.code == "S043" and "nothing in this launch writes `PART`" in error.message
    assert codes(edited(lost, ('PART: LM.gmem3d[LM.f32, "P", "G", 512]', 'PART: LM.gmem3d[LM.f32, "P", "G", 512].const'))) == []


GATHERED = (Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus" / "allgather_gemm_overlap.py").read_text("utf-8")
CARRIED = "            for k in lm.range(K // BK):\n                c = lm.step(hop)"


def test_what_no_block_writes_is_read_by_none() -> None:
    assert CARRIED in GATHERED and verify_text(GATHERED).verdict == "pass"
    short = GATHERED.replace(CARRIED, CARRIED.replace("K // BK", "K // BK - 1"))
    (error,) = verify_text(short).errors
    assert error.code == "S042" and "that no block writes" in error.message
    assert verify_text(short.replace('A: LM.tma2d[LM.bf16, "M", "K"]', 'A: LM.tma2d[LM.bf16, "M", "K"].inout')).verdict == "pass"
