"""HW073 to HW075: counts, ids and participants of named barriers that no assembler checks."""

from __future__ import annotations

from typing import Any

from bench.hardware.device import Bench, Hanging, HostWords

CONTRACT = "HW073, HW074, HW075"
ASKS = "barrier.sync and barrier.arrive with the wrong count, id or participants"

# `flags` lies in host memory: words 0.. say which warps (or half warps) came out, so that a hang can be described.
BODIES = {
    "right": (64, "sync(1, 64);"),
    "count 0": (64, "sync(1, 0);"),
    "count 48": (64, "sync(1, 48);"),
    "count above the block": (64, "sync(1, 96);"),
    "count 1056": (64, "sync(1, 1056);"),
    "id 16": (64, "sync(16, 64);"),
    "id 17": (64, "sync(17, 64);"),
    "a warp too few": (64, "if (warp == 0) sync(1, 64);"),
    "a warp too many": (96, "sync(1, 64);"),
    "counts disagree, 64 then 96": (96, "if (warp) spend(2000000ull); sync(1, warp ? 96 : 64);"),
    "counts disagree, 96 then 64": (96, "if (warp) spend(2000000ull); sync(1, warp ? 64 : 96);"),
    "half a warp": (64, "if (warp || lane < 16) sync(1, 64);"),
    "halves of a warp at two places": (32, "if (lane < 16) { sync(1, 32); flags[8] = 1; } else { spend(2000000ull); sync(1, 32); flags[9] = 1; }"),
    "barrier 0 after other warps left": (96, 'if (warp) return; asm volatile("barrier.sync 0;" ::: "memory");'),
    "barrier 0 in one role of two": (64, 'if (warp) spend(2000000ull); else asm volatile("barrier.sync 0;" ::: "memory");'),
    "bar.sync under a lane's branch": (32, 'if (lane & 1) asm volatile("bar.sync 1, 32;" ::: "memory"); else asm volatile("bar.sync 2, 32;" ::: "memory");'),
    "producer arrives twice, consumer late": (64, "if (warp == 0) { arrive(1, 64); arrive(1, 64); flags[8] = 1; } else { spend(2000000ull); sync(1, 64); }"),
    "producer arrives twice, consumer syncs twice, late": (
        64, "if (warp == 0) { arrive(1, 64); arrive(1, 64); flags[8] = 1; } else { spend(2000000ull); sync(1, 64); sync(1, 64); }",
    ),
    "one id, back to back": (64, "for (int i = 0; i < 1000; ++i) sync(1, 64);"),
    "one id, producer runs ahead": (64, "for (int i = 0; i < 3; ++i) if (warp == 0) arrive(1, 64); else { spend(500000ull); sync(1, 64); }"),
    "arrive counted as sync": (64, "if (warp == 0) arrive(1, 64); else sync(1, 64);"),
}  # fmt: skip
CASES = tuple(BODIES)

SOURCE = "\n".join(
    f"""
KERNEL case_{i}(volatile u32* flags) {{
  const u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31u;
  {body}
  if (lane == 0) flags[warp] = 1u;
  if (lane == 16) flags[4u + warp] = 1u;
  __threadfence_system();
}}"""
    for i, (_, body) in enumerate(BODIES.values())
)


def answer(bench: Bench, case: str) -> dict[str, Any]:
    flags = HostWords(16)
    threads = BODIES[case][0]
    ended = True
    try:
        bench.run(f"case_{CASES.index(case)}", 1, threads, (flags,))
    except Hanging:
        ended = False
    words = flags.read()
    warps = threads // 32
    return {"ends": ended, "warps_out": words[:warps], "upper_halves_out": words[4 : 4 + warps], "marks": words[8:10]}
