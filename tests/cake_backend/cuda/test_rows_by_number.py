"""A tile whose rows a row vector places along an outer axis: generated text, simulator and NumPy agree."""

from pathlib import Path

import numpy as np
import pytest
from emulate import COMPILER, run

from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_verify import verify_text

TEXT = """
@cake.schedule(target="sm_80")
def heads(lm, X: LM.gmem3d[LM.f32, "T", "H", 16], Y: LM.gmem3d[LM.f32, "T", "H", 16], T: LM.i32, H: LM.i32):
    lm.launch(grid="persistent")
    w = lm.role(warps=range(0, 2))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(T, 32), H), names=("m", "h"))
    with w:
        for t in lm.tiles(sched):
            x = lm.frag(shape=(32, 16), dtype=lm.f32, form="acc", init=0.0)
            row = t.m * 32 + lm.iota(x, 0)
            x = lm.load(X, coords=(0, t.h, row), shape=(32, 16), form="acc", mask=row < T)
            lm.store(Y, x * 2.0, coords=(0, t.h, row), mask=row < T)
"""


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
def test_every_row_has_its_own_place_along_the_outer_axis(tmp_path: Path) -> None:
    assert verify_text(TEXT).verdict == "pass"
    program = specialise(parse(TEXT).schedules[0]).program
    assert program is not None
    x = np.random.default_rng(0).standard_normal((45, 3, 16)).astype(np.float32)
    tensors = {"X": x, "Y": np.full_like(x, np.nan)}
    simulated = simulate(program, tensors, {"T": 45, "H": 3}, ctas=2)
    assert simulated.ok and np.array_equal(simulated.outputs["Y"], 2 * x)
    assert np.array_equal(run(lower(program), tensors, {"T": 45, "H": 3}, tmp_path, clusters=2)["Y"], 2 * x)
