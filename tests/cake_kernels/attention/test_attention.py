"""The attention task and its schedule: oracle, tolerance, and simulated runs over tails, masks, shared heads and block widths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from corpus_runs import TEXTS, failures, judged

import cake_kernels
from cake_backend.judge.check import Reference
from cake_backend.simulate import simulate
from cake_backend.task import Distribution, Shape
from cake_ir import parse, specialise
from cake_verify import verify_text

TASK = cake_kernels.tasks()["attention"]
SMALL = [s for s in TASK.shapes if s.kind in ("sim", "edge") and s.axes["S"] < 1000]
VARIANTS: tuple[dict[str, Any], ...] = (
    {"D": 128}, {"D": 128, "BN": 176}, {"D": 128, "QSTAGES": 2}, {"D": 128, "CAUSAL": True, "QSTAGES": 2},
    {"D": 128, "CAUSAL": True, "BN": 64, "STAGES": 4}, {"D": 64, "BN": 192, "QSTAGES": 2},
    {"D": 64, "CAUSAL": True, "BN": 176}, {"D": 64, "MEMBERS": 3, "BN": 96, "STAGES": 3, "REGS": 160, "LOAD_REGS": 32},
    {"D": 64, "MEMBERS": 3, "BN": 128, "CAUSAL": True, "REGS": 160, "LOAD_REGS": 32},
    {"D": 128, "CAUSAL": True, "QSTAGES": 2, "STAGED": True}, {"D": 128, "BN": 176, "LAG": True, "SPLIT": 96},
    {"D": 64, "MEMBERS": 3, "STAGES": 4, "QSTAGES": 2, "REGS": 160, "LOAD_REGS": 32},
    {"D": 128, "CAUSAL": True, "QSTAGES": 2, "STAGED": True, "LAG": True, "SPLIT": 64}, {"D": 128, "QSTAGES": 2, "STAGED": True, "LAG": True, "SPLIT": 32, "POLY": 32},
    {"D": 64, "MEMBERS": 3, "STAGES": 4, "QSTAGES": 2, "LAG": True, "SPLIT": 32, "REGS": 160, "LOAD_REGS": 32},
    {"D": 128, "CAUSAL": True, "QSTAGES": 2, "DEAL": 2}, {"D": 64, "CAUSAL": True, "DEAL": 132},
    {"D": 64, "MEMBERS": 3, "STAGES": 4, "CAUSAL": True, "SKIP": True, "REGS": 160, "LOAD_REGS": 32},
)  # fmt: skip
SKIPPING = VARIANTS[-1] | {"QSTAGES": 2}


def textbook(inputs: dict[str, np.ndarray], axes: dict[str, int], row: int) -> list[float]:
    """One query's answer in Python floats."""
    heads, seq, dim = axes["HK"] * axes["G"], axes["S"], axes["D"]
    b, h, i = row // (heads * seq), row // seq % heads, row % seq
    q, k, v = inputs["Q"][b, h, i].astype(float), inputs["K"][b, h // axes["G"]].astype(float), inputs["V"][b, h // axes["G"]].astype(float)
    keys = range(i + 1 if axes["CAUSAL"] else seq)
    scores = [math.fsum(float(x) * float(y) for x, y in zip(q, k[j], strict=True)) / math.sqrt(dim) for j in keys]
    weights = [math.exp(s - max(scores)) for s in scores]
    return [math.fsum(w * float(v[j, d]) for j, w in zip(keys, weights, strict=True)) / math.fsum(weights) for d in range(dim)]


@pytest.mark.parametrize("shape", SMALL, ids=lambda s: s.name)
def test_the_oracle_agrees_with_plain_loops(shape: Shape) -> None:
    for distribution in (d for d in TASK.distributions if d.name != "special"):
        inputs = TASK.inputs(shape.axes, distribution, 5)
        last = TASK.rows(shape.axes) - 1
        for row in {0, last // 2, last} if last >= 0 else ():  # an empty batch has none
            found = TASK.oracle(inputs, shape.axes, np.array([row]))["O"][0]
            np.testing.assert_allclose(found, textbook(inputs, shape.axes, row), rtol=1e-9, atol=1e-12)


def blockwise(inputs: dict[str, np.ndarray], axes: dict[str, int], *, keys: int | None = None, masked: bool = True, shared: bool = True) -> np.ndarray:
    """What an honest kernel computes: f32 scores and sums, weights rounded to bf16 before they meet V, one rounding at the end.

    The options make it dishonest: only the first `keys` keys, no causal mask, or every query head with the first key head.
    """
    q, k, v = (inputs[n].astype(np.float32) for n in "QKV")
    heads = np.arange(q.shape[1]) // axes["G"] if shared else np.zeros(q.shape[1], int)
    scores = np.einsum("bhsd,bhtd->bhst", q, k[:, heads], optimize=True) / np.float32(math.sqrt(axes["D"]))
    t = np.arange(axes["S"])
    if axes["CAUSAL"] and masked:
        scores = np.where(t <= t[:, None], scores, -np.inf)
    if keys is not None:
        scores = np.where(t < keys, scores, -np.inf)
    p = np.exp(scores - np.fmax.reduce(scores, axis=-1, keepdims=True))
    o = np.einsum("bhst,bhtd->bhsd", p.astype(inputs["Q"].dtype).astype(np.float32), v[:, heads], optimize=True)
    return (o / p.sum(-1, keepdims=True)).astype(inputs["Q"].dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("distribution", TASK.distributions, ids=lambda d: d.name)
def test_an_honest_kernel_passes(distribution: Distribution) -> None:
    for shape in SMALL:
        inputs = TASK.inputs(shape.axes, distribution, 11)
        verdict = Reference(TASK, shape.axes, inputs, None).compare({"O": blockwise(inputs, shape.axes)}, distribution)["O"]
        assert verdict.ok, (shape.name, verdict.reason)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fault", [{"keys": 128}, {"keys": 199}, {"masked": False}, {"shared": False}], ids=str)
def test_a_dropped_key_a_missing_mask_and_a_wrong_head_fail_on_ordinary_data(fault: dict[str, Any]) -> None:
    axes = {"B": 1, "HK": 2, "G": 2, "S": 200, "D": 64, "CAUSAL": int("masked" in fault)}
    for name in ("normal", "offset"):
        inputs = TASK.inputs(axes, TASK.distribution(name), 2)
        verdict = Reference(TASK, axes, inputs, None).compare({"O": blockwise(inputs, axes, **fault)}, TASK.distribution(name))["O"]
        assert not verdict.ok, name


@pytest.mark.parametrize("params", VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["attention", "hopper"], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize("params", VARIANTS, ids=str)
def test_a_simulated_run_is_right(params: dict[str, Any]) -> None:
    suffix = f"_d{params['D']}{'_causal' if params.get('CAUSAL') else ''}"
    for number, shape in enumerate(("sim_200", "edge_129", "edge_one")):
        distribution = TASK.distributions[(number + len(params)) % 5].name
        assert not failures(judged("attention", "hopper", params, shape + suffix, distribution, seed=number))


@pytest.mark.parametrize("more", [{}, {"STAGED": True}, {"LAG": True, "SPLIT": 32, "POLY": 16, "DEAL": 2}], ids=str)
def test_members_may_leave_out_blocks_that_their_rows_do_not_see(more: dict[str, Any]) -> None:
    params = SKIPPING | more
    verdict = verify_text(TEXTS["attention", "hopper"], params=params)
    assert verdict.verdict == "pass", verdict.to_text()
    for shape, distribution in (("sim_200", "special"), ("edge_1000", "offset")):
        assert not failures(judged("attention", "hopper", params, f"{shape}_d64_causal", distribution))


@pytest.mark.parametrize("distribution", ["peaked", "rising", "special"])
def test_a_reference_that_lags_behind_gives_the_same_weights(distribution: str) -> None:
    """Scores that outgrow it by far, in every block, and rows of NaN that exceed all the time."""
    for params in ({"D": 128, "LAG": True, "MARGIN": 4.0}, {"D": 128, "LAG": True, "SPLIT": 32, "POLY": 16}, SKIPPING | {"LAG": True}):
        suffix = f"_d{params['D']}{'_causal' if params.get('CAUSAL') else ''}"
        assert not failures(judged("attention", "hopper", params, "sim_200" + suffix, distribution, seed=2))


def test_a_reference_does_not_lag_where_a_row_may_see_nothing_of_its_first_block() -> None:
    """It would start from no score at all: such a schedule keeps the running maximum."""
    params = {"D": 64, "MEMBERS": 3, "CAUSAL": True, "REGS": 160, "LOAD_REGS": 32}
    plain, lagging = (specialise(parse(TEXTS["attention", "hopper"], "hopper.py").schedules[0], params | {"LAG": lag}, "sm_90a").program for lag in (False, True))
    assert plain is not None and lagging is not None and len(plain.ops) == len(lagging.ops)


def test_a_store_that_starts_in_front_of_its_tensor_is_refused_and_faults() -> None:
    """It looks as good as a load that starts there, and ended with an illegal instruction on an H200."""
    text = TEXTS["attention", "hopper"].replace("m0 = at * BM", "m0 = S - (mt - at) * BM")
    text = text.replace("mine = lm.min(lm.cdiv(row0 + 64, BN), nblk)", "mine = lm.max(1, lm.min(lm.cdiv(row0 + 64, BN), nblk))")
    assert [d.code for d in verify_text(text, params=SKIPPING).errors] == ["D037"]  # tiles moved by two rows reach over the mask's edge too,
    edge = "if CAUSAL and not SKIP and BN % BM != 0:\n                        sc = lm.where("
    text = text.replace(edge, edge.replace("CAUSAL and not SKIP and BN % BM != 0", "CAUSAL"))  # .. unless every tile is masked
    verdict = verify_text(text, params=SKIPPING)
    assert [(d.code, d.span.line) for d in verdict.errors] == [("S033", 1 + text[: text.index("out.tma_store")].count("\n"))], verdict.to_text()
    made = specialise(parse(text, "hopper.py").schedules[0], SKIPPING, "sm_90a").program
    assert made is not None
    axes = {"B": 1, "HK": 1, "G": 1, "S": 200, "D": 64, "CAUSAL": 1}
    inputs = TASK.inputs(axes, TASK.distribution("normal"), 1)
    run = simulate(made, {**inputs, "O": np.zeros_like(inputs["Q"])}, dict(TASK.scalar_values(axes)))
    assert [f.code for f in run.faults] == ["X006"] and "in front of it" in run.faults[0].message


def test_members_that_skip_a_block_without_their_turn_would_wait_for_each_other() -> None:
    text = TEXTS["attention", "hopper"]
    turn = "                        lm.wait(turn)\n                        lm.arrive(turn)\n"
    assert turn in text
    verdict = verify_text(text.replace(turn, ""), params=SKIPPING)
    assert verdict.verdict == "fail", verdict.to_text()


def test_a_missing_wait_is_named_although_the_roles_name_their_outer_loops_differently() -> None:
    text = TEXTS["attention", "hopper"].replace("                lm.wait(v_full, stage=s)\n                if LAGS:", "                if LAGS:")
    verdict = verify_text(text, params={"CAUSAL": True, "QSTAGES": 2})
    assert [d.code for d in verdict.errors] == ["S004"], verdict.to_text()


def test_a_run_whose_mask_is_one_key_short_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS["attention", "hopper"]
    wrong = text.replace("cols <= lm.iota(sc, axis=0, base=row0) if", "cols <= lm.iota(sc, axis=0, base=row0 + 1) if")
    assert wrong != text
    monkeypatch.setitem(TEXTS, ("attention", "hopper"), wrong)
    assert failures(judged("attention", "hopper", {"D": 64, "CAUSAL": True}, "sim_200_d64_causal", "normal"))
