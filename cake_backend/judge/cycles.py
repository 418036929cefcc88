"""SM cycles of a kernel, from a twin of it: the same text with the clock read at the start of each CTA and at the end of each warp.

Cycles are what the cost model predicts; a time also depends on the clock, which power decides. The twin is another kernel, so its
numbers are kept beside the measured time and never in its place. It holds no value in a register from start to end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cake_backend.judge.building import Built
from cake_backend.judge.protocol import CYCLE_WORDS
from cake_backend.manifest import Manifest, Param
from cake_backend.toolchain import compile_cuda

_SIGNATURE = re.compile(r'^extern "C" __global__ [^\n]*\n\w+\((?P<params>[^\n]*)\) \{\n', re.MULTILINE)
_BEGIN = f"""\
  if (threadIdx.x == 0) {{
    u64 cake_now; u32 cake_sm;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cake_now));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(cake_sm));
    asm volatile("st.global.u64 [%0], %1;" :: "l"(cake_cycles + {CYCLE_WORDS} * (u64)blockIdx.x), "l"(cake_now) : "memory");
    asm volatile("st.global.u32 [%0], %1;" :: "l"(cake_cycles + {CYCLE_WORDS} * (u64)blockIdx.x + 4), "r"(cake_sm) : "memory");
  }}
"""
_END = f"""\
  if ((threadIdx.x & 31u) == 0) {{
    u64 cake_now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cake_now) :: "memory");
    asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" :: "l"(cake_cycles + {CYCLE_WORDS} * (u64)blockIdx.x + 2), "l"(cake_now) : "memory");
  }}
"""


@dataclass(frozen=True, slots=True)
class Twin:
    """Cubins and manifest of the twins of all modules of a candidate."""

    cubins: tuple[bytes, ...]
    manifest: Manifest


def instrumented(text: str) -> str | None:
    """The twin of a lowered kernel's text; None where the text has not the form that lowering gives it.

    Every thread of such a text reaches the last brace: a kernel that returns early has no place to read the clock at.
    """
    found = _SIGNATURE.search(text)
    body = text[found.end() :] if found is not None else ""
    if found is None or _SIGNATURE.search(body) or not body.endswith("\n}\n") or re.search(r"\breturn\b", body):
        return None
    at = found.end("params")
    head = text[:at] + (", " if found["params"] else "") + "u32* cake_cycles" + text[at : found.end()]
    return head + _BEGIN + body[: -len("}\n")] + _END + "}\n"


def twin_of(built: Built, target: str, *, timeout: float) -> Twin | str:
    """The twin of a candidate that was compiled, or why there is none."""
    if built.manifest is None or not built.cubins:
        return "nothing was compiled"
    if built.manifest.counters:
        return "the kernel counts for itself"
    texts = [instrumented(text) for text, _ in built.files]
    cubins: list[bytes] = []
    for text in texts:
        if text is None:
            return "the kernel's text has no place to read the clock at"
        build = compile_cuda(text, target, timeout=timeout)
        if build.cubin is None:
            return f"its twin does not compile: {build.status}"
        cubins.append(build.cubin)
    launches = tuple(replace(x, params=(*x.params, Param("counters"))) for x in built.manifest.launches)
    return Twin(tuple(cubins), replace(built.manifest, launches=launches, counters=CYCLE_WORDS))


def counted(events: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """The record's form of one case's `cycles` events: one entry a launch, in order."""
    kept = ("entry", "blocks", "sms", "slowest_block", "median_block", "slowest_sm")
    return [{"label": "measured", **{k: e[k] for k in kept}} for e in events]
