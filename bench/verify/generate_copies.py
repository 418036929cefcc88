"""Pipelines of cp.async copies and mma.sync that are correct by construction: rings that a block meets around, or that barriers guard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, Case, Filled, empty, f64, normal

BM, BN = 64, 64


@dataclass(frozen=True)
class Copies:
    """One pipeline. `order` is `single` (one meeting a step, the next copy behind the products), `double` (a meeting before and after
    them) or `barriers` (a role of `fetchers` warps copies); `ahead` is how many tiles are copied before the first product."""

    order: str = "single"
    stages: int = 3
    ahead: int = 2
    depth: int = 32
    spread: tuple[int, int] = (2, 2)
    fetchers: int = 2
    arrive: str = "thread"
    persistent: bool = False
    staged: bool = False

    @property
    def sound(self) -> bool:
        """Whether the choices fit together."""
        if self.order == "barriers":
            return True
        return 1 <= self.ahead <= self.stages - (self.order == "single") and not self.staged and not (self.persistent and self.order == "single")

    @property
    def swizzle(self) -> str:
        return "64b" if self.depth == 32 else "128b"


def text(s: Copies) -> str:
    """The schedule: C[M,N] = A[M,K] B[N,K]^T."""
    a = s.stages * BM * s.depth * 2
    lines = [
        '@cake.schedule(target=("sm_80", "sm_89"))',
        'def copies(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):',
        f'    lm.launch(grid="{"persistent" if s.persistent else "tiles"}")',
        "    lm.assume(K > 0)",
        "    lm.assume(K % 8 == 0 and N % 8 == 0)",
        f"    pool = lm.smem({2 * a + (BM * BN * 2 if s.staged else 0)})",
        f'    sa = pool.view(offset=0, shape=({BM}, {s.depth}), dtype=lm.bf16{_stage(s)}, swizzle="{s.swizzle}")',
        f'    sb = pool.view(offset={a}, shape=({BN}, {s.depth}), dtype=lm.bf16{_stage(s)}, swizzle="{s.swizzle}")',
        *([f'    sc = pool.view(offset={2 * a}, shape=({BM}, {BN}), dtype=lm.bf16, swizzle="128b")'] if s.staged else []),
        "    math = lm.role(warps=range(0, 4))",
        *([f"    fetch = lm.role(warps=range(4, {4 + s.fetchers}))"] if s.order == "barriers" else []),
        "    meet = lm.named_barrier(math)",
        f"    ring = lm.pipeline(stages={s.stages})",
    ]
    if s.order == "barriers":
        lines += [
            '    full = lm.barrier(pipeline=ring, prod=[fetch], cons=[math], arrive="cp_async")',
            f'    empty = lm.barrier(pipeline=ring, prod=[math], cons=[fetch], arrive="{s.arrive}", primed=True)',
        ]
    lines += [
        f'    sched = lm.scheduler(kind="{"static" if s.persistent else "grid"}", tiles=(lm.cdiv(M, {BM}), lm.cdiv(N, {BN})))',
        f"    kt = lm.cdiv(K, {s.depth})",
        *(_guarded(s) if s.order == "barriers" else _meeting(s)),
    ]
    return "\n".join(lines) + "\n"


def _stage(s: Copies) -> str:
    return f", stage={s.stages}" if s.stages > 1 else ""


def _slot(s: Copies, view: str, name: str) -> str:
    return f"{view}[{name}]" if s.stages > 1 else view


def _copy(s: Copies, pad: str, k: str, slot: str) -> list[str]:
    return [
        f"{pad}sa.cp_async(A, coords=({k} * {s.depth}, t.m * {BM}), stage={slot})",
        f"{pad}sb.cp_async(B, coords=({k} * {s.depth}, t.n * {BN}), stage={slot})",
    ]


def _product(s: Copies, slot: str) -> list[str]:
    pad = " " * 16
    return [
        f"{pad}for kk in lm.static_range({s.depth // 16}):",
        f'{pad}    a = {_slot(s, "sa", slot)}.cols(16 * kk, 16).ldmatrix(form="a", like=acc)',
        f'{pad}    b = {_slot(s, "sb", slot)}.cols(16 * kk, 16).ldmatrix(form="b", like=acc)',
        f"{pad}    lm.mma(acc, a, b)",
    ]


def _start(s: Copies) -> str:
    return f'            acc = lm.frag(shape=({BM}, {BN}), dtype=lm.f32, form="acc", warps={s.spread}, init=0.0)'


def _end(s: Copies) -> list[str]:
    pad = " " * 12
    at = f"coords=(t.n * {BN}, t.m * {BM})"
    if not s.staged:
        return [f"{pad}lm.store(C, lm.cast(acc, lm.bf16), {at}, clip=True)"]
    return [
        f"{pad}sc.store(lm.cast(acc, lm.bf16))",
        f"{pad}lm.sync(meet)",
        f'{pad}lm.store(C, sc.load(form="vec"), {at}, clip=True)',
        f"{pad}lm.sync(meet)",
    ]


def _guarded(s: Copies) -> list[str]:
    pad = " " * 16
    head = ["        for t in lm.tiles(sched):", "            for k in lm.range(kt):"]
    return [
        "    with fetch:", *head, f"{pad}s = lm.step(ring)", f"{pad}lm.wait(empty, stage=s)", *_copy(s, pad, "k", "s"), f"{pad}lm.arrive(full, stage=s)",
        "    with math:", head[0], _start(s), head[1], f"{pad}s = lm.step(ring)", f"{pad}lm.wait(full, stage=s)", *_product(s, "s"),
        f"{pad}lm.arrive(empty, stage=s)", *_end(s),
    ]  # fmt: skip


def _meeting(s: Copies) -> list[str]:
    pad = " " * 16
    out = [
        "    with math:", "        for t in lm.tiles(sched):", _start(s),
        f"            for k in lm.static_range({s.ahead}):", f"{pad}s = lm.step(ring)", f"{pad}if k < kt:", *_copy(s, pad + "    ", "k", "s"), f"{pad}lm.cp_commit()",
        "            for k in lm.range(kt):", f"{pad}lm.cp_wait(pending={s.ahead - 1})", f"{pad}lm.sync(meet)",
    ]  # fmt: skip
    following = [f"{pad}if k + {s.ahead} < kt:", *_copy(s, pad + "    ", f"(k + {s.ahead})", "w"), f"{pad}lm.cp_commit()"]
    if s.order == "single":
        out += [f"{pad}w = lm.step(ring)", f"{pad}r = w.prev({s.ahead})", *_product(s, "r"), *following]
    else:
        out += [f"{pad}w = lm.step(ring)", f"{pad}r = w.prev({s.ahead})", *_product(s, "r"), f"{pad}lm.sync(meet)", *following]
    return [*out, "            lm.cp_wait(pending=0)", *(["            lm.sync(meet)"] if s.persistent else []), *_end(s)]


@dataclass(frozen=True)
class GeneratedCopies(Case):
    """A case whose text is generated."""

    shape: Copies = Copies()

    def text(self) -> str:
        return text(self.shape)


def case(s: Copies, name: str = "generated") -> GeneratedCopies:
    """The pipeline with arguments for three settings: several tiles and a wrapped ring, one step, and a ragged one."""
    long = s.depth * (s.stages + s.ahead + 1) + 8
    axes = ({"M": 2 * BM + 8, "N": 72, "K": long}, {"M": BM, "N": 72, "K": s.depth}, {"M": 8, "N": 40, "K": 2 * s.depth + 8})

    def fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
        a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
        return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=BF16)}, dict(x), {"C": f64(a) @ f64(b).T})

    return GeneratedCopies(name, "generated.py", axes, fill, ctas=1 if s.persistent else None, target="sm_80", shape=s)
