"""HW094: a CTA touches the shared memory of a peer that has left."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW094"
ASKS = "CTA 1 of a cluster of two leaves at once; CTA 0 then reads, writes, arrives or copies there"
ACTIONS = {
    "nothing": "",
    "read": 'u32 v; asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(far) : "memory"); out[1] = v;',
    "write": 'asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(far), "r"(3u) : "memory");',
    "arrive": 'asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(far) : "memory");',
    "bulk copy": 'asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" :: "r"(far + 1024u), "r"(base + 1024u), "r"(far) : "memory");',
    "multicast": 'mb_init(base, 1u); fence_init(); mb_expect(base, 1024u);'
    ' asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 1024, [%2], %3;"'
    ' :: "r"(base + 1024u), "l"(in), "r"(base), "h"((u16)3) : "memory"); out[1] = mb_wait(base, 0u);',
}  # fmt: skip
CASES = tuple(f"{action}, peer {state}" for action in ACTIONS for state in ("gone", "there"))

SOURCE = "\n".join(
    f"""
KERNEL leave_{i}(u32* out, const u32* in, int stays) {{
  const u32 base = pool();
  if (threadIdx.x == 0) {{ mb_init(base, 1u); fence_init(); }}
  cluster_sync();
  if (rank() == 0 && threadIdx.x == 0) {{
    const u32 far = peer(base, 1u);
    spend(300000ull);
    {body}
    spend(300000ull);
    out[0] = 1u;
  }} else if (stays) spend(1500000ull);
}}"""
    for i, body in enumerate(ACTIONS.values())
)


def answer(bench: Bench, case: str) -> dict[str, Any]:
    action, state = case.split(", peer ")
    out, source = Memory(np.zeros(2, np.uint32)), Memory(np.full(1024, 9, np.uint32))
    bench.run(f"leave_{list(ACTIONS).index(action)}", 2, 32, (out, source, int(state == "there")), smem=8192, cluster=2)
    return {"ends": True, "words": [int(x) for x in out.read()]}
