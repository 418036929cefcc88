"""Ground truth about a mutant: what adversarial simulation says when it runs beside the unmutated schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bench.verify.cases import CASES, Case, Filled
from cake_backend.simulate import adversaries, simulate
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_ir.walk import compile_roles


@dataclass(frozen=True)
class Truth:
    """`state` is `harmful`, `harmless`, `refused` (no program comes out of the text) or `unknown` (not simulated).

    `kind` is the first fault's code or `numbers`; `policy`, `setting` and `seed` reproduce it; `runs` counts simulations.
    """

    state: str
    kind: str = ""
    detail: str = ""
    policy: str = ""
    setting: int = 0
    seed: int = 0
    runs: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Good:
    """A run of the unmutated schedule: its arguments, outputs (without words that blocks only follow each other by), and how many events it took."""

    filled: Filled
    outputs: dict[str, Any]
    events: int


def program_of(text: str, case: Case) -> Program | None:
    """The specialised program of a text under a case's tunables; None where construction refuses it."""
    module = parse(text, case.file)
    template = module.schedule(None)
    if module.faults or template is None:
        return None
    return specialise(template, case.params, case.target).program


@lru_cache(maxsize=128)
def good(name: str, setting: int) -> Good:
    """The unmutated run of a case; raises `AssertionError` if it is not clean and right."""
    case = CASES[name]
    program = program_of(case.text(), case)
    assert program is not None, name
    filled = case.arguments(setting)
    run = simulate(program, filled.tensors, filled.scalars, ctas=case.grid(setting))
    assert run.ok, (name, run.faults)
    assert not case.wrong(run.outputs, filled), (name, case.wrong(run.outputs, filled))
    words = {str(op.attrs["flags"]) for op in program.ops if "flags" in op.attrs} - {str(op.attrs["tensor"]) for op in program.ops if "tensor" in op.attrs}
    return Good(filled, {n: x for n, x in run.outputs.items() if n not in words}, run.events)


@lru_cache(maxsize=64)
def policies(name: str) -> tuple[str, ...]:
    """Interleavings for a case, the ones that expose most first."""
    program = program_of(CASES[name].text(), CASES[name])
    assert program is not None
    return tuple(p.name for p in adversaries(program))


def differs(case: Case, outputs: Mapping[str, Any], want: Mapping[str, Any]) -> str:
    """Where outputs differ from the unmutated schedule's by more than rounding; empty if nowhere."""
    for name, right in want.items():
        got = np.asarray(outputs[name])
        if got.tobytes() == right.tobytes():
            continue
        if np.issubdtype(got.dtype, np.integer):
            return f"{name} differs"
        a, b = got.astype(np.float64), np.asarray(right).astype(np.float64)
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return f"{name} differs in what is finite"
        ok = np.isfinite(b)
        scale = max(1e-30, float(np.abs(b[ok]).max())) if ok.any() else 1.0
        error = float(np.abs(a[ok] - b[ok]).max()) / scale if ok.any() else 0.0
        if error > max(case.tolerance, 1e-6):
            return f"{name} is off by {error:.1e}"
    return ""


def judge(text: str, name: str, *, seeds: Sequence[int] = (0,), most: int | None = None) -> Truth:
    """Run a mutant under every policy, setting and seed until something goes wrong; `most` bounds the policies a setting."""
    case = CASES[name]
    program = program_of(text, case)
    if program is None:
        return Truth("refused")
    code = compile_roles(program)
    runs = 0
    chosen = policies(name) if most is None else policies(name)[:most]
    for seed in seeds:
        for policy in chosen:
            for setting in range(len(case.settings)):
                base = good(name, setting)
                limit = 8 * base.events + 2000
                try:
                    run = simulate(program, base.filled.tensors, base.filled.scalars, ctas=case.grid(setting), policy=policy, seed=seed, limit=limit, code=code)
                except Exception as error:  # a crash of the simulator is a result of the benchmark, not its end
                    return Truth("unknown", "crash", f"{type(error).__name__}: {error}"[:200], policy, setting, seed, runs)
                runs += 1
                if run.faults:
                    first = run.faults[0]
                    if first.code in ("X011", "X013"):
                        return Truth("unknown", first.code, first.message, policy, setting, seed, runs)
                    return Truth("harmful", first.code, first.message, policy, setting, seed, runs)
                wrong = differs(case, run.outputs, base.outputs)
                if wrong:
                    return Truth("harmful", "numbers", wrong, policy, setting, seed, runs)
    return Truth("harmless", runs=runs)
