"""The simulator's own count of transaction bytes agrees with the shared derivation wherever both have one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_cases import CASES, Case
from sim_schedules import program
from test_language import GROUPED, MULTICAST, TCGEN05, TWO_ACCUMULATORS
from test_language_data import BULK

from cake_backend.simulate.derived import expected_arrivals, phases, touches_slots, view_rings
from cake_backend.simulate.faults import NotSimulated
from cake_ir.derive.transactions import transactions
from cake_ir.program import Program


def totals(p: Program) -> dict[int, int | None]:
    return {i: phase.total for i, phase in phases(p).items()}


def agree(p: Program) -> None:
    sets, faults = transactions(p)
    assert not faults
    mine = totals(p)
    assert {s.op.id: t.bytes for t in sets for s in t.loads} == mine


@pytest.mark.parametrize("case", [c for c in CASES if c.program().barriers], ids=lambda c: c.name)
def test_bytes_of_the_examples_agree(case: Case) -> None:
    agree(case.program())


@pytest.mark.parametrize("text", [GROUPED, MULTICAST, TCGEN05, TWO_ACCUMULATORS])
def test_bytes_of_other_schedules_agree(text: str) -> None:
    agree(program(text))


def test_a_copy_of_run_time_length_has_no_fixed_bytes() -> None:
    assert list(totals(program(BULK)).values()) == [None]


IN_A_LOOP = """
@cake.schedule(target="sm_90a")
def load(lm, X: LM.tma2d, N: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(8 * 1024)
    buf = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=[0])
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    with work:
        s = lm.step(ring)
        for i in lm.range(TRIPS):
            buf.rows(8 * i, 8).tma_load(X, coords=(0, 8 * i), stage=s, barrier=full)
        lm.wait(full, stage=s)
"""


def test_copies_in_a_loop_that_fill_one_slot_count_once_an_iteration() -> None:
    assert list(totals(program(IN_A_LOOP.replace("TRIPS", "8"))).values()) == [8 * 8 * 64 * 2]
    with pytest.raises(NotSimulated, match="trip count"):
        totals(program(IN_A_LOOP.replace("TRIPS", "N")))


UNEVEN = IN_A_LOOP.replace(
    "        for i in lm.range(TRIPS):\n            buf.rows(8 * i, 8).tma_load(X, coords=(0, 8 * i), stage=s, barrier=full)\n",
    "        buf.rows(0, 8).tma_load(X, coords=(0, 0), stage=s, barrier=full)\n        if N > 1:\n            buf.rows(8, 8).tma_load(X, coords=(0, 8), stage=s, barrier=full)\n",
)


def test_bytes_that_differ_between_branches_are_refused() -> None:
    with pytest.raises(NotSimulated, match="branches"):
        totals(program(UNEVEN))


def test_arrivals_of_a_cluster_barrier_count_every_cta_that_multicasts_into_the_slot() -> None:
    p = program(MULTICAST)
    assert expected_arrivals(p, p.barriers["empty"]) == 4 * 3
    assert expected_arrivals(p, p.barriers["full"]) == 1


def test_a_release_by_one_thread_meets_the_member_only_where_threads_touched_the_slot() -> None:
    from cake_ir import parse, specialise

    text = (Path(__file__).resolve().parents[3] / "cake_kernels" / "gemm" / "hopper.py").read_text("utf-8")
    p = specialise(parse(text, "hopper.py").schedule(None)).program
    assert p is not None
    assert not touches_slots(p, view_rings(p), "math", p.barriers["ab_empty"])
    q = program(BULK)
    assert touches_slots(q, view_rings(q), "work", q.barriers["empty"])
