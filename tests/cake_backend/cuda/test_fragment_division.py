"""`//` and `%` of integer fragments round down, in the emitted code and in the simulator, and rows by number are shared by warps that share them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulate import COMPILER, run

from bench.verify.cases import CASES
from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")

TEXT = '''
@cake.schedule(target="sm_80")
def divided(lm, X: LM.gmem1d[LM.{dtype}, 64], Q: LM.gmem1d[LM.{dtype}, 64], R: LM.gmem1d[LM.{dtype}, 64], D: LM.{dtype}):
    lm.launch(grid="tiles")
    w = lm.role(warps=range(0, 1))
    s = lm.scheduler(kind="grid", tiles=(1,), names=("t",))
    with w:
        for t in lm.tiles(s):
            x = lm.load(X, coords=(0,), shape=(64,), form="vec")
            lm.store(Q, x // {by}, coords=(0,))
            lm.store(R, x % {by}, coords=(0,))
'''


@pytest.mark.parametrize(("dtype", "by"), [("i32", "D"), ("i32", "8"), ("i32", "-3"), ("i64", "D"), ("i64", "4"), ("u32", "D"), ("u32", "16")])
def test_division_rounds_down(tmp_path: Path, dtype: str, by: str) -> None:
    text = TEXT.format(dtype=dtype, by=by)
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    x = (np.arange(64) - (32 if dtype != "u32" else 0)).astype({"i32": np.int32, "i64": np.int64, "u32": np.uint32}[dtype])
    x[0] = x[0] * (2**33 if dtype == "i64" else 1)
    tensors = {"X": x, "Q": np.zeros_like(x), "R": np.zeros_like(x)}
    d = 7 if by == "D" else int(by)
    for found in (run(lower(program, source=text), tensors, {"D": 7}, tmp_path), simulate(program, {n: a.copy() for n, a in tensors.items()}, {"D": 7}).outputs):
        assert np.array_equal(found["Q"], x // x.dtype.type(d)) and np.array_equal(found["R"], x % x.dtype.type(d))


@pytest.mark.parametrize("warps", ["(2, 2)", "(1, 4)"])
def test_warps_that_share_rows_share_what_is_gathered_by_them(tmp_path: Path, warps: str) -> None:
    case = CASES["moe_pairs_gemm"]
    text = case.text().replace("warps=(2, 2)", f"warps={warps}")
    program = specialise(parse(text).schedules[0], case.params, "sm_80").program
    assert program is not None
    filled = case.arguments(1)
    assert not case.wrong(run(lower(program, source=text), filled.tensors, filled.scalars, tmp_path), filled)
    assert not case.wrong(simulate(program, filled.tensors, filled.scalars).outputs, filled)
