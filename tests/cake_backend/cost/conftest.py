"""Variants of the example GEMM, made by edits of its text: the ones that were measured on the device, and the ones predicted for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cake_ir import parse, specialise
from cake_ir.program import Program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

CLUSTER_1 = (("cluster=(2, 1)", "cluster=(1, 1)"), (', multicast="m"', ""), (', scope="cluster"', ""))
ONE_CONSUMER = (("warps=range(0, 8), regs=232, members=2", "warps=range(0, 4), regs=232"), ("range(8, 12)", "range(4, 8)"))

EDITS: dict[str, tuple[tuple[tuple[str, str], ...], dict[str, int]]] = {
    "base": ((), {}),
    "three stages": ((), {"STAGES": 3}),
    "two stages": ((), {"STAGES": 2}),
    "cluster 1": (CLUSTER_1, {}),
    "cluster 1, two stages": (CLUSTER_1, {"STAGES": 2}),
    "bn 128": ((), {"BN": 128, "STAGES": 6}),
    "bn 128, cluster 1": (CLUSTER_1, {"BN": 128, "STAGES": 6}),
    "n 64": (CLUSTER_1, {"BN": 64, "STAGES": 8}),
    "depth 0": ((("lm.mma_wait(pending=1)", "lm.mma_wait(pending=0)"),), {}),
    "one consumer": (ONE_CONSUMER, {"BM": 64}),
    "one consumer, cluster 1": (CLUSTER_1 + ONE_CONSUMER, {"BM": 64}),
    "cluster order": ((("stage=s.prev())", 'stage=s.prev(), order="cluster")'),), {}),
    "group 1": ((("swizzle=8,", "swizzle=1,"),), {}),
}


def program_of(text: str, params: dict[str, Any] | None = None) -> Program:
    """The program of the only schedule in `text`, which must be without faults."""
    done = specialise(parse(text, "test").schedule(None), params)
    assert done.program is not None, done.faults
    return done.program


@pytest.fixture(scope="session")
def example() -> Callable[..., Program]:
    """`example("gemm_ws", STAGES=2)`: a specialised example schedule."""
    return lambda name, **params: program_of((EXAMPLES / f"{name}.py").read_text(), params)


@pytest.fixture(scope="session")
def variant() -> Callable[[str], Program]:
    """`variant("two stages")`: the example GEMM with one decision changed."""

    def make(name: str) -> Program:
        edits, params = EDITS[name]
        text = (EXAMPLES / "gemm_ws.py").read_text()
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        return program_of(text, params)

    return make
