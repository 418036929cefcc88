"""Arguments are taken in the blocks in which counts take them, through assumptions that tie one argument to another."""

from __future__ import annotations

import pytest
import safety_schedules as schedules

from cake_verify.analyses.settings import Settings
from cake_verify.rules.examples import LOOP, edit

TIES = {
    "K = 128 KB": "KB * 128 == K", "turned round": "K == KB * 128", "rounded up": "KB == lm.cdiv(K, 128)", "rounded down": "K % 128 == 0 and KB == K // 128",
    "apart": "KB > 0", "with a multiple": "KB * 128 == K and KB % 8 == 0",
}  # fmt: skip
COUNTS = (
    "lm.cdiv(KB, 8)", "lm.cdiv(KB, 7)", "lm.cdiv(KB, 64)", "KB // 8", "lm.cdiv(KB + 5, 8)", "lm.cdiv(lm.cdiv(KB, 8), 4)", "lm.cdiv(lm.cdiv(K, 128), 8)",
    "lm.cdiv(K, 2048)", "lm.min(lm.cdiv(KB, 8), 100)",
)  # fmt: skip


def text(tie: str, count: str) -> str:
    return edit(LOOP, ("K: LM.i32)", "K: LM.i32, KB: LM.i32)"), ("lm.assume(K > 0)", f"lm.assume(K > 0 and {tie})"), ("kt = lm.cdiv(K, 64)", f"kt = {count}"))


@pytest.mark.parametrize("tie", TIES.values(), ids=TIES)
@pytest.mark.parametrize("count", COUNTS)
def test_a_count_of_blocks_of_blocks_reaches_every_window(tie: str, count: str) -> None:
    search = Settings(schedules.program(text(tie, count)))
    settings, lost = search.find()
    assert not lost and max(max(s.trips) for s in settings) >= 2 * search.stages + 1


@pytest.mark.parametrize(("split", "members"), [(2, 4), (4, 2), (8, 1), (4, 4), (8, 2)])
def test_any_way_to_share_eight_or_sixteen_parts_of_k_is_decided(split: int, members: int) -> None:
    found = text("KB * 128 == K", "lm.cdiv(KB, SPLIT * MEMBERS)").replace("*, BN=128", f"*, SPLIT={split}, MEMBERS={members}, BN=128")
    if "SPLIT=" not in found:
        found = found.replace("KB: LM.i32)", f"KB: LM.i32, *, SPLIT={split}, MEMBERS={members})")
    result = schedules.verdict(found)
    assert not result.undecided and not result.faults
