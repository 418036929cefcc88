"""Facts derived from the examples: counts, bytes, ids, groups."""

from pathlib import Path

import pytest

from cake_ir import parse, specialise
from cake_ir.derive.arrivals import arrivals
from cake_ir.derive.clusters import arrival_targets, guarded_loads, multicast_axes
from cake_ir.derive.issue import issue_roles
from cake_ir.derive.named_ids import named_ids, needs_member_barrier
from cake_ir.derive.structure import for_member, members_at, sites
from cake_ir.derive.transactions import transactions
from cake_ir.program import Expr, Program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str, *edits: tuple[str, str], **params: object) -> Program:
    text = (EXAMPLES / f"{name}.py").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    program = specialise(parse(text, name).schedules[0], params or None).program
    assert program is not None
    return program


def test_arrival_counts_of_the_examples() -> None:
    assert {n: a.count for n, a in arrivals(example("gemm_ws")).items()} == {"ab_full": 1, "ab_empty": 16}
    counts = {n: a.count for n, a in arrivals(example("fmha_fwd")).items()}
    assert counts == {"q_full": 1, "q_empty": 8, "k_full": 1, "k_empty": 8, "v_full": 1, "v_empty": 8}


@pytest.mark.parametrize(("kind", "count"), [("warp", 16), ("member", 4), ("thread", 512)])
def test_count_follows_the_kind_of_arrival(kind: str, count: int) -> None:
    program = example("gemm_ws", ('arrive="warp"', f'arrive="{kind}"'))
    assert arrivals(program)["ab_empty"].count == count


def test_members_kept_away_by_a_branch_do_not_count() -> None:
    line = "            lm.arrive(ab_empty, stage=lm.at(ab))\n"
    lagged = "                if k > 0:\n                    lm.arrive(ab_empty, stage=s.prev())\n"
    guarded = "            if math.index == 0:\n                lm.arrive(ab_empty, stage=lm.at(ab))\n"
    program = example("gemm_ws", (lagged, ""), (line, guarded))
    assert arrivals(program)["ab_empty"].count == 8


def test_transaction_bytes_count_whole_views_also_where_multicast_cuts_them() -> None:
    assert [(t.barrier, t.bytes, len(t.loads)) for t in transactions(example("gemm_ws"))[0]] == [("ab_full", 16384 + 32768, 2)]
    assert [t.bytes for t in transactions(example("kmeans_assign"))[0]] == [65536, 32768 + 512]
    sets, faults = transactions(example("kda_inter"))
    assert [(len(t.loads), t.bytes) for t in sets] == [(8, 82688)] and not faults


def test_two_arms_with_equal_bytes_are_one_set() -> None:
    load = "                smem_a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=ab_full)\n"
    other = load.replace("t.m * BM", "0")
    both = "                if k > 0:\n    " + load + "                else:\n    " + other
    sets, faults = transactions(example("gemm_ws", (load, both)))
    assert [t.bytes for t in sets] == [49152] and not faults


def test_one_arm_without_a_load_is_refused() -> None:
    load = "                smem_a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=ab_full)\n"
    _, faults = transactions(example("gemm_ws", (load, "                if k > 0:\n    " + load)))
    assert [f.code for f in faults] == ["S018"]


def test_a_name_that_is_bound_again_is_another_slot() -> None:
    """K and V ride one ring, and their load role calls both slots `s`: a phase expects the bytes of one."""
    load = "                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=ab_full, multicast=\"m\")\n"
    again = "                s = lm.step(ab)\n                lm.wait(ab_empty, stage=s)\n"
    for second in (load, load.replace("stage=s", "stage=lm.at(ab)")):
        sets, faults = transactions(example("gemm_ws", (load, again + second)))
        assert [(t.bytes, len(t.loads)) for t in sets] == [(16384, 1), (32768, 1)] and not faults


def test_cluster_arrivals_go_where_multicast_comes_from() -> None:
    program = example("gemm_ws")
    assert multicast_axes(program, "ab_empty") == {0}
    assert [arrival_targets(program, "ab_empty", r) for r in (0, 1)] == [(0, 1), (0, 1)]
    assert arrival_targets(program, "ab_full", 1) == (1,)
    assert [s.op.name for s in guarded_loads(program)["ab_empty"]] == ["tma_load", "tma_load"]


def test_waits_of_two_barriers_on_one_ring_guard_their_own_loads() -> None:
    guards = guarded_loads(example("fmha_fwd"))
    assert {n: [s.op.operands["view"].type.view for s in loads] for n, loads in guards.items()} == {  # type: ignore[union-attr]
        "q_empty": ["smem_q"], "k_empty": ["smem_k"], "v_empty": ["smem_v"],
    }  # fmt: skip


def test_pure_issue_roles() -> None:
    assert issue_roles(example("gemm_ws")) == {"load"}
    assert issue_roles(example("gemm_sm80")) == frozenset()


def test_named_ids_start_behind_the_block_barrier_and_count_turns_twice() -> None:
    ids = {i.name: i for i in named_ids(example("fmha_fwd"))}
    assert (ids["own"].first, ids["own"].ids, ids["own"].threads) == (1, 2, 128)
    assert (ids["turn"].first, ids["turn"].ids, ids["turn"].threads) == (3, 2, 256)


def test_member_arrivals_need_a_barrier_only_where_ordinary_accesses_happen() -> None:
    program = example("kmeans_assign", ('arrive="warp"', 'arrive="member"'))
    assert needs_member_barrier(program, "math")
    assert [i.kind for i in named_ids(program)] == ["turns", "member"]


def test_member_arrivals_after_loads_of_tensor_memory_need_a_barrier_too() -> None:
    text = (EXAMPLES.parents[1] / "bench" / "verify" / "corpus" / "tcgen05_gemm.py").read_text("utf-8")
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    assert needs_member_barrier(program, "epi") and not needs_member_barrier(program, "load") and not needs_member_barrier(program, "mma")


def test_conditions_are_decided_for_a_member_where_constants_allow() -> None:
    zero, index = Expr("const", (), {"value": 0}), Expr("role_index")
    assert for_member(Expr("eq", (index, zero)), 0) is True
    assert for_member(Expr("and", (Expr("eq", (index, zero)), Expr("param", (), {"name": "M"}))), 1) is False
    assert for_member(Expr("param", (), {"name": "M"}), 0) is None
    program = example("kda_inter")
    store = next(s for s in sites(program) if s.op.name == "tma_store")
    assert members_at(program, store) == (0,)
