"""Arms that memory decides about, by members and rounds: what stands in them is walked, or the verdict says that it was not."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text
from cake_verify.verdict import Verdict

NAME = "nsa_by_warps"
GUARD = "if blk >= 0 and blk * BLK <= tok:"


def without(*lines: str, guard: str = GUARD) -> Verdict:
    text = CASES[NAME].text()
    for line in lines:
        assert text.count(line) == 1, line
        text = text.replace(line, "")
    assert text.count(GUARD) == 1
    return verdict_of(text.replace(GUARD, guard), NAME)[0]


def test_blocks_that_a_list_selects_are_walked_though_each_member_compares_with_its_own_token() -> None:
    assert without().verdict == "pass"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("                        lm.cp_wait(pending=0)\n", "S004"),
        ("                        k_tile.cp_async(K, coords=(0, blk * BLK, t.h))\n", "S027"),
        ("                        o = o * fix\n", "D041"),
    ],
)
def test_what_is_left_out_of_such_an_arm_is_missed(line: str, code: str) -> None:
    assert [e.code for e in without(line).errors] == [code]


FAR = "if blk > 0 and blk * BLK <= tok:"
"""Only tokens behind the first block come to this arm: a token of a far tile."""


def test_an_arm_that_the_first_tiles_never_take_is_walked_at_a_later_one() -> None:
    assert without(guard=FAR).verdict == "pass"
    assert [e.code for e in without("                        lm.cp_wait(pending=0)\n", guard=FAR).errors] == ["S004"]


def test_an_arm_that_no_tile_takes_stays_undecided() -> None:
    assert without(guard="if blk > 0 and blk * BLK < 0:").verdict == "undecided"


ROUNDS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def listed(lm, X: LM.gmem2d[LM.f32, "ROWS", 128], sel: LM.gmem1d[LM.i32, "N"], Y: LM.gmem2d[LM.f32, "N", 128], ROWS: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(sel, 0, ROWS)
    pool = lm.smem(128 * 4)
    row = pool.view(offset=0, shape=(1, 128), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(N,), names=("n",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(1, 128), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(N):
                at = lm.ld(sel, i)
                if CONDITION:
                    row.cp_async(X, coords=(0, at))
                    lm.cp_commit()
                    lm.cp_wait(pending=0)
                    lm.sync(meet)
                    total = total + row.load(form="vec", like=total)
                    lm.sync(meet)
            lm.store(Y, total, coords=(0, t.n))
'''


def rounds(condition: str, without: str = "") -> Verdict:
    assert without in ROUNDS
    return verify_text(ROUNDS.replace("CONDITION", condition).replace(without, "", 1) if without else ROUNDS.replace("CONDITION", condition))


@pytest.mark.parametrize("condition", ["at >= i", "at * 2 > i", "at > 100 + i"])
def test_an_arm_by_a_number_that_was_read_and_the_round(condition: str) -> None:
    assert rounds(condition).verdict == "pass"
    assert rounds(condition, "                    lm.cp_wait(pending=0)\n").verdict == "fail"


def test_an_arm_that_no_run_takes_is_said() -> None:
    never = rounds("at < 0 and i >= 0")
    assert never.verdict == "undecided"
    (note,) = [d for d in never.diagnostics if d.code == "S090"]
    assert note.message == "not decided: no run comes to `row.cp_async`, which stands under a condition"
    assert never.lines[note.span.line - 1].strip() == "if at < 0 and i >= 0:"


def test_a_role_that_takes_another_arm_goes_round_another_number_of_times() -> None:
    text = CASES["mlp_one_launch"].text()
    load, math = "            if t.n < ht:\n                for k", "trips = lm.cdiv(K, BK) if t.n < ht else H // BK"
    for wrong in (text.replace(load, load.replace("<", "<=")), text.replace(math, math.replace("<", "<="))):
        assert wrong != text
        verdict = verdict_of(wrong, "mlp_one_launch")[0]
        assert verdict.errors and "step the ring of `" in verdict.errors[0].message and "by different counts" in verdict.errors[0].message


PREFILL = CASES["prefill_paged_loaders"].text()
ROLES = PREFILL.split("if t.m * 128 < fresh:")


@pytest.mark.parametrize("role", [0, 1, 2])
@pytest.mark.parametrize("guard", ["if True:", "if t.m * 128 <= fresh:"])
def test_a_tile_that_one_role_takes_and_its_partners_leave_out_is_walked_with_rounds_in_it(role: int, guard: str) -> None:
    assert len(ROLES) == 4
    text = "if t.m * 128 < fresh:".join(ROLES[: role + 1]) + guard + "if t.m * 128 < fresh:".join(ROLES[role + 1 :])
    verdict = verify_text(text, suggest=False)
    assert [e.code for e in verdict.errors] == ["Q002"]
