"""On random pipelines that are correct by construction, verifier and simulator agree, and they agree on what breaks them."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from bench.verify.generate import Generated, Shape, case
from bench.verify.mutate import (
    drop_arrive,
    drop_async_wait,
    drop_fence,
    drop_step,
    drop_sync,
    drop_wait,
    primed_flip,
    trip_mismatch,
    weaken_async_wait,
    wrong_stage,
)  # fmt: skip
from bench.verify.mutate.subject import Mutant, Subject
from bench.verify.truth import program_of
from cake_backend.simulate import adversaries, simulate
from cake_ir.program import Program
from cake_verify import Verdict, verify_text

MAKERS = (drop_arrive, drop_async_wait, drop_fence, drop_step, drop_sync, drop_wait, primed_flip, trip_mismatch, weaken_async_wait, wrong_stage)

shapes = st.builds(
    Shape,
    engine=st.sampled_from(["wgmma", "wgmma", "mma_sync"]),
    stages=st.integers(1, 4),
    lag=st.integers(0, 2),
    members=st.integers(1, 2),
    arrive=st.sampled_from(["warp", "member", "thread"]),
    persistent=st.booleans(),
    epilogue=st.sampled_from(["direct", "staged", "aliased"]),
    slots=st.integers(1, 3),
    split=st.booleans(),
    handoff=st.booleans(),
    resident=st.booleans(),
).filter(lambda s: s.sound)

few = settings(
    max_examples=20, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],  # shrinking would simulate for minutes
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)  # fmt: skip


def verdict_on(text: str) -> Verdict:
    return verify_text(text, filename="generated.py")


def objections(c: Generated, program: Program, names: list[str], seeds: tuple[int, ...] = (0,)) -> str:
    """What goes wrong in simulations of a program under the given policies; empty if nothing does."""
    for setting in range(len(c.settings)):
        filled = c.arguments(setting)
        for policy in names:
            for seed in seeds:
                run = simulate(program, filled.tensors, filled.scalars, ctas=c.ctas, policy=policy, seed=seed, limit=40_000)
                if run.faults:
                    return f"{policy}, setting {setting}: {run.faults[0].code} {run.faults[0].message}"
                wrong = c.wrong(run.outputs, filled)
                if wrong:
                    return f"{policy}, setting {setting}: {wrong}"
    return ""


@given(shapes)
@few
def test_a_pipeline_that_is_correct_by_construction_passes_and_simulates_right(shape: Shape) -> None:
    c = case(shape)
    verdict = verdict_on(c.text())
    assert verdict.verdict == "pass", (shape, verdict.to_text())
    program = program_of(c.text(), c)
    assert program is not None
    assert objections(c, program, ["canonical", "late", "uniform"]) == "", shape


@lru_cache(maxsize=64)
def broken(shape: Shape) -> tuple[Mutant, ...]:
    subject = Subject(case(shape))
    for maker in MAKERS:
        maker.make(subject)
    return tuple(subject.made)


@given(shapes, st.integers(0, 10_000))
@few
def test_verifier_and_simulator_agree_on_a_pipeline_with_one_mistake(shape: Shape, pick: int) -> None:
    c, found = case(shape), broken(shape)
    assume(found)
    mutant = found[pick % len(found)]
    program = program_of(mutant.text, c)
    assume(program is not None)
    assert program is not None
    verdict = verdict_on(mutant.text)
    names = [p.name for p in adversaries(program)]
    wrong = objections(c, program, names)
    if wrong:
        assert verdict.verdict == "fail", (shape, mutant.key, mutant.title, wrong)
    elif any(e.code.startswith("S") for e in verdict.errors):  # it objects where the first simulations found nothing: they must find something when they look harder
        assert objections(c, program, names, seeds=(1, 2, 3)), (shape, mutant.key, mutant.title, verdict.to_text())


def test_the_generator_makes_texts_that_differ() -> None:
    texts = {case(Shape(stages=s, lag=lag, epilogue=e, persistent=e != "aliased")).text() for s in (2, 3) for lag in (0, 1) for e in ("direct", "staged", "aliased")}
    assert len(texts) == 12
