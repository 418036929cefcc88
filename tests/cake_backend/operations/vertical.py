"""One schedule through every reading of it: the gates, the simulator under all its policies, the generated text on the CPU, NVRTC."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from emulate import COMPILER, run

from cake_backend.cuda.lower import lower
from cake_backend.simulate import adversaries, simulate
from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_verify.gates import verify_text

BF16, E4M3, E5M2, UE8M0 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
Arrays = dict[str, Any]


def program(text: str, target: str | None = None, params: Mapping[str, Any] | None = None) -> Program:
    """The specialised program of a text without faults."""
    module = parse(text, "schedule.cake")
    assert not module.faults, module.faults
    template = module.schedule()
    assert template is not None
    done = specialise(template, dict(params or {}), target or template.targets[0])
    assert done.program is not None, done.faults
    return done.program


def codes(text: str, target: str | None = None) -> set[str]:
    """Codes of what the gates refuse in a text."""
    return {d.code for d in verify_text(text, target=target).errors}


def passes(text: str, target: str | None = None) -> None:
    """The gates pass a text."""
    verdict = verify_text(text, target=target)
    assert verdict.verdict == "pass", verdict.to_text()


def simulated(text: str, tensors: Arrays, scalars: Mapping[str, Any] | None = None, *, target: str | None = None, ctas: int | None = None, every: bool = False) -> Arrays:
    """What the simulator computes; with `every` under each adversarial policy, which must all agree."""
    p = program(text, target)
    results = []
    for policy in adversaries(p) if every else [None]:
        options = {} if policy is None else {"policy": policy}
        r = simulate(p, {n: a.copy() for n, a in tensors.items()}, dict(scalars or {}), ctas=ctas, **options)
        assert r.ok, r.faults
        results.append(r.outputs)
    for other in results[1:]:
        for n in tensors:
            assert results[0][n].tobytes() == other[n].tobytes(), f"`{n}` depends on the order of events"
    return results[0]


def generated(text: str, tensors: Arrays, scalars: Mapping[str, Any] | None, folder: Path, *, target: str | None = None, clusters: int | None = None) -> Arrays:
    """What the generated text computes on the CPU; skips where there is no C++ compiler."""
    import pytest

    if COMPILER is None:
        pytest.skip("no C++ compiler on this machine")
    return run(lower(program(text, target), source=text), tensors, dict(scalars or {}), folder, clusters=clusters)


def compiles(text: str, target: str | None = None) -> str:
    """Compile the generated text without spills or serialisation, where there is a compiler; the text."""
    lowered = lower(program(text, target), source=text)
    if nvrtc_version() != "nvrtc unavailable":
        build = compile_cuda(lowered.text, lowered.manifest.target, cache=False)
        assert build.ok, build.log
        assert not build.serialised
        assert build.resources.spill_stores + build.resources.spill_loads + build.resources.stack == 0
    return lowered.text


def agree(a: Arrays, b: Arrays, *names: str) -> None:
    """Two sets of tensors hold the same bits in `names`, or in all."""
    for n in names or a:
        same = a[n].tobytes() == b[n].tobytes()
        assert same, f"`{n}` differs in {np.count_nonzero(np.asarray(a[n], np.float64) != np.asarray(b[n], np.float64))} elements"
