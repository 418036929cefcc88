"""Tensor memory in this lowering: what it refuses, where, and the meetings in front of a member's release."""

from pathlib import Path

import pytest

from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower
from cake_backend.cuda.resources import member_barriers
from cake_ir import parse, specialise
from cake_ir.program import Program

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"


def program(file: str, *edits: tuple[str, str]) -> Program:
    text = (CORPUS / f"{file}.py").read_text("utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    found = specialise(parse(text, file).schedules[0]).program
    assert found is not None
    return found


@pytest.mark.parametrize(("file", "what", "source"), [
    ("tcgen05_pair_gemm", "an MMA of a pair of CTAs", "2)"),
    ("tcgen05_gemm", "tensor memory", "lm.tmem("),
])  # fmt: skip
def test_what_is_not_lowered_is_refused_where_it_is_written_with_what_to_do_instead(file: str, what: str, source: str) -> None:
    p = program(file)
    with pytest.raises(NotLowered) as refused:
        lower(p)
    fault = refused.value.fault
    line = (CORPUS / f"{file}.py").read_text("utf-8").split("\n")[fault.span.line - 1]
    assert fault.code == "H091" and fault.message == f"{what} is known, not lowered in this build"
    assert line[fault.span.column - 1 :].startswith(source)
    assert "verified and simulated" in fault.help and "accumulates in a fragment" in fault.help


def meetings(p: Program, role: str) -> list[str]:
    block = next(b for b in p.body if b.role == role)
    found = member_barriers(p, p.roles[role], block.body)
    return [str(op.attrs["barrier"]) for op in p.ops if op.id in found]


def test_warps_that_read_tensor_memory_meet_before_one_thread_frees_it_for_them() -> None:
    assert meetings(program("tcgen05_pair_scaled"), "rows") == ["free"]


def test_warps_that_have_met_since_need_not_meet_again() -> None:
    met = ('            lm.arrive(free, stage=d)\n', '            lm.sync(own)\n            lm.arrive(free, stage=d)\n')
    assert meetings(program("tcgen05_pair_scaled", met), "rows") == []


def test_a_release_by_every_warp_needs_no_meeting() -> None:
    assert meetings(program("tcgen05_gemm"), "epi") == []
