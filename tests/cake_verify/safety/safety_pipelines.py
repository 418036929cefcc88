"""Random pipelines that are right by construction, as texts, with the lines whose loss breaks them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st


@dataclass
class Pipeline:
    """A schedule's text, and the lines (by their text) that it cannot do without."""

    text: str
    needed: list[str] = field(default_factory=list)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """One load role and one or two math members over a ring of 2 to 5 slots, with one or two full barriers, a release that lags or does
    not, an arrival of any kind, a tile loop or none, and an epilogue from registers or through shared memory."""
    stages = draw(st.integers(2, 5))
    members = draw(st.sampled_from([1, 2]))
    split = draw(st.booleans())
    lag = draw(st.booleans())
    kind = draw(st.sampled_from(["warp", "member", "thread"]))
    tiled = draw(st.booleans())
    through = draw(st.booleans())
    rows = 64 * members
    a_bytes, b_bytes = stages * rows * 128, stages * 128 * 128
    lines = [
        '@cake.schedule(target="sm_90a")',
        "def pipe(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.tma2d[LM.bf16], D: LM.gmem2d[LM.f32], M: LM.i32, K: LM.i32):",
        f'    lm.launch(grid="{"persistent" if tiled else "tiles"}")',
        "    lm.assume(K > 0)",
        f"    pool = lm.smem({a_bytes + b_bytes + rows * 256})",
        f'    a = pool.view(offset=0, shape=({rows}, 64), dtype=lm.bf16, stage={stages}, swizzle="128b")',
        f'    b = pool.view(offset={a_bytes}, shape=(128, 64), dtype=lm.bf16, stage={stages}, swizzle="128b")',
        f'    c = pool.view(offset={a_bytes + b_bytes}, shape=({rows}, 128), dtype=lm.bf16, swizzle="128b")',
        f"    math = lm.role(warps=range(0, {4 * members}), members={members})",
        f"    load = lm.role(warps=range({4 * members}, {4 * members + 4}))",
        f"    ring = lm.pipeline(stages={stages})",
        '    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")',
        *(['    full_b = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")'] if split else []),
        f'    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="{kind}", primed=True)',
        "    own = lm.named_barrier(math, per_member=True)",
        *(['    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128),), names=("m",))'] if tiled else []),
        "    kt = lm.cdiv(K, 64)",
    ]
    needed = []

    def put(depth: int, text: str, need: bool = False) -> None:
        lines.append("    " * depth + text)
        if need:
            needed.append("    " * depth + text)

    at = 3 if tiled else 2
    row = "t.m * 128" if tiled else "0"
    lines.append("    with load:")
    if tiled:
        put(2, "for t in lm.tiles(sched):")
    put(at, "for k in lm.range(kt):")
    put(at + 1, "s = lm.step(ring)")
    put(at + 1, "lm.wait(empty, stage=s)", True)
    put(at + 1, f"a.tma_load(A, coords=(k * 64, {row}), stage=s, barrier=full)", True)
    put(at + 1, f"b.tma_load(B, coords=(k * 64, 0), stage=s, barrier={'full_b' if split else 'full'})", True)
    lines.append("    with math:")
    put(2, 'acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")')
    if tiled:
        put(2, "for t in lm.tiles(sched):")
    put(at, "for k in lm.range(kt):")
    put(at + 1, "s = lm.step(ring)")
    put(at + 1, "lm.wait(full, stage=s)", True)
    if split:
        put(at + 1, "lm.wait(full_b, stage=s)", True)
    put(at + 1, "lm.mma(acc, a[s].rows(64 * math.index, 64), b[s], init=(k == 0))", True)
    if lag:
        put(at + 1, "lm.mma_wait(pending=1)", True)
        put(at + 1, "if k > 0:")
        put(at + 2, "lm.arrive(empty, stage=s.prev())", True)
        put(at, "lm.mma_wait(pending=0)", True)
        put(at, "lm.arrive(empty, stage=lm.at(ring))", tiled)
    else:
        put(at + 1, "lm.mma_wait(pending=0)", True)
        put(at + 1, "lm.arrive(empty, stage=s)", True)
    if through:
        put(at, "lm.store_wait(pending=0)", tiled)
        put(at, "lm.sync(own)  # the last store has read its source", tiled)
        put(at, "part = c.rows(64 * math.index, 64)")
        put(at, "part.store(lm.cast(acc, lm.bf16))", True)
        put(at, "lm.fence_proxy()", True)
        put(at, "lm.sync(own)  # everybody has written and fenced", True)
        put(at, f"part.tma_store(C, coords=(0, {row} + 64 * math.index))", True)
        put(2, "lm.store_wait(pending=0)  # before the end", True)
    else:
        put(at, f"lm.store(D, acc, coords=(0, {row} + 64 * math.index))")
    return Pipeline("\n".join(lines) + "\n", needed)
