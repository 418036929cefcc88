"""Reports that stuck waits leave behind: what they hold, and who is to blame.

A wait that does not end writes one 64-byte record into host memory that the device can reach, at slot (CTA, warp); the memory
outlives the trap that follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MAGIC = 0xCA4E0001
WORDS = 16
FIELDS = ("role", "barrier", "stage", "parity", "iteration", "tile", "block", "thread")
MAX_BYTES = 256 * 2**20


def buffer_bytes(launches: Sequence[tuple[int, int]]) -> int:
    """Bytes that hold every record of the launches, given as (CTAs, threads a CTA); 0 where that would be unreasonably much.

    A launch without CTAs takes the room of one, so that there is an address to pass.
    """
    need = max((max(ctas, 1) * -(-block // 32) * WORDS * 4 for ctas, block in launches), default=0)
    return need if need <= MAX_BYTES else 0


@dataclass(frozen=True, slots=True)
class HangRecord:
    """One warp's last wait: what it waited for, in which pass, and where it ran."""

    role: int
    barrier: int
    stage: int
    parity: int
    iteration: int
    tile: int
    block: int
    thread: int


def read_records(raw: bytes | bytearray | memoryview) -> list[HangRecord]:
    """All complete records of a buffer, in slot order."""
    usable = len(raw) // (WORDS * 4) * WORDS * 4
    words = np.frombuffer(raw, np.uint32, count=usable // 4).reshape(-1, WORDS)
    return [HangRecord(*(int(w) for w in row[1 : 1 + len(FIELDS)])) for row in words[words[:, 0] == MAGIC]]


def read_regions(raw: bytes, launches: int) -> tuple[int, list[HangRecord]]:
    """(launch, its records): a plan's launches report into equal regions, and the first that holds a record is the one that hangs."""
    size = len(raw) // max(1, launches)
    for launch in range(launches):
        if found := read_records(raw[launch * size : (launch + 1) * size]):
            return launch, found
    return 0, []


def summarise(records: Sequence[HangRecord], roles: Sequence[str] = (), barriers: Sequence[str] = ()) -> dict[str, Any]:
    """Records in the author's names: who waited for what how often, and one sentence on where to look.

    `roles` and `barriers` are the schedule's declarations in order, as lowering numbers them.
    """

    def role(i: int) -> str:
        return roles[i] if i < len(roles) else f"role {i}"

    def barrier(i: int) -> str:
        return barriers[i] if i < len(barriers) else f"barrier {i}"

    groups = Counter((r.role, r.barrier, r.stage, r.parity, r.iteration) for r in records)
    waits = [
        {
            "role": role(key[0]), "barrier": barrier(key[1]), "stage": key[2], "parity": key[3], "iteration": key[4], "warps": count,
            "blocks": sorted({r.block for r in records if (r.role, r.barrier, r.stage, r.parity, r.iteration) == key})[:8],
        }
        for key, count in sorted(groups.items(), key=lambda kv: (-kv[1], kv[0]))[:32]
    ]  # fmt: skip
    return {
        "records": len(records),
        "blocks": len({r.block for r in records}),
        "waits": waits,
        "sentence": _sentence(waits),
    }


def _sentence(waits: Sequence[dict[str, Any]]) -> str:
    if not waits:
        return "no wait was reported"
    told = [f"`{w['role']}` waits for `{w['barrier']}[{w['stage']}]` (parity {w['parity']}, position {w['iteration']})" for w in waits[:4]]
    return "; ".join(dict.fromkeys(told))
