"""Pipelines that are correct by construction: random roles, depths, rings and epilogues, as text with arguments and an oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, Case, Filled, empty, f64, normal

BK, BN, DEPTH_OF_RESIDENT = 64, 64, 320


@dataclass(frozen=True)
class Shape:
    """One pipeline. `lag` is how many steps after its product a slot is released (less than `stages`); `handoff` puts a role between load
    and math that doubles A with ordinary stores; `epilogue` is `direct`, `staged` (through `slots` staging tiles) or `aliased` (staged
    where the ring was, one tile a CTA). CTAs of a `cluster` share their loads."""

    engine: str = "wgmma"
    stages: int = 2
    lag: int = 0
    members: int = 1
    arrive: str = "member"
    persistent: bool = True
    epilogue: str = "direct"
    slots: int = 1
    split: bool = False
    handoff: bool = False
    resident: bool = False
    cluster: tuple[int, int] = (1, 1)

    @property
    def sound(self) -> bool:
        """Whether the choices fit together."""
        return (
            self.lag < self.stages
            and not (self.engine == "mma_sync" and (self.lag or self.handoff))
            and not (self.epilogue == "aliased" and (self.persistent or self.handoff or self.resident))
            and (self.engine == "wgmma" or self.kilobytes <= 96)
            and (self.cluster == (1, 1) or (self.engine == "wgmma" and not self.handoff and not self.resident and self.epilogue != "aliased"))
        )

    @property
    def kilobytes(self) -> int:
        """Shared memory, roughly: rings, resident operand, staging."""
        b = 8 * DEPTH_OF_RESIDENT // BK if self.resident else 8 * self.stages
        staging = self.slots * 8 * self.members if self.epilogue == "staged" else 0
        return 8 * self.members * (self.stages + 2 * self.handoff) + b + staging

    @property
    def clustered(self) -> bool:
        """Whether several CTAs work together."""
        return self.cluster != (1, 1)

    @property
    def rows(self) -> int:
        return 64 * self.members


def text(s: Shape) -> str:
    """The schedule: C[M,N] = A[M,K] B[N,K]^T (twice that with a handoff)."""
    lines = [*_head(s), *_memory(s), *_roles(s), *_load(s), *(_double(s) if s.handoff else []), *_math(s)]
    return "\n".join(lines) + "\n"


def _head(s: Shape) -> list[str]:
    k = str(DEPTH_OF_RESIDENT) if s.resident else '"K"'
    return [
        f'@cake.schedule(target="{"sm_90a" if s.engine == "wgmma" else "sm_120a"}")',
        f'def pipeline(lm, A: LM.tma2d[LM.bf16, "M", {k}], B: LM.tma2d[LM.bf16, "N", {k}], C: LM.tma2d[LM.bf16, "M", "N"],',
        '             D: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):',
        f'    lm.launch(grid="{"persistent" if s.persistent else "tiles"}"{_cluster(s)})',
        "    lm.assume(K > 0)",
        "    lm.assume(K % 8 == 0 and N % 8 == 0)",
    ]


def _cluster(s: Shape) -> str:
    return f", cluster={s.cluster}" if s.clustered else ""


def _memory(s: Shape) -> list[str]:
    a, b, c = s.rows * BK * 2, BN * BK * 2, s.rows * BN * 2
    out, at = [], 0

    def view(name: str, shape: str, stages: int, size: int, offset: int | None = None) -> None:
        nonlocal at
        where = at if offset is None else offset
        stage = f", stage={stages}" if stages > 1 else ""
        out.append(f'    {name} = pool.view(offset={where}, shape={shape}, dtype=lm.bf16{stage}, swizzle="128b")')
        at = max(at, where + size)

    view("sa", f"({s.rows}, {BK})", s.stages, s.stages * a)
    if s.resident:
        view("sb", f"({BN}, {DEPTH_OF_RESIDENT})", 1, BN * DEPTH_OF_RESIDENT * 2)
    else:
        view("sb", f"({BN}, {BK})", s.stages, s.stages * b)
    if s.handoff:
        view("sr", f"({s.rows}, {BK})", 2, 2 * a)
    if s.epilogue == "staged":
        view("sc", f"({s.rows}, {BN})", s.slots, s.slots * c)
    if s.epilogue == "aliased":
        view("sc", f"({s.rows}, {BN})", 1, c, offset=0)
    return [f"    pool = lm.smem({at})", *out]


def _roles(s: Shape) -> list[str]:
    w = 4 * s.members
    regs = s.engine == "wgmma"
    math = f"    math = lm.role(warps=range(0, {w}){', regs=160' if regs else ''}{f', members={s.members}' if s.members > 1 else ''})"
    out = [math, f"    load = lm.role(warps=range({w}, {w + 4}){', regs=40' if regs else ''})"]
    if s.handoff:
        out.append(f"    double = lm.role(warps=range({w + 4}, {w + 8}), regs=96)")
    producer = "double" if s.handoff else "load"
    kind = "warp" if s.handoff else "tx"
    guards = "[load, double]" if s.handoff and not s.resident else "[double]" if s.handoff else "[load]"
    out.append(f"    ring = lm.pipeline(stages={s.stages})")
    both = not s.resident and not s.split and not s.handoff
    out.append(f'    full = lm.barrier(pipeline=ring, prod=[{producer}], cons=[math], arrive="{kind}")')
    if not both and not s.resident:
        out.append('    b_full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")')
    scope = ', scope="cluster"' if s.clustered else ""
    out.append(f'    empty = lm.barrier(pipeline=ring, prod=[math], cons={guards}, arrive="{s.arrive}", primed=True{scope})')
    if s.handoff:
        out += [
            "    raw = lm.pipeline(stages=2)",
            '    r_full = lm.barrier(pipeline=raw, prod=[load], cons=[double], arrive="tx")',
            '    r_empty = lm.barrier(pipeline=raw, prod=[double], cons=[load], arrive="warp", primed=True)',
        ]
    if s.resident:
        out += ["    once = lm.pipeline(stages=1)", '    w_full = lm.barrier(pipeline=once, prod=[load], cons=[math], arrive="tx")']
    if s.epilogue == "staged":
        out.append(f"    slots = lm.pipeline(stages={s.slots})")
    if s.epilogue != "direct":
        out.append("    meet = lm.named_barrier(math)")
    columns = "1" if s.resident else f"lm.cdiv(N, {BN})"
    out.append(f'    sched = lm.scheduler(kind="{"static" if s.persistent else "grid"}", tiles=(lm.cdiv(M, {s.rows}), {columns}){_cluster(s)})')
    out.append(f"    kt = {DEPTH_OF_RESIDENT // BK}" if s.resident else f"    kt = lm.cdiv(K, {BK})")
    return out


def _load(s: Shape) -> list[str]:
    out = ["    with load:"]
    if s.resident:
        out += ["        w = lm.step(once)", "        sb.tma_load(B, coords=(0, 0), stage=w, barrier=w_full)"]
    out += ["        for t in lm.tiles(sched):", "            for k in lm.range(kt):"]
    pad = " " * 16
    if s.handoff:
        out += [
            f"{pad}r = lm.step(raw)",
            f"{pad}lm.wait(r_empty, stage=r)",
            f"{pad}sr.tma_load(A, coords=(k * {BK}, t.m * {s.rows}), stage=r, barrier=r_full)",
        ]
        if s.resident:
            return out
    out += [f"{pad}s = lm.step(ring)", f"{pad}lm.wait(empty, stage=s)"]
    if not s.handoff:
        shared = ', multicast="n"' if s.cluster[1] > 1 else ""
        out.append(f"{pad}sa.tma_load(A, coords=(k * {BK}, t.m * {s.rows}), stage=s, barrier=full{shared})")
    if not s.resident:
        bar = "b_full" if s.split or s.handoff else "full"
        shared = ', multicast="m"' if s.cluster[0] > 1 else ""
        out.append(f"{pad}sb.tma_load(B, coords=(k * {BK}, t.n * {BN}), stage=s, barrier={bar}{shared})")
    return out


def _double(s: Shape) -> list[str]:
    slot = "sa[s]" if s.stages > 1 else "sa"
    return [
        "    with double:",
        "        for t in lm.tiles(sched):",
        "            for k in lm.range(kt):",
        "                r = lm.step(raw)",
        "                lm.wait(r_full, stage=r)",
        '                x = sr[r].load(form="vec")',
        "                lm.arrive(r_empty, stage=r)",
        "                s = lm.step(ring)",
        "                lm.wait(empty, stage=s)",
        f"                {slot}.store(lm.cast(lm.cast(x, lm.f32) * 2.0, lm.bf16))",
        "                lm.fence_proxy()",
        "                lm.arrive(full, stage=s)",
    ]


def _math(s: Shape) -> list[str]:
    index = "64 * math.index" if s.members > 1 else "0"
    slot_a = "sa[s]" if s.stages > 1 else "sa"
    slot_b = f"sb.cols({BK} * k, {BK})" if s.resident else "sb[s]" if s.stages > 1 else "sb"
    part = f"{slot_a}.rows({index}, 64)" if s.members > 1 else slot_a
    split = ", warps=(4, 1), init=0.0" if s.engine == "mma_sync" else ""
    acc = f'acc = lm.frag(shape=(64, {BN}), dtype=lm.f32, form="acc"{split})'
    out = ["    with math:"]
    if s.resident:
        out += ["        w = lm.step(once)", "        lm.wait(w_full, stage=w)"]
    if s.engine == "wgmma":
        out.append(f"        {acc}")
    out.append("        for t in lm.tiles(sched):")
    if s.engine == "mma_sync":
        out.append(f"            {acc}")
    out += ["            for k in lm.range(kt):", "                s = lm.step(ring)", "                lm.wait(full, stage=s)"]
    if not s.resident and (s.split or s.handoff):
        out.append("                lm.wait(b_full, stage=s)")
    pad = " " * 16
    if s.engine == "wgmma":
        out += [f"{pad}lm.mma(acc, {part}, {slot_b}, init=(k == 0))", f"{pad}lm.mma_wait(pending={s.lag})"]
        if s.lag == 0:
            out.append(f"{pad}lm.arrive(empty, stage=s)")
        else:
            out += [f"{pad}if k >= {s.lag}:", f"{pad}    lm.arrive(empty, stage=s.prev({s.lag}))"]
    else:
        out += [
            f"{pad}for kk in lm.static_range({BK // 16}):",
            f'{pad}    a = {part}.cols(16 * kk, 16).ldmatrix(form="a", like=acc)',
            f'{pad}    b = {slot_b.replace(f"cols({BK} * k, {BK})", f"cols({BK} * k + 16 * kk, 16)") if s.resident else f"{slot_b}.cols(16 * kk, 16)"}.ldmatrix(form="b", like=acc)',
            f"{pad}    lm.mma(acc, a, b)",
            f"{pad}lm.arrive(empty, stage=s)",
        ]
    if s.lag:
        out.append("            lm.mma_wait(pending=0)")
        for back in range(s.lag - 1, 0, -1):
            out += [f"            if kt > {back}:", f"                lm.arrive(empty, stage=lm.at(ring).prev({back}))"]
        out.append("            lm.arrive(empty, stage=lm.at(ring))")
    return [*out, *_epilogue(s, index)]


def _epilogue(s: Shape, index: str) -> list[str]:
    pad = " " * 12
    column = "0" if s.resident else f"t.n * {BN}"
    at = f"({column}, t.m * {s.rows}{f' + {index}' if s.members > 1 else ''})"
    if s.epilogue == "direct":
        return [f"{pad}lm.store(D, lm.cast(acc, lm.bf16), coords={at}, clip=True)"]
    slot = "sc[c]" if s.epilogue == "staged" and s.slots > 1 else "sc"
    mine = f"{slot}.rows({index}, 64)" if s.members > 1 else slot
    out = [f"{pad}c = lm.step(slots)", f"{pad}lm.store_wait(pending={s.slots - 1})"] if s.epilogue == "staged" else []
    out += [
        f"{pad}lm.sync(meet)",
        f"{pad}{mine}.store(lm.cast(acc, lm.bf16))",
        f"{pad}lm.fence_proxy()",
        f"{pad}lm.sync(meet)",
        f"{pad}{mine}.tma_store(C, coords={at})",
        "        lm.store_wait(pending=0)",
    ]
    return out


@dataclass(frozen=True)
class Generated(Case):
    """A case whose text is generated."""

    shape: Shape = Shape()

    def text(self) -> str:
        return text(self.shape)


def case(s: Shape, name: str = "generated") -> Generated:
    """The pipeline with arguments for three settings: several tiles and a wrapped ring, one step, and a ragged one; one CTA takes all tiles."""
    long = BK * (s.stages + s.lag + 1) + 8
    columns = 40 if s.resident else 72
    tiles = s.slots + 1 if s.epilogue == "staged" else 2  # enough to come back to the first staging slot
    axes = ({"M": tiles * s.rows + 8, "N": columns, "K": long}, {"M": s.rows, "N": columns, "K": 64}, {"M": 3 * s.rows, "N": 40, "K": 136})

    def fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
        k = DEPTH_OF_RESIDENT if s.resident else x["K"]
        a, b = normal(rng, x["M"], k), normal(rng, x["N"], k)
        out, other = ("D", "C") if s.epilogue == "direct" else ("C", "D")
        tensors = {"A": a, "B": b, out: empty(x["M"], x["N"]), other: np.zeros((x["M"], x["N"]), BF16)}
        scalars = {"M": x["M"], "N": x["N"], "K": k}
        return Filled(tensors, scalars, {out: f64(a) @ f64(b).T * (2 if s.handoff else 1)})

    return Generated(name, "generated.py", axes, fill, ctas=s.cluster[0] * s.cluster[1], shape=s)
