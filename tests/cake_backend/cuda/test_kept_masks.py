"""A mask over a value that is written again is kept in registers: it says what held when it was named."""

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
def kept(lm, X: LM.gmem2d[LM.f32, "R", 64], Y: LM.gmem2d[LM.f32, "R", 64], Z: LM.gmem2d[LM.f32, "R", 64], R: LM.i32):
    lm.launch(grid="persistent")
    w = lm.role(warps=range(0, 2))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(R, 16),), names=("m",))
    with w:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 16), shape=(16, 64), form="vec", clip=True)
            h = x * 3.0
            h = h + 1.0
            keep = h > 0.0
            h = h * -2.0
            lm.store(Y, lm.where(keep, h, x), coords=(0, t.m * 16), clip=True)
            lm.store(Z, h, coords=(0, t.m * 16), mask=keep & (lm.iota(h, 0, base=t.m * 16) < R))
"""


KEEP = "            keep = h > 0.0\n"
IN_A_BRANCH = "            keep = {0}\n            if t.m > 0:\n                keep = {1}\n"
IN_BOTH = "            if t.m > 0:\n                keep = {1}\n            else:\n                keep = {0}\n"
IN_ROUNDS = "            keep = {0}\n            for i in lm.range(lm.min(t.m, 1)):\n                keep = {1}\n"


def results(text: str, tmp_path: Path) -> list[dict[str, np.ndarray]]:
    """Outputs of simulator and generated text."""
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    tensors = {"X": X, "Y": np.full_like(X, np.nan), "Z": np.full_like(X, 7)}
    simulated = simulate(program, {k: v.copy() for k, v in tensors.items()}, {"R": len(X)}, ctas=2)
    assert simulated.ok
    return [simulated.outputs, run(lower(program), tensors, {"R": len(X)}, tmp_path, clusters=2)]


def wanted(first: np.ndarray, later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What Y and Z hold if tiles behind the first one have the mask `later`."""
    keep = np.concatenate([first[:16], later[16:]])
    return np.where(keep, H * np.float32(-2), X), np.where(keep, H * np.float32(-2), np.float32(7))


X = np.random.default_rng(0).standard_normal((37, 64)).astype(np.float32)
H = X * np.float32(3) + np.float32(1)
MASKS = {"h > 0.0": H > 0, "h > 1.0": H > 1, "x > 0.5": X > 0.5, "x > 0.0": X > 0}


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
def test_a_mask_says_what_held_when_it_was_named(tmp_path: Path) -> None:
    assert verify_text(TEXT).verdict == "pass"
    y, z = wanted(H > 0, H > 0)
    for got in results(TEXT, tmp_path):
        np.testing.assert_allclose(got["Y"], y, rtol=1e-6)
        np.testing.assert_allclose(got["Z"], z, rtol=1e-6)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
@pytest.mark.parametrize("spelled", [IN_A_BRANCH, IN_BOTH, IN_ROUNDS], ids=["branch", "both", "rounds"])
@pytest.mark.parametrize("first, later", [("x > 0.5", "x > 0.0"), ("x > 0.5", "h > 0.0"), ("h > 1.0", "x > 0.0"), ("h > 1.0", "h > 0.0")])
def test_a_mask_that_several_paths_name_is_the_one_of_the_path_taken(tmp_path: Path, spelled: str, first: str, later: str) -> None:
    text = TEXT.replace(KEEP, spelled.format(first, later))
    y, z = wanted(MASKS[first], MASKS[later])
    for got in results(text, tmp_path):
        np.testing.assert_allclose(got["Y"], y, rtol=1e-6)
        np.testing.assert_allclose(got["Z"], z, rtol=1e-6)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
def test_coordinates_that_several_paths_name_are_those_of_the_path_taken(tmp_path: Path) -> None:
    told = "            at = lm.iota(x, 1)\n            if t.m > 0:\n                at = 63 - lm.iota(x, 1)\n            keep = at < 10\n"
    text = TEXT.replace(KEEP, told)
    columns = np.broadcast_to(np.arange(64), X.shape)
    y, z = wanted(columns < 10, columns > 53)
    for got in results(text, tmp_path):
        np.testing.assert_allclose(got["Y"], y, rtol=1e-6)
        np.testing.assert_allclose(got["Z"], z, rtol=1e-6)
