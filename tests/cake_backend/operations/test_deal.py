"""`deal="snake"`: rounds of tiles that turn round, in the simulator and in the emitted text."""

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, codes, generated, passes, simulated

WHO = """
@cake.schedule(target="sm_90a")
def who(lm, Y: LM.gmem2d[LM.i32, "R", 32], R: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",), deal="snake")
    with work:
        for t in lm.tiles(sched):
            lm.store(Y, lm.load(Y, coords=(0, t.r), shape=(32,)) + lm.cta_id(), coords=(0, t.r))
"""


@pytest.mark.parametrize("rows", [1, 5, 7, 8, 9])
def test_every_tile_goes_to_the_block_of_its_place_in_the_round(tmp_path: Path, rows: int) -> None:
    tensors = {"Y": np.zeros((rows, 32), np.int32)}
    passes(WHO)
    got = simulated(WHO, tensors, {"R": rows}, ctas=3)
    agree(got, generated(WHO, tensors, {"R": rows}, tmp_path, clusters=3))
    assert got["Y"][:, 0].tolist() == [0, 1, 2, 2, 1, 0, 0, 1, 2][:rows]


def test_only_a_static_scheduler_deals_in_rounds() -> None:
    assert codes(WHO.replace('kind="static"', 'kind="counter", counter=Y')) & {"N044"}
