"""Pipelines over groups of rows whose lengths are read from memory, correct by construction: sums of rows, and grouped products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.verify.cases.case import Case, Filled, empty, f64, normal, offsets

BN, BK = 64, 64


@dataclass(frozen=True)
class Lengths:
    """One pipeline: C[r] = A[r] B[g]^T for the rows of each group. `looped` walks the groups' own row tiles in a loop of each tile (a group
    and a column tile), else the scheduler hands them out; `lag` as in `generate.Shape`."""

    stages: int = 2
    lag: int = 0
    members: int = 1
    arrive: str = "member"
    slots: int = 1
    looped: bool = False
    split: bool = False

    @property
    def sound(self) -> bool:
        """Whether the choices fit together."""
        return self.lag < self.stages and 8 * self.members * self.stages + 8 * self.stages + 8 * self.members * self.slots <= 200

    @property
    def rows(self) -> int:
        return 64 * self.members


def text(s: Lengths) -> str:
    """The schedule."""
    a, b, c = s.rows * BK * 2, BN * BK * 2, s.rows * BN * 2
    stage, slots = (f", stage={n}" if n > 1 else "" for n in (s.stages, s.slots))
    warps = 4 * s.members
    tiles = f'kind="static", tiles=(G, lm.cdiv(N, {BN})), names=("g", "n")' if s.looped else f'kind="grouped", tiles=(lm.cdiv(N, {BN}),), offsets=OFFS, block={s.rows}'
    lines = [
        '@cake.schedule(target="sm_90a")',
        'def lengths(lm, A: LM.tma2d[LM.bf16, "T", "K"], B: LM.tma3d[LM.bf16, "G", "N", "K"], C: LM.tma2d[LM.bf16, "T", "N"],',
        '            OFFS: LM.gmem1d[LM.i32, "G1"].const, T: LM.i32, G: LM.i32, G1: LM.i32, N: LM.i32, K: LM.i32):',
        '    lm.launch(grid="persistent")',
        "    lm.assume(K > 0 and G > 0 and G1 == G + 1)",
        "    lm.assume(K % 8 == 0 and N % 8 == 0)",
        "    lm.assume_values(OFFS, 0, T + 1, sorted=True)",
        f"    pool = lm.smem({s.stages * (a + b) + s.slots * c})",
        f'    sa = pool.view(offset=0, shape=({s.rows}, {BK}), dtype=lm.bf16{stage}, swizzle="128b")',
        f'    sb = pool.view(offset={s.stages * a}, shape=({BN}, {BK}), dtype=lm.bf16{stage}, swizzle="128b")',
        f'    sc = pool.view(offset={s.stages * (a + b)}, shape=({s.rows}, {BN}), dtype=lm.bf16{slots}, swizzle="128b")',
        f"    math = lm.role(warps=range(0, {warps}), regs=160{f', members={s.members}' if s.members > 1 else ''})",
        f"    load = lm.role(warps=range({warps}, {warps + 4}), regs=40)",
        f"    ring = lm.pipeline(stages={s.stages})",
        '    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")',
        *(['    b_full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")'] if s.split else []),
        f'    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="{s.arrive}", primed=True)',
        f"    out = lm.pipeline(stages={s.slots})",
        f"    meet = lm.named_barrier(math{', per_member=True' if s.members > 1 else ''})",
        f"    sched = lm.scheduler({tiles})",
        f"    kt = lm.cdiv(K, {BK})",
        *_load(s), *_math(s),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _loops(s: Lengths) -> tuple[list[str], str, str, str]:
    """The loops around a row tile, its first row, its group, and the indentation inside."""
    if not s.looped:
        return ["        for t in lm.tiles(sched):"], "t.row0", "t.group", " " * 12
    return [
        "        for t in lm.tiles(sched):",
        "            lo = lm.ld(OFFS, t.g)",
        "            hi = lm.ld(OFFS, t.g + 1)",
        f"            for i in lm.range(lm.cdiv(hi - lo, {s.rows})):",
    ], f"lo + i * {s.rows}", "t.g", " " * 16  # fmt: skip


def _load(s: Lengths) -> list[str]:
    head, row, group, pad = _loops(s)
    inner = pad + "    "
    return [
        "    with load:", *head, f"{pad}for k in lm.range(kt):", f"{inner}s = lm.step(ring)", f"{inner}lm.wait(empty, stage=s)",
        f"{inner}sa.tma_load(A, coords=(k * {BK}, {row}), stage=s, barrier=full)",
        f"{inner}sb.tma_load(B, coords=(k * {BK}, t.n * {BN}, {group}), stage=s, barrier={'b_full' if s.split else 'full'})",
    ]  # fmt: skip


def _math(s: Lengths) -> list[str]:
    head, row, _, pad = _loops(s)
    inner = pad + "    "
    index = "64 * math.index" if s.members > 1 else "0"
    a = "sa[s]" if s.stages > 1 else "sa"
    b = "sb[s]" if s.stages > 1 else "sb"
    c = "sc[o]" if s.slots > 1 else "sc"
    part, mine = (f"{x}.rows({index}, 64)" if s.members > 1 else x for x in (a, c))
    left = f"hi - lo - i * {s.rows}" if s.looped else "t.rows"
    mid = f" - {index}" if s.members > 1 else ""
    out = [
        "    with math:", f'        acc = lm.frag(shape=(64, {BN}), dtype=lm.f32, form="acc")', *head, f"{pad}for k in lm.range(kt):", f"{inner}s = lm.step(ring)",
        f"{inner}lm.wait(full, stage=s)", *([f"{inner}lm.wait(b_full, stage=s)"] if s.split else []),
        f"{inner}lm.mma(acc, {part}, {b}, init=(k == 0))", f"{inner}lm.mma_wait(pending={s.lag})",
    ]  # fmt: skip
    out += [f"{inner}lm.arrive(empty, stage=s)"] if s.lag == 0 else [f"{inner}if k >= {s.lag}:", f"{inner}    lm.arrive(empty, stage=s.prev({s.lag}))"]
    if s.lag:
        out.append(f"{pad}lm.mma_wait(pending=0)")
        for back in range(s.lag - 1, 0, -1):
            out += [f"{pad}if kt > {back}:", f"{pad}    lm.arrive(empty, stage=lm.at(ring).prev({back}))"]
        out.append(f"{pad}lm.arrive(empty, stage=lm.at(ring))")
    return [  # a member without rows stages nothing: the stores that a wait counts are those of its own tiles
        *out, f"{pad}rows = lm.min(64, {left}{mid})", f"{pad}if rows > 0:", f"{inner}o = lm.step(out)", f"{inner}lm.store_wait(pending={s.slots - 1})", f"{inner}lm.sync(meet)",
        f"{inner}{mine}.store(lm.cast(acc, lm.bf16))", f"{inner}lm.fence_proxy()", f"{inner}lm.sync(meet)",
        f"{inner}{mine}.tma_store(C, coords=(t.n * {BN}, {row}{f' + {index}' if s.members > 1 else ''}), rows=rows)", "        lm.store_wait(pending=0)",
    ]  # fmt: skip


@dataclass(frozen=True)
class GeneratedLengths(Case):
    """A case whose text is generated."""

    shape: Lengths = Lengths()

    def text(self) -> str:
        return text(self.shape)


def case(s: Lengths, name: str = "generated") -> GeneratedLengths:
    """The pipeline with groups of many, no and one row, of exactly a tile, and a single group."""
    long = BK * (s.stages + s.lag + 1) + 8
    settings = (
        {"lengths": (s.rows + 9, 0, 1, s.rows), "N": 40, "K": long}, {"lengths": (1, 3, s.rows - 1), "N": 72, "K": BK}, {"lengths": (2 * s.rows + 1,), "N": 40, "K": 136},
    )  # fmt: skip

    def fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
        offs = offsets(x["lengths"])
        t, g = int(offs[-1]), len(x["lengths"])
        a, b = normal(rng, t, x["K"]), normal(rng, g, x["N"], x["K"])
        want = np.concatenate([f64(a[offs[i] : offs[i + 1]]) @ f64(b[i]).T for i in range(g)])
        scalars = {"T": t, "G": g, "G1": g + 1, "N": x["N"], "K": x["K"]}
        return Filled({"A": a, "B": b, "C": empty(t, x["N"]), "OFFS": offs}, scalars, {"C": want})

    return GeneratedLengths(name, "generated.py", settings, fill, ctas=1, shape=s)
