"""The schedules that the tests of lowering use, and which of them have a golden text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cake_backend.cuda.lower import Lowered, lower
from cake_ir import parse, specialise
from cake_ir.program import Program

FOLDER = Path(__file__).with_name("schedules")
GOLDEN = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class Case:
    """One schedule with its tunables and target; `spill` allows that many bytes of spills."""

    file: str
    params: tuple[tuple[str, Any], ...] = ()
    target: str | None = None
    report: bool = False
    spill: int = 0

    @property
    def name(self) -> str:
        tail = "".join(f"_{k.lower()}{v}" for k, v in self.params)
        return f"{self.file}{tail}" + (f"_{self.target}" if self.target else "") + ("_report" if self.report else "")


CASES = (
    Case("gemm_ws"),
    Case("gemm_ws", report=True),
    Case("gemm_cluster"),
    Case("gemm_cluster", (("STAGES", 3),)),  # no power of two: slots and phases are counted
    Case("kmeans_assign"),
    Case("kmeans_two_blocks"),
    Case("rmsnorm", (("WARPS", 8), ("CTAS", 4))),
    Case("gemm_cp_async", target="sm_80"),
    Case("gemm_cp_async", target="sm_90a"),
    Case("fmha_fwd"),
    Case("kda_inter", spill=16),  # one register over the budget of the math role
)


def source(file: str) -> str:
    return (FOLDER / f"{file}.cake").read_text("utf-8")


def program(text: str, params: dict[str, Any] | None = None, target: str | None = None) -> Program:
    """The specialised program of a schedule's text; it must have no faults."""
    module = parse(text, "schedule.cake")
    assert not module.faults, module.faults
    template = module.schedule()
    assert template is not None
    done = specialise(template, params or {}, target)
    assert done.program is not None, done.faults
    return done.program


def lowered(case: Case) -> Lowered:
    text = source(case.file)
    return lower(program(text, dict(case.params), case.target), report=case.report, source=text)
