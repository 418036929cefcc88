"""The text that lowering prints for a timed schedule of each family that the examples beside lowering do not show; `CAKE_UPDATE_GOLDEN=1` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from corpus_runs import TEXTS, program

from bench.candidates import CANDIDATES
from cake_backend.cuda.lower import lower

GOLDEN = Path(__file__).with_name("golden")
TIMED = (
    "cake_gemm_nn_bn160p32_c2_early",  # panels of 32 columns, read transposed, fetched once for a cluster
    "cake_fp8_halves_128x256",
    "cake_tiny_few_send8_w6s1",  # a cluster that only sends
    "cake_softmax_4096_once_w8c4_plain_keep_early",
    "cake_silu_rows_w4r2c8",
    "cake_add_rmsnorm_4096_once_w16c2_keep_early",
)


@pytest.mark.parametrize("name", TIMED)
def test_the_text_of_a_timed_schedule_is_the_golden_one(name: str) -> None:
    candidate = next(c for c in CANDIDATES if c.name == name)
    text = lower(program(candidate.family, candidate.schedule, candidate.params), source=TEXTS[candidate.family, candidate.schedule]).text
    path = GOLDEN / f"{name}.cu"
    if os.environ.get("CAKE_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_every_golden_text_is_of_a_schedule_that_is_compared() -> None:
    assert {p.stem for p in GOLDEN.glob("*.cu")} == set(TIMED)
