"""Pipelines that leave out tiles and rounds where numbers in memory say so, correct by construction: sparse products, with or without a role that stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, Case, Filled, f64, normal

BN, BK = 64, 64


@dataclass(frozen=True)
class Branches:
    """One pipeline: C = A B^T of the blocks of K that `MASK` marks (`rounds`), for the tiles of rows below `COUNT` of their columns (`tiles`).
    `outs` slots lead to a role that stores, which frees a slot at once or (`late`) one tile later, counting them; 0: registers are stored."""

    stages: int = 2
    members: int = 1
    arrive: str = "member"
    tiles: bool = True
    rounds: bool = False
    outs: int = 0
    late: bool = False
    persistent: bool = True

    @property
    def sound(self) -> bool:
        """Whether the choices fit together."""
        return (self.tiles or self.rounds) and (not self.late or self.outs > 1)

    @property
    def rows(self) -> int:
        return 64 * self.members


def text(s: Branches) -> str:
    """The schedule."""
    a, b, c = s.rows * BK * 2, BN * BK * 2, s.rows * BN * 2
    stage, outs = (f", stage={n}" if n > 1 else "" for n in (s.stages, s.outs))
    lines = [
        '@cake.schedule(target="sm_90a")',
        'def branches(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"], COUNT: LM.gmem1d[LM.i32, "NT"].const,'
        if s.outs else
        'def branches(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"], COUNT: LM.gmem1d[LM.i32, "NT"].const,',
        '             MASK: LM.gmem1d[LM.i32, "MK"].const, M: LM.i32, N: LM.i32, K: LM.i32, NT: LM.i32, MK: LM.i32):',
        f'    lm.launch(grid="{"persistent" if s.persistent else "tiles"}")',
        f"    lm.assume(K > 0 and NT == lm.cdiv(N, {BN}) and MK == lm.cdiv(M, {s.rows}) * lm.cdiv(K, {BK}))",
        "    lm.assume(K % 8 == 0 and N % 8 == 0)",
        "    lm.assume_values(COUNT, 0, M + 1)",
        "    lm.assume_values(MASK, 0, 2)",
        f"    pool = lm.smem({s.stages * (a + b) + s.outs * c})",
        f'    sa = pool.view(offset=0, shape=({s.rows}, {BK}), dtype=lm.bf16{stage}, swizzle="128b")',
        f'    sb = pool.view(offset={s.stages * a}, shape=({BN}, {BK}), dtype=lm.bf16{stage}, swizzle="128b")',
        *([f'    sc = pool.view(offset={s.stages * (a + b)}, shape=({s.rows}, {BN}), dtype=lm.bf16{outs}, swizzle="128b")'] if s.outs else []),
        "    load = lm.role(warps=range(0, 1))",
        *(["    store = lm.role(warps=range(1, 2))"] if s.outs else []),
        f"    math = lm.role(warps=range(4, {4 + 4 * s.members}){f', members={s.members}' if s.members > 1 else ''})",
        f"    ring = lm.pipeline(stages={s.stages})",
        '    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")',
        f'    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="{s.arrive}", primed=True)',
        *([
            f"    out = lm.pipeline(stages={s.outs})", '    ready = lm.barrier(pipeline=out, prod=[math], cons=[store], arrive="warp")',
            '    free = lm.barrier(pipeline=out, prod=[store], cons=[math], arrive="warp", primed=True)',
        ] if s.outs else []),
        f'    sched = lm.scheduler(kind="{"static" if s.persistent else "grid"}", tiles=(lm.cdiv(M, {s.rows}), lm.cdiv(N, {BN})))',
        f"    kt = lm.cdiv(K, {BK})",
        *_load(s), *_math(s), *(_store(s) if s.outs else []),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _tile(s: Branches) -> tuple[list[str], str]:
    """The loop over tiles with its condition, and the indentation inside."""
    head = ["        for t in lm.tiles(sched):"]
    return ([*head, f"            if t.m * {s.rows} < lm.ld(COUNT, t.n):"], " " * 16) if s.tiles else (head, " " * 12)


def _round(s: Branches, pad: str) -> tuple[list[str], str]:
    """The loop along K with its condition, and the indentation inside."""
    head = [f"{pad}for k in lm.range(kt):"]
    return ([*head, f"{pad}    if lm.ld(MASK, t.m * kt + k) > 0:"], pad + " " * 8) if s.rounds else (head, pad + " " * 4)


def _load(s: Branches) -> list[str]:
    tile, pad = _tile(s)
    along, inner = _round(s, pad)
    return [
        "    with load:", *tile, *along, f"{inner}s = lm.step(ring)", f"{inner}lm.wait(empty, stage=s)",
        f"{inner}sa.tma_load(A, coords=(k * {BK}, t.m * {s.rows}), stage=s, barrier=full)",
        f"{inner}sb.tma_load(B, coords=(k * {BK}, t.n * {BN}), stage=s, barrier=full)",
    ]  # fmt: skip


def _math(s: Branches) -> list[str]:
    tile, pad = _tile(s)
    along, inner = _round(s, pad)
    index = "64 * math.index" if s.members > 1 else ""
    a, b, c = (f"{name}[{slot}]" if n > 1 else name for name, slot, n in (("sa", "s", s.stages), ("sb", "s", s.stages), ("sc", "o", s.outs)))
    part, mine = (f"{x}.rows({index}, 64)" if index else x for x in (a, c))
    done = [
        f"{pad}lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * {BN}, t.m * {s.rows}{f' + {index}' if index else ''}), clip=True)",
    ] if not s.outs else [
        f"{pad}o = lm.step(out)", f"{pad}lm.wait(free, stage=o)", f"{pad}{mine}.store(lm.cast(acc, lm.bf16))", f"{pad}lm.fence_proxy()", f"{pad}lm.arrive(ready, stage=o)",
    ]  # fmt: skip
    return [
        "    with math:", *tile, f'{pad}acc = lm.frag(shape=(64, {BN}), dtype=lm.f32, form="acc", init=0.0)', *along, f"{inner}s = lm.step(ring)",
        f"{inner}lm.wait(full, stage=s)", f"{inner}lm.mma(acc, {part}, {b})", f"{inner}lm.mma_wait(pending=0)", f"{inner}lm.arrive(empty, stage=s)", *done,
    ]  # fmt: skip


def _store(s: Branches) -> list[str]:
    tile, pad = _tile(s)
    c = "sc[o]" if s.outs > 1 else "sc"
    freed = [f"{pad}lm.store_wait(pending=0)", f"{pad}lm.arrive(free, stage=o)"]
    if s.late:
        freed = [f"{pad}lm.store_wait(pending=1)", f"{pad}if stored > 0:", f"{pad}    lm.arrive(free, stage=o.prev())", f"{pad}stored = stored + 1"]
    return [
        "    with store:", *(["        stored = 0"] if s.late else []), *tile, f"{pad}o = lm.step(out)", f"{pad}lm.wait(ready, stage=o)",
        f"{pad}{c}.tma_store(C, coords=(t.n * {BN}, t.m * {s.rows}))", *freed, "        lm.store_wait(pending=0)",
    ]  # fmt: skip


@dataclass(frozen=True)
class GeneratedBranches(Case):
    """A case whose text is generated."""

    shape: Branches = Branches()

    def text(self) -> str:
        return text(self.shape)


def case(s: Branches, name: str = "generated") -> GeneratedBranches:
    """The pipeline with everything, nothing and something left out; one CTA takes all tiles of a persistent grid."""
    long = BK * (2 * s.stages + 1) + 8
    settings = (
        {"M": 3 * s.rows - 9, "N": 136, "K": long, "keep": 0.6}, {"M": s.rows + 1, "N": 72, "K": BK, "keep": 0.5}, {"M": 2 * s.rows, "N": 64 * (s.outs + 2), "K": 136, "keep": 1.0},
    )  # fmt: skip

    def fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
        m, n, k = x["M"], x["N"], x["K"]
        mt, nt, kt = -(-m // s.rows), -(-n // BN), -(-k // BK)
        a, b = normal(rng, m, k), normal(rng, n, k)
        edges = [0, 1, s.rows, s.rows + 1, m, int(rng.integers(0, m + 1))]  # where a tile more or less is left out
        count = np.minimum(rng.permutation(edges)[:nt], m).astype(np.int32) if x["keep"] < 1 else np.full(nt, m, np.int32)
        mask = (rng.random(mt * kt) < x["keep"]).astype(np.int32)
        want = np.zeros((m, n))
        for i in range(mt):
            rows, kept = slice(i * s.rows, min(m, (i + 1) * s.rows)), np.repeat(mask[i * kt : (i + 1) * kt] if s.rounds else np.ones(kt), BK)[:k]
            for j in range(nt):
                if not s.tiles or i * s.rows < count[j]:
                    cols = slice(j * BN, min(n, (j + 1) * BN))
                    want[rows, cols] = (f64(a[rows]) * kept) @ f64(b[cols]).T
        tensors = {"A": a, "B": b, "C": np.zeros((m, n), BF16), "COUNT": count, "MASK": mask}
        return Filled(tensors, {"M": m, "N": n, "K": k, "NT": nt, "MK": mt * kt}, {"C": want})

    return GeneratedBranches(name, "generated.py", settings, fill, ctas=1 if s.persistent else None, shape=s)
