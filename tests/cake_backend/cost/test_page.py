"""The figures in `docs/cost-model.md` are the ones that the model gives, and its codes are the ones that exist."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import predicted as bench
from cake_backend.cost import predict
from cake_backend.cost.coverage import REASONS
from cake_backend.diagnose import CATALOGUE
from cake_ir.program import Program

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cost-model.md").read_text("utf-8")
BIG = {"M": 8192, "N": 8192, "K": 8192}


def _mid(program: Program, args: dict[str, int]) -> float:
    cycles = predict(program, args).cycles
    assert cycles is not None
    return cycles.mid


def test_the_table_is_what_the_command_prints() -> None:
    found = bench.launches()
    settings = [bench.prepared(x) for x in found]
    assert bench.table(found, [s.cycles(s.calibration.constants())[0] for s in settings]) in PAGE


def test_the_ratios_on_the_page_are_predicted(variant: Callable[[str], Program]) -> None:
    section = PAGE[PAGE.index("| decision, 8192^3") : PAGE.index("Times are of a hand-written")]
    rows = re.findall(r"^\| ([a-z][\w ,]+) \| ([\d.]+) \|", section, re.M)
    assert len(rows) == 9
    base = _mid(variant("base"), BIG)
    for name, ratio in rows:
        assert _mid(variant(name), BIG) / base == pytest.approx(float(ratio), abs=2e-3), name


def test_every_code_on_the_page_exists() -> None:
    assert set(re.findall(r"\bR0\d\b", PAGE)) <= set(REASONS)
    assert set(re.findall(r"\bB\d\d\b", PAGE)) <= set(CATALOGUE)
