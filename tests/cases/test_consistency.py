"""Reported cases of the consistency gate."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cases_consistency import BOTH_TARGETS, CASES, NARROW, RAW_ID, TILE, WIDE
from reported import Case, check_bad, check_good

from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_verify import verify_text

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bad_input_is_caught_once_by_its_rule_on_its_line(case: Case) -> None:
    for bad in case.bad:
        check_bad(bad)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_control_is_accepted(case: Case) -> None:
    for good in case.good:
        check_good(good)


def program_of(text: str, target: str | None = None) -> Program:
    program = specialise(parse(text).schedules[0], {}, target).program
    assert program is not None
    return program


def test_c054_boxes_are_never_wider_than_the_swizzle_span() -> None:
    (map_,) = lower(program_of(WIDE)).manifest.maps
    assert map_.swizzle == "128b" and map_.box[0] * 2 == 128
    assert lower(program_of(WIDE)).text.count("tma_load_2d(x") == 2, "a box a panel"


@pytest.mark.parametrize("n", [24, 32])
def test_c058_narrow_tiles_are_exact(n: int) -> None:
    text = NARROW.replace("shape=(24, 64)", f"shape=({n}, 64)").replace("shape=(64, 24)", f"shape=(64, {n})")
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-8, 9, (rows, 64)).astype(ml_dtypes.bfloat16) for rows in (64, n))
    r = simulate(program_of(text), {"A": a, "B": b, "C": np.zeros((65, 64), np.float32)}, {})
    assert r.ok, r.faults
    assert np.array_equal(r.outputs["C"][:64, :n], a.astype(np.float64) @ b.astype(np.float64).T)


def test_c062_the_blocks_own_number_is_right_where_the_order_is_the_blocks() -> None:
    plain = RAW_ID.replace(', raster="m", swizzle=4', "")
    assert verify_text(plain).verdict == "pass"


@pytest.mark.parametrize("floats", [33, 35, 36])
def test_c066_barriers_are_aligned_whatever_lies_in_front(floats: int) -> None:
    text = TILE.replace("pool = lm.smem(24576 + 1024)", f"pool = lm.smem(24576 + 1024 + {4 * (floats - 32)})")
    generated = lower(program_of(text)).text
    (offset,) = re.findall(r"const u32 full = pool \+ (\d+)u;", generated)
    assert int(offset) % 8 == 0 and int(offset) >= 24576 + 1024 + 4 * (floats - 32)


FRESH = "import sys; from cake_ir import parse, specialise; from cake_backend.cuda.lower import lower; sys.stdout.write(lower(specialise(parse(sys.stdin.read()).schedules[0], {}, sys.argv[1]).program).text)"


def test_c068_lowering_for_two_targets_never_mixes() -> None:
    def both(order: tuple[str, ...]) -> dict[str, str]:
        return {target: lower(program_of(BOTH_TARGETS, target)).text for target in order}

    first, second = both(("sm_90a", "sm_100a")), both(("sm_100a", "sm_90a"))
    assert first == second
    for target, text in first.items():
        fresh = subprocess.run([sys.executable, "-c", FRESH, target], input=BOTH_TARGETS, capture_output=True, text=True, check=True, cwd=ROOT)
        assert fresh.stdout == text
    assert "tcgen05" not in first["sm_90a"] and "sm_100a" not in first["sm_90a"]
