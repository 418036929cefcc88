"""Tensors that blocks, roles and lanes of one launch share: verifier and simulator agree on good schedules and on broken ones."""

from __future__ import annotations

import numpy as np
import pytest
from shared_tensors import CHAIN, GOOD, THROTTLED, Broken, Shared

from cake_backend.simulate import adversaries, simulate
from cake_ir.frontend import parse, specialise
from cake_ir.program import Program
from cake_verify.gates import verify_text
from cake_verify.verdict import Verdict

BROKEN = [(s, b) for s in GOOD for b in s.broken]


def edited(text: str, edits: tuple[tuple[str, str], ...]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def program(text: str) -> Program:
    made = specialise(parse(text, "t").schedules[0], {}, "sm_90a")
    assert made.program is not None, made.faults
    return made.program


def shows(s: Shared, text: str) -> bool:
    """Whether some interleaving of the simulator meets a fault or gives other numbers."""
    p, arrays = program(text), s.arrays()
    wanted = s.expected(arrays)
    for policy in adversaries(p):
        for seed, ctas in ((0, s.ctas), (1, 1)) if s.name == "chain" else ((0, s.ctas), (1, s.ctas)):
            r = simulate(p, s.arrays(), s.scalars, ctas=ctas, policy=policy, seed=seed)
            if not r.ok or not np.array_equal(r.outputs[s.output], wanted):
                return True
    return False


@pytest.mark.parametrize("s", GOOD, ids=lambda s: s.name)
def test_a_good_schedule_passes_both(s: Shared) -> None:
    verdict = verify_text(s.text)
    assert verdict.verdict == "pass" and not verdict.diagnostics
    assert not shows(s, s.text)


@pytest.mark.parametrize(("s", "b"), BROKEN, ids=[f"{s.name}: {b.what}" for s, b in BROKEN])
def test_a_broken_one_is_refused_where_it_is_broken_and_shown(s: Shared, b: Broken) -> None:
    text = edited(s.text, b.edits)
    verdict = verify_text(text)
    assert [d.code for d in verdict.errors] == [b.code]
    assert b.at in text.split("\n")[verdict.errors[0].span.line - 1]
    assert verdict.errors[0].help and verdict.errors[0].trace
    assert shows(s, text)


def test_which_elements_a_table_decides_is_left_open() -> None:
    text = CHAIN.replace("G: LM.i32)", 'AT: LM.gmem1d[LM.i32, "G"].const, G: LM.i32)').replace("coords=(0, t.g - 1)", "coords=(0, lm.ld(AT, t.g))")
    text = text.replace("    work = lm.role", "    lm.assume_values(AT, 0, G)\n    work = lm.role", 1)
    verdict = verify_text(text)
    assert verdict.verdict == "undecided" and not verdict.errors
    assert "`lm.store` and `lm.load` touch the same elements of `Y`" in verdict.diagnostics[0].message


def test_an_update_does_not_order_what_comes_after_it() -> None:
    verdict = verify_text(edited(next(s.text for s in GOOD if s.name == "added"), (("lm.signal(DONE, t.g, 1)", "lm.atomic(DONE, 1, coords=(t.g,))"),)))
    assert [d.code for d in verdict.errors] == ["S039"]
    assert "raise a flag with `lm.signal`" in verdict.errors[0].help


def throttled(*edits: tuple[str, str]) -> Verdict:
    return verify_text(edited(next(s.text for s in GOOD if s.name == "throttled"), edits))


def test_a_wait_for_a_count_is_decided_like_one_for_a_flag() -> None:
    (never,) = throttled(("lm.spin(DONE, 1, t.g - 1)", "lm.spin(DONE, 1, t.g + 1)")).errors
    assert "`DONE[1]` to be at least 1, and no block that can still run updates that word" in never.message
    assert "lm.atomic" in edited(THROTTLED, ()).split("\n")[never.related[0][0].line - 1]
    (short,) = throttled(("lm.spin(DONE, 1, t.g - 1)", "lm.spin(DONE, 1, 2 * t.g)")).errors
    assert "the updates leave it at 1" in short.message
    assert throttled(("coords=(1,)", 'coords=(1,), op="max"'), ("lm.atomic(DONE, 1", "lm.atomic(DONE, t.g + 1")).verdict == "pass"


@pytest.mark.parametrize(
    "edits",
    [
        (("lm.atomic(DONE, 1", "lm.atomic(DONE, lm.ld(AT, t.g)"), ("G: LM.i32)", 'AT: LM.gmem1d[LM.i32, "G"].const, G: LM.i32)')),
        (("coords=(1,)", "coords=(lm.ld(AT, t.g),)"), ("G: LM.i32)", 'AT: LM.gmem1d[LM.i32, "G"].const, G: LM.i32)'), ("    work = lm.role", "    lm.assume_values(AT, 0, 2)\n    work = lm.role")),
        (("lm.atomic(DONE, 1", "lm.atomic(DONE, -1"),),
        (("coords=(1,)", 'coords=(1,), op="xor"'),),
        (("            lm.atomic(DONE, 1, coords=(1,))", '            lm.atomic(DONE, 1, coords=(1,))\n            lm.atomic(DONE, 3, coords=(1,), op="max")'),),
    ],
    ids=["an amount that is read", "a place that is read", "downwards", "no sum", "two kinds"],
)  # fmt: skip
def test_a_wait_for_what_the_text_does_not_say_is_left_open(edits: tuple[tuple[str, str], ...]) -> None:
    verdict = throttled(*edits)
    assert verdict.verdict == "undecided" and not verdict.errors
    (open_one,) = verdict.diagnostics
    assert "whether this wait ends" in open_one.message and "lm.atomic" in open_one.message and "`DONE`" in open_one.message


SHIFTED = """
@cake.schedule(target="sm_90a")
def shift(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem1d[LM.f32, "N"], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 512 == 0 and N > 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(N // 512,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.r * 512,), shape=(512,))
            lm.store(Y, x, coords=(N - 512 - t.r * 512,))

@cake.plan()
def twice(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32], N: LM.i32):
    z = lm.workspace(shape=(N,), dtype=lm.f32)
    lm.run(shift, X=X, Y=z, N=N)
    lm.run(shift, X=z, Y=Y, N=N)
"""


def test_a_plan_that_binds_two_parameters_to_one_tensor_is_looked_at_as_one() -> None:
    assert not verify_text(SHIFTED).errors
    together = SHIFTED.replace("lm.run(shift, X=z, Y=Y, N=N)", "lm.run(shift, X=z, Y=z, N=N)\n    lm.run(shift, X=z, Y=Y, N=N)")
    (error,) = verify_text(together).errors
    assert error.code == "S039" and any("are one tensor in this launch" in text for _, text in error.related)
    straight = together.replace("coords=(N - 512 - t.r * 512,)", "coords=(t.r * 512,)")
    assert not verify_text(straight).errors


def test_what_is_declared_as_read_only_is_not_written() -> None:
    (error,) = verify_text(SHIFTED.partition("@cake.plan")[0].replace('Y: LM.gmem1d[LM.f32, "N"]', 'Y: LM.gmem1d[LM.f32, "N"].const')).errors
    assert error.code == "S039" and "`.const`" in error.message
