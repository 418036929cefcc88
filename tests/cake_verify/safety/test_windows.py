"""Runs come back to the slots of every ring: of all schedules that the package ships and that the benchmark holds, in loops or from tile to tile."""

import pytest

import cake_kernels
from bench.verify.cases import CASES
from cake_ir import parse, specialise
from cake_ir.program import For, Program, statements
from cake_verify import verify_text
from cake_verify.analyses import safety

SHIPPED = {f"{s.family}/{s.name}": s.text for s in cake_kernels.schedules()}


def program_of(name: str) -> Program:
    if name in SHIPPED:
        made = specialise(parse(SHIPPED[name]).schedules[0]).program
    else:
        case = CASES[name]
        made = specialise(parse(case.text()).schedules[0], case.params, case.target).program
    assert made is not None
    return made


def repeats(program: Program) -> bool:
    """Whether anything in the program can happen more often than once a slot: tiles in a persistent block, or a counted loop of unknown length."""
    loops = [s for block in program.body for s in statements(block.body) if isinstance(s, For)]
    persistent = any(s.kind == "tiles" and program.schedulers[str(s.scheduler)].kind != "grid" for s in loops)
    return persistent or any(s.kind == "range" and not (s.hi is not None and s.hi.op == "const") for s in loops)


@pytest.mark.parametrize("name", [*SHIPPED, *CASES])
def test_some_run_comes_back_to_the_first_slot_of_the_deepest_ring(name: str) -> None:
    program = program_of(name)
    stages = max((r.stages for r in program.rings.values()), default=0)
    result = safety.check(program)
    assert not [f for f in result.faults if f.severity == "error"]
    most = max((s.tiles * max([*s.trips, 1]) for s in result.settings), default=0)
    assert most > stages or stages <= 1 or not repeats(program), [(s.tiles, s.trips) for s in result.settings]


@pytest.mark.parametrize("name", [n for n, t in SHIPPED.items() if "lm.wait(empty, stage=s)" in t])
@pytest.mark.parametrize("gone", ["lm.wait(empty, stage=s)", "lm.arrive(empty, stage=s)"])
def test_a_ring_without_its_wait_or_its_release_is_refused(name: str, gone: str) -> None:
    text = SHIPPED[name]
    if gone not in text:
        pytest.skip("released another way")
    assert verify_text(text.replace(gone, "pass")).verdict == "fail"
