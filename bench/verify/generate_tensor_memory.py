"""Pipelines of tcgen05 products that are correct by construction: a role that loads, one that multiplies, one that stores what it is handed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.verify.cases.case import Case, Filled, empty, f64, normal

BM, BN, BK = 128, 64, 64


@dataclass(frozen=True)
class Accumulators:
    """One pipeline. `depth` accumulators in tensor memory are handed over in turn, in `parts` loads each; `slots` staging tiles (0: stored
    from registers); `split`: A and B complete on barriers of their own; `pairs`: CTAs multiply in pairs, that many in a cluster (0: each by itself)."""

    stages: int = 2
    depth: int = 2
    parts: int = 1
    slots: int = 1
    arrive: str = "warp"
    persistent: bool = True
    split: bool = False
    target: str = "sm_100a"
    pairs: int = 0

    @property
    def bring(self) -> int:
        """The rows of B that each CTA brings."""
        return BN // 2 if self.pairs else BN

    @property
    def scope(self) -> str:
        """What joins a barrier to both CTAs of a pair."""
        return ', scope="cluster"' if self.pairs else ""

    @property
    def cluster(self) -> str:
        return f", cluster=({2 * self.pairs}, 1)" if self.pairs else ""

    @property
    def sound(self) -> bool:
        """Whether the choices fit together."""
        return self.slots == 0 or self.parts == 1


def text(s: Accumulators) -> str:
    """The schedule: C[M,N] = A[M,K] B[N,K]^T."""
    a, b, c = BM * BK * 2, s.bring * BK * 2, BM * BN * 2
    stage, slots = (f", stage={n}" if n > 1 else "" for n in (s.stages, s.slots))
    lines = [
        f'@cake.schedule(target="{s.target}")',
        'def accumulators(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],',
        '                 D: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):',
        f'    lm.launch(grid="{"persistent" if s.persistent else "tiles"}"{s.cluster})',
        "    lm.assume(K > 0)",
        "    lm.assume(K % 8 == 0 and N % 8 == 0)",
        f"    pool = lm.smem({s.stages * (a + b) + s.slots * c})",
        f'    sa = pool.view(offset=0, shape=({BM}, {BK}), dtype=lm.bf16{stage}, swizzle="128b")',
        f'    sb = pool.view(offset={s.stages * a}, shape=({s.bring}, {BK}), dtype=lm.bf16{stage}, swizzle="128b")',
        *([f'    sc = pool.view(offset={s.stages * (a + b)}, shape=({BM}, {BN}), dtype=lm.bf16{slots}, swizzle="128b")'] if s.slots else []),
        f"    accs = lm.tmem(cols=0, width={s.depth * BN}, shape=(128, {s.depth * BN}), dtype=lm.f32)",
        "    epi = lm.role(warps=range(0, 4))",
        "    load = lm.role(warps=range(4, 5))",
        "    mma = lm.role(warps=range(5, 6))",
        f"    ring = lm.pipeline(stages={s.stages})",
        f'    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx"{s.scope})',
        *([f'    b_full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx"{s.scope})'] if s.split else []),
        f'    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True{s.scope})',
        f"    turns = lm.pipeline(stages={s.depth})",
        f'    done = lm.barrier(pipeline=turns, prod=[mma], cons=[epi], arrive="mma"{s.scope})',
        f'    free = lm.barrier(pipeline=turns, prod=[epi], cons=[mma], arrive="{s.arrive}", primed=True{s.scope})',
        *([f"    out = lm.pipeline(stages={s.slots})", "    meet = lm.named_barrier(epi)"] if s.slots else []),
        f'    sched = lm.scheduler(kind="{"static" if s.persistent else "grid"}", tiles=(lm.cdiv(M, {BM}), lm.cdiv(N, {BN})){s.cluster})',
        f"    kt = lm.cdiv(K, {BK})",
        *_load(s), *_mma(s), *_epilogue(s),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _slot(n: int, view: str, name: str) -> str:
    return f"{view}[{name}]" if n > 1 else view


def _columns(s: Accumulators) -> str:
    return f"accs.cols({BN} * d.index, {BN})" if s.depth > 1 else "accs"


def _load(s: Accumulators) -> list[str]:
    pad = " " * 16
    return [
        "    with load:", "        for t in lm.tiles(sched):", "            for k in lm.range(kt):", f"{pad}s = lm.step(ring)", f"{pad}lm.wait(empty, stage=s)",
        f"{pad}sa.tma_load(A, coords=(k * {BK}, t.m * {BM}), stage=s, barrier=full)",
        f"{pad}sb.tma_load(B, coords=(k * {BK}, t.n * {BN}{f' + lm.cta_rank() % 2 * {s.bring}' if s.pairs else ''}), stage=s, barrier={'b_full' if s.split else 'full'})",
    ]  # fmt: skip


def _mma(s: Accumulators) -> list[str]:
    pad = " " * 16
    return [
        "    with mma:", "        for t in lm.tiles(sched):", "            d = lm.step(turns)", "            lm.wait(free, stage=d)",
        "            for k in lm.range(kt):", f"{pad}s = lm.step(ring)", f"{pad}lm.wait(full, stage=s)", *([f"{pad}lm.wait(b_full, stage=s)"] if s.split else []),
        f"{pad}lm.mma({_columns(s)}, {_slot(s.stages, 'sa', 's')}, {_slot(s.stages, 'sb', 's')}, init=(k == 0){', ctas=2' if s.pairs else ''})", f"{pad}lm.commit(empty, stage=s)",
        "            lm.commit(done, stage=d)",
    ]  # fmt: skip


def _epilogue(s: Accumulators) -> list[str]:
    pad = " " * 12
    out = ["    with epi:", "        for t in lm.tiles(sched):", f"{pad}d = lm.step(turns)", f"{pad}lm.wait(done, stage=d)"]
    width = BN // s.parts
    for i in range(s.parts):
        part = f"accs.cols({BN} * d.index + {i * width}, {width})" if s.depth > 1 and s.parts > 1 else f"accs.cols({i * width}, {width})" if s.parts > 1 else _columns(s)
        out += [f"{pad}c{i} = lm.tmem_load({part})"]
    out += [f'{pad}lm.tmem_wait("ld")', f"{pad}lm.arrive(free, stage=d)"]
    if not s.slots:
        return out + [f"{pad}lm.store(D, lm.cast(c{i}, lm.bf16), coords=(t.n * {BN} + {i * width}, t.m * {BM}), clip=True)" for i in range(s.parts)]
    slot = _slot(s.slots, "sc", "o")
    return [
        *out, f"{pad}o = lm.step(out)", f"{pad}lm.store_wait(pending={s.slots - 1})", f"{pad}lm.sync(meet)", f"{pad}{slot}.store(lm.cast(c0, lm.bf16))", f"{pad}lm.fence_proxy()",
        f"{pad}lm.sync(meet)", f"{pad}{slot}.tma_store(C, coords=(t.n * {BN}, t.m * {BM}))", "        lm.store_wait(pending=0)",
    ]  # fmt: skip


@dataclass(frozen=True)
class GeneratedAccumulators(Case):
    """A case whose text is generated."""

    shape: Accumulators = Accumulators()

    def text(self) -> str:
        return text(self.shape)


def case(s: Accumulators, name: str = "generated") -> GeneratedAccumulators:
    """The pipeline with arguments for three settings: tiles enough to come back to the first accumulator, one step, and a ragged one."""
    long = BK * (s.stages + 1) + 8
    axes = ({"M": (max(s.depth, s.slots) + 1) * BM - 8, "N": 40, "K": long}, {"M": BM, "N": 72, "K": BK}, {"M": 2 * BM + 8, "N": 40, "K": 136})

    def fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
        a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
        out, other = ("C", "D") if s.slots else ("D", "C")
        return Filled({"A": a, "B": b, out: empty(x["M"], x["N"]), other: empty(x["M"], x["N"])}, dict(x), {out: f64(a) @ f64(b).T})

    if s.pairs:  # as many cluster tiles as there are tiles of one CTA above
        axes = tuple({**x, "M": (2 * s.pairs * BM) * (-(-x["M"] // BM) - 1) + x["M"] % BM + BM * (x["M"] % BM == 0)} for x in axes)  # type: ignore[assignment]  # three again
    return GeneratedAccumulators(name, "generated.py", axes, fill, ctas=max(1, 2 * s.pairs) if s.persistent else None, shape=s)
