"""Schedulers of kind `counter`: tiles drawn from a word of global memory, handed round a block (or cluster) through a hidden ring."""

from pathlib import Path

import numpy as np
import pytest
from corpus import source
from vertical import BF16, agree, codes, compiles, generated, passes, program, simulated

from cake_ir.derive.shared_memory import shared_memory
from cake_ir.derive.work_rings import work_rings

ONE_ROLE = """
@cake.schedule(target=("sm_80", "sm_90a"))
def double(lm, X: LM.gmem2d[LM.f32, "R", 512], Y: LM.gmem2d[LM.f32, "R", 512], NEXT: LM.gmem1d[LM.i32, 1].zeroed, R: LM.i32):
    lm.launch(grid="persistent", ctas_per_sm=2)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="counter", tiles=(R,), names=("r",), counter=NEXT)
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(512,))
            lm.store(Y, x + x, coords=(0, t.r))
"""


@pytest.mark.parametrize(("rows", "target"), [(7, "sm_80"), (1, "sm_90a")])
def test_every_tile_is_drawn_once(tmp_path: Path, rows: int, target: str) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 512)).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros_like(x), "NEXT": np.zeros(1, np.int32)}
    passes(ONE_ROLE)
    compiles(ONE_ROLE, target)
    got = simulated(ONE_ROLE, tensors, {"R": rows}, target=target, ctas=3)
    printed = generated(ONE_ROLE, tensors, {"R": rows}, tmp_path, target=target, clusters=3)
    agree(got, printed)
    assert (printed["Y"] == x + x).all() and printed["NEXT"][0] == 0  # as the next launch needs it


def counted(file: str, clusters: str = "") -> str:
    """A corpus schedule with its tiles drawn from a counter."""
    text = source(file)
    text = text.replace('kind="static"', 'kind="counter", counter=NEXT').replace("M: LM.i32", "NEXT: LM.gmem1d[LM.i32].zeroed, M: LM.i32", 1)
    assert "NEXT: LM" in text
    return text


@pytest.mark.parametrize("file", ["gemm_ws", "gemm_cluster"])
def test_roles_of_a_block_and_blocks_of_a_cluster_work_on_the_same_tile(tmp_path: Path, file: str) -> None:
    text = counted(file)
    m, n, k = 300, 512, 192
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, s).astype(BF16) for s in ((m, k), (n, k)))
    tensors = {"A": a, "B": b, "C": np.zeros((m, n), BF16), "NEXT": np.zeros(1, np.int32)}
    passes(text)
    compiles(text)
    got = generated(text, tensors, {"M": m, "N": n, "K": k}, tmp_path, clusters=2)
    assert (got["C"].astype(np.float64) == (a.astype(np.float64) @ b.astype(np.float64).T).astype(BF16).astype(np.float64)).all()
    assert got["NEXT"][0] == 0


def test_the_role_that_issues_asks_and_the_others_read() -> None:
    ring = work_rings(program(counted("gemm_ws")))["sched"]
    assert (ring.fetch, ring.alone, ring.reads) == ("load", True, 8)
    alone = work_rings(program(ONE_ROLE))["sched"]
    assert (alone.fetch, alone.alone, alone.reads) == ("work", False, 4)
    plain, drawn = program(source("gemm_ws")), program(counted("gemm_ws"))
    assert shared_memory(drawn).total - shared_memory(plain).total == 80


def test_a_counter_is_needed() -> None:
    assert codes(ONE_ROLE.replace(", counter=NEXT", "")) == {"N044"}
