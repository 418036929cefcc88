"""Random delays and short time limits, put into the generated text of a kernel for the experiment on silicon.

The lowering does not know of them: its text is changed afterwards, here, and no tool calls this. In front of and behind every wait, every
arrival and every named barrier a warp sleeps for a pseudo-random time that depends on the run's seed, the CTA, the warp, the place and
the clock; in front of accesses to memory and of copies it does so now and then. A wait gives up after `WAIT_NANOSECONDS` instead of a number of polls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bench.verify.silicon_inside import definitions, disturbed

WAIT_NANOSECONDS = 400_000_000
"""How long a wait lasts before it traps: several processes share the GPU in slices, so that a wait of 20 ms may be a proper one."""

SEED = "cake_seed"
"""The constant that a run sets, of two words: the first is 0 for a run without delays, the second switches other disturbances on (`silicon_inside`)."""

CALLS = re.compile(r"\b(?:mbarrier_wait\w*|mbarrier_arrive\w*|mbarrier_expect_tx|cp_async_arrive|named_sync|named_arrive|cluster_sync|bulk_wait\w*|flag_signal|flag_spin)\b")
ACCESSES = re.compile(
    r"\b(?:(?:load|store)_(?:shared|global)\w*|stmatrix\w*|ldmatrix\w*|tma_(?:load|store|reduce)\w*|bulk_commit|cp_async_copy\w*|wgmma_fence|fence_proxy_async)\b"
)
_KERNEL = 'extern "C" __global__'
_POLLS = re.compile(
    r"(?P<first>  if \(!?(?P<test>mbarrier_try\w*)\(bar, parity\)\) return;\n)  asm volatile\(\"\{ \.reg \.pred p, q;[^\n]*\n[^\n]*AGAIN:[^\n]*DONE: \}\"\n[^\n]*\n"
)
"""A wait for a barrier tries once and then polls in one asm statement."""
_SPINS = re.compile(r"  u32 polls = 0;\n(?P<loop>  int seen;\n(?:  #pragma unroll 1\n)?  do \{\n[^\n]*\n    if \(seen < value && )\+\+polls == 0x[0-9a-f]+u(?P<trap>\) [^\n]*\n)")
"""A wait for a flag looks at the word first and then counts."""

# A seed picks a pace for every warp or warpgroup of every CTA (undisturbed, short, long, long bursts), so that whole roles lag behind.
NOW = """
DEVICE u64 cake_now() { u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }
"""
DELAY = f"""{NOW}extern "C" {{ __constant__ u32 {SEED}[2]; }}
DEVICE u32 cake_mix(u32 x) {{ x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ x >> 16; }}
DEVICE void cake_delay(u32 site) {{
  const u32 seed = {SEED}[0], warp = threadIdx.x >> 5;
  if (seed == 0u) return;  // a sleep of nothing takes its time too, in which what is in flight ends
  u32 clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
  const u32 pace = cake_mix(seed * 0x9e3779b1u + blockIdx.x * 0x85ebca77u + ((seed & 1u) ? warp : warp >> 2)) & 3u;
  const u32 draw = cake_mix((seed + site * 0xc2b2ae3du) ^ (blockIdx.x << 8) ^ (warp << 20) ^ (clock >> 5));
  const u32 burst = (draw >> 28) < 4u ? draw & 16383u : 0u;
  const u32 sleep = pace == 0u ? 0u : pace == 1u ? draw & 511u : pace == 2u ? draw & 4095u : burst;
  asm volatile("nanosleep.u32 %0;" :: "r"(sleep) : "memory");
}}
DEVICE void cake_stall(u32 site) {{
  u32 clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
  if ({SEED}[0] != 0u && (cake_mix(clock ^ (site << 24) ^ (threadIdx.x >> 5 << 16)) & 7u) == 0u) cake_delay(site);
}}
"""


@dataclass(frozen=True)
class Delayed:
    """The changed text, with how many places got a delay, how many kinds of waits a time limit, and how many accesses may stall."""

    text: str
    sites: int
    bounded: int
    stalls: int


def delayed(text: str, boxes: Mapping[str, int] | None = None, room: bool = True, crowd: bool = False) -> Delayed:
    """Text of the lowering with delays and short waits; raises `ValueError` where the text has another form than this file knows.

    With the bytes of each tensor map's box, the text gets the other disturbances too; `room` says that there is shared memory left for them,
    `crowd` that products are to be put in front of its own.
    """
    head, kernel, body = text.partition(_KERNEL)
    if not kernel or head.count(_KERNEL):
        raise ValueError("no kernel in the text")
    if boxes is not None:
        head, body = disturbed(head, body, boxes, crowd)
    head, bounded = _bounded(head, DELAY if boxes is None else DELAY + definitions(f"{SEED}[1]", room), WAIT_NANOSECONDS)
    out: list[str] = []
    sites = stalls = 0
    for line in (kernel + body).split("\n"):
        code = line.partition("//")[0].strip()
        pragma = [out.pop()] if out and out[-1].strip().startswith("#pragma") else []  # it belongs to the loop that follows
        before = next((x.partition("//")[0].strip() for x in reversed(out) if x.strip()), "")
        loop = code.startswith("for (") and code.endswith("}") and code.count("{") == code.count("}")  # with its body behind it
        whole = (code.endswith(";") or loop) and before.endswith(("{", "}", ";"))
        if not CALLS.search(code):
            if whole and ACCESSES.search(code) and not ACCESSES.search(before):
                out.append(f"{line[: len(line) - len(line.lstrip())]}cake_stall({stalls}u);")
                stalls += 1
            out += [*pragma, line]
            continue
        if not whole:
            raise ValueError(f"expected a statement on a line of its own, found {code!r} after {before!r}")
        pad = line[: len(line) - len(line.lstrip())]
        out += [f"{pad}cake_delay({sites}u);", *pragma, line, f"{pad}cake_delay({sites + 1}u);"]
        sites += 2
    return Delayed(head + "\n".join(out), sites, bounded, stalls)


def bounded(text: str, nanoseconds: int) -> str:
    """Text of the lowering with a time limit for every wait and nothing else."""
    head, kernel, body = text.partition(_KERNEL)
    return _bounded(head, NOW, nanoseconds)[0] + kernel + body


def _bounded(head: str, added: str, nanoseconds: int) -> tuple[str, int]:
    types_end = _after_types(head)
    loop = f'    if (cake_now() - start > {nanoseconds}ull) {{ asm volatile("trap;"); __builtin_unreachable(); }}\n'
    head, count = _POLLS.subn(
        lambda m: f"{m['first']}  const u64 start = cake_now();\n  while (!{m['test']}(bar, parity))\n{loop}", head[:types_end] + added + head[types_end:]
    )
    head, spins = _SPINS.subn(rf"  const u64 start = cake_now();\n\g<loop>cake_now() - start > {nanoseconds}ull\g<trap>", head)
    if "polls" in head or "AGAIN" in head:
        raise ValueError("a wait of another form")
    return head, count + spins


def _after_types(head: str) -> int:
    """Where the text's own type definitions end."""
    at = head.rfind("#define DEVICE")
    if at < 0:
        raise ValueError("no definition of DEVICE in the text")
    return head.index("\n", at) + 1
