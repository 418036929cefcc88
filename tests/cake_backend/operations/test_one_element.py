"""`view.ld`: one element of shared memory as a uniform scalar, counted along the rows; it reads nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, compiles, generated, passes, simulated

from cake_verify.gates import verify_text

TEXT = """
@cake.schedule(target=("sm_89", "sm_90a"))
def elements(lm, X: LM.gmem2d[LM.f32, 2, 128], Y: LM.gmem1d[LM.f32, 5], AT: LM.gmem1d[LM.i32, 1].const):
    lm.launch(grid="tiles")
    pool = lm.smem(2048)
    tile = pool.view(offset=0, shape=(2, 128), dtype=lm.f32{swizzle})
    row = pool.view(offset=1024, shape=(128,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        tile.store(lm.load(X, coords=(0, 0), shape=(2, 128)))
        row.store(lm.load(X, coords=(0, 1), shape=(128,)))
        lm.sync(cta)
        lm.store(Y, tile.ld(70), coords=(0,))
        lm.store(Y, tile.ld(133), coords=(1,))
        lm.store(Y, row.ld(127), coords=(2,))
        lm.store(Y, tile.ld({read}), coords=(3,))
        lm.store(Y, tile.T.ld(7), coords=(4,))
"""


@pytest.mark.parametrize("swizzle", ["", ', swizzle="128b"', ', swizzle="32b"'])
def test_elements_are_counted_along_the_rows_whatever_the_storage(tmp_path: Path, swizzle: str) -> None:
    text = TEXT.format(swizzle=swizzle, read="lm.ld(AT, 0)")
    x = np.random.default_rng(0).integers(-99, 99, (2, 128)).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros(5, np.float32), "AT": np.array([200], np.int32)}
    passes(text)
    compiles(text, "sm_90a")
    got = simulated(text, tensors, {}, target="sm_90a")
    agree(got, generated(text, tensors, {}, tmp_path, target="sm_90a"))
    assert got["Y"].tolist() == [x[0, 70], x[1, 5], x[1, 127], x[1, 72], x[1, 3]]


HALF = TEXT.format(swizzle="", read="3").replace("tile.store(lm.load(X, coords=(0, 0), shape=(2, 128)))", "tile.rows(1, 1).store(lm.load(X, coords=(0, 0), shape=(1, 128)))")


def found(text: str) -> list[str]:
    return [d.code for d in verify_text(text, target="sm_90a").errors]


def test_only_the_element_has_to_be_there() -> None:
    written = HALF.replace("tile.ld(70)", "tile.ld(198)").replace("tile.ld(3)", "tile.ld(131)")
    assert found(written) == []
    assert found(written.replace("tile.ld(131)", "tile.ld(127)")) == ["S027"]
    assert found(written.replace("tile.ld(131)", "tile.ld(256)")) == ["S032"]
    assert found(written.replace("tile.ld(131)", "tile.ld(-1)")) == ["S032"]


def test_an_element_whose_number_is_read_may_be_any() -> None:
    written = HALF.replace("tile.ld(70)", "tile.ld(198)")
    assert found(written.replace("tile.ld(3)", "tile.ld(lm.ld(AT, 0))")) == ["S027"]
    whole = TEXT.format(swizzle="", read="lm.ld(AT, 0)")
    assert found(whole) == []


def test_the_element_still_has_to_be_handed_over() -> None:
    assert found(TEXT.format(swizzle="", read="3").replace("        lm.sync(cta)\n", "")) == ["S004"]
