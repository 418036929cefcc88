"""Pipelines of block-scaled tcgen05 products that are correct by construction: scales ride the ring, are copied to tensor memory and read there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.verify.cases.block_scales import E2M1, atoms, elements, powers, quarters, scaled
from bench.verify.cases.case import E4M3, Array, Case, Filled, empty

BM = 128


@dataclass(frozen=True)
class Scaled:
    """One pipeline. `kind` is mxf8, mxf4 or nvf4; a slot holds `words` words of scales along K; `by`: one product for a slot, a word or an
    instruction; `wide`: 256 columns, two atoms; `places` in tensor memory take turns; `bulk`: atoms lie in one axis; `named`: scales get names."""

    kind: str = "mxf8"
    stages: int = 2
    words: int = 1
    by: str = "slot"
    wide: bool = False
    places: int = 1
    bulk: bool = False
    named: bool = False
    pairs: bool = False
    target: str = "sm_100a"

    @property
    def block(self) -> int:
        return 16 if self.kind == "nvf4" else 32

    @property
    def dtype(self) -> str:
        return "e4m3" if self.kind == "mxf8" else "e2m1"

    @property
    def scale(self) -> str:
        return "e4m3" if self.kind == "nvf4" else "ue8m0"

    @property
    def word(self) -> int:
        """Elements of K under one word."""
        return 4 * self.block

    @property
    def depth(self) -> int:
        """Elements of K in one slot."""
        return self.words * self.word

    @property
    def n(self) -> int:
        return 256 if self.wide else 128

    @property
    def step(self) -> int:
        """Elements of K of one product."""
        return {"slot": self.depth, "word": self.word, "instruction": 32 if self.kind == "mxf8" else 64}[self.by]

    @property
    def sound(self) -> bool:
        """Whether the choices fit together: one product of a word is one of the slot where that has one, and slots fit in shared memory."""
        row = self.depth * (8 if self.kind == "mxf8" else 4) // 8
        slot = (BM + self.n // (2 if self.pairs else 1)) * row + 512 * self.words * (1 + self.n // 128)
        if self.stages * slot > 220_000:
            return False
        return not (self.by == "word" and self.words == 1) and not (self.by == "instruction" and self.step == self.word and self.words == 1)


def text(s: Scaled) -> str:
    """The schedule: C = (A SA) (B SB)^T in f32."""
    bits, bring, side = (8 if s.kind == "mxf8" else 4), s.n // (2 if s.pairs else 1), s.n // 128
    row = s.depth * bits // 8
    swizzle = "128b" if row % 128 == 0 else f"{row}b"
    a, b, sa, sb = BM * row, bring * row, 512 * s.words, 512 * s.words * side
    stage = f", stage={s.stages}" if s.stages > 1 else ""
    scope = ', scope="cluster"' if s.pairs else ""
    cluster = ", cluster=(2, 1)" if s.pairs else ""
    at_a, at_b = s.stages * (a + b), s.stages * (a + b + sa)
    if s.bulk:
        tensors = f'SA: LM.gmem1d[LM.{s.scale}, "SAN"].const, SB: LM.gmem1d[LM.{s.scale}, "SBN"].const'
        rows = "2 * lm.cdiv(M, 256)" if s.pairs else "lm.cdiv(M, 128)"  # copies in bulk are not clipped
        extents = f"SAN == 512 * KB * {rows} and SBN == 512 * KB * {side} * lm.cdiv(N, {s.n})"
    else:
        tensors = f'SA: LM.tma4d[LM.{s.scale}, "MB", "KB", 32, 16].const, SB: LM.tma4d[LM.{s.scale}, "NB", "KB", 32, 16].const'
        extents = f"MB == lm.cdiv(M, 128) and NB == {side} * lm.cdiv(N, {s.n})"
    names = "SAN: LM.i32, SBN: LM.i32" if s.bulk else "MB: LM.i32, NB: LM.i32"
    first = s.n
    lines = [
        f'@cake.schedule(target="{s.target}")',
        f'def scaled(lm, A: LM.tma2d[LM.{s.dtype}, "M", "K"], B: LM.tma2d[LM.{s.dtype}, "N", "K"], {tensors},',
        f'           C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, {names}):',
        f'    lm.launch(grid="persistent"{cluster})',
        "    lm.assume(K > 0)",
        f"    lm.assume(K % {s.depth} == 0)",
        f"    lm.assume(KB == K // {s.word} and {extents})",
        f"    pool = lm.smem({s.stages * (a + b + sa + sb)})",
        f'    sa = pool.view(offset=0, shape=({BM}, {s.depth}), dtype=lm.{s.dtype}{stage}, swizzle="{swizzle}")',
        f'    sb = pool.view(offset={s.stages * a}, shape=({bring}, {s.depth}), dtype=lm.{s.dtype}{stage}, swizzle="{swizzle}")',
        f"    fa = pool.view(offset={at_a}, shape=({32 * s.words}, 16), dtype=lm.{s.scale}{stage})",
        f"    fb = pool.view(offset={at_b}, shape=({32 * s.words * side}, 16), dtype=lm.{s.scale}{stage})",
        f"    acc = lm.tmem(cols=0, width={s.n}, shape=(128, {s.n}), dtype=lm.f32)",
        f"    ta = lm.tmem(cols={first}, width={4 * s.words * s.places}, shape=(128, {16 * s.words * s.places}), dtype=lm.{s.scale})",
        f"    tb = lm.tmem(cols={first + 4 * s.words * s.places}, width={4 * s.words * side * s.places}, shape=(128, {16 * s.words * side * s.places}), dtype=lm.{s.scale})",
        "    epi = lm.role(warps=range(0, 4))",
        "    load = lm.role(warps=[4])",
        "    mma = lm.role(warps=[5])",
        f"    ring = lm.pipeline(stages={s.stages})",
        f'    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx"{scope})',
        f'    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True{scope})',
        "    turns = lm.pipeline(stages=1)",
        f'    done = lm.barrier(pipeline=turns, prod=[mma], cons=[epi], arrive="mma"{scope})',
        f'    free = lm.barrier(pipeline=turns, prod=[epi], cons=[mma], arrive="member", primed=True{scope})',
        *([f"    where = lm.pipeline(stages={s.places})"] if s.places > 1 else []),
        f'    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, {BM}), lm.cdiv(N, {s.n})){cluster})',
        f"    kt = lm.cdiv(K, {s.depth})",
        *_load(s, side, bring), *_mma(s, side), *_epilogue(s),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _slot(s: Scaled, view: str) -> str:
    return f"{view}[s]" if s.stages > 1 else view


def _fetch(s: Scaled, view: str, tensor: str, tile: str, side: int, pad: str) -> list[str]:
    """The loads of a slot's atoms: those of one word of all rows together."""
    out = []
    for w in range(s.words):
        for r in range(side):
            rows = f"{_slot(s, view)}.rows({32 * (w * side + r)}, 32)" if s.words * side > 1 else view
            k = f"k * {s.words} + {w}" if s.words > 1 else "k"
            m = f"{side} * {tile} + {r}" if side > 1 else tile
            out.append(f"{pad}{rows}.bulk_load({tensor}, offset=(({m}) * KB + {k}) * 512, n=512, stage=s, barrier=full)" if s.bulk
                       else f"{pad}{rows}.tma_load({tensor}, coords=(0, 0, {k}, {m}), stage=s, barrier=full)")  # fmt: skip
    return out


def _load(s: Scaled, side: int, bring: int) -> list[str]:
    pad = " " * 16
    half = f" + lm.cta_rank() % 2 * {bring}" if s.pairs else ""
    return [
        "    with load:", "        for t in lm.tiles(sched):", "            for k in lm.range(kt):", f"{pad}s = lm.step(ring)", f"{pad}lm.wait(empty, stage=s)",
        f"{pad}sa.tma_load(A, coords=(k * {s.depth}, t.m * {BM}), stage=s, barrier=full)", f"{pad}sb.tma_load(B, coords=(k * {s.depth}, t.n * {s.n}{half}), stage=s, barrier=full)",
        *_fetch(s, "fa", "SA", "t.m", 1, pad), *_fetch(s, "fb", "SB", "t.n", side, pad),
    ]  # fmt: skip


def _mma(s: Scaled, side: int) -> list[str]:
    pad = " " * 16
    out = ["    with mma:", "        for t in lm.tiles(sched):", "            d = lm.step(turns)", "            lm.wait(free, stage=d)", "            for k in lm.range(kt):",
           f"{pad}s = lm.step(ring)", f"{pad}lm.wait(full, stage=s)"]  # fmt: skip
    if s.places > 1:
        out.append(f"{pad}p = lm.step(where)")

    def region(name: str, atom: int, count: int, each: int) -> str:
        """`count` atoms of a region from `atom` on; `each` a place."""
        if s.places == 1 and count == each:
            return name
        lo = f"{16 * each} * p.index + {16 * atom}" if s.places > 1 else str(16 * atom)
        return f"{name}.cols({lo}, {16 * count})"

    for name, view, n in (("ta", "fa", s.words), ("tb", "fb", s.words * side)):
        for i in range(n):
            part = f"{_slot(s, view)}.rows({32 * i}, 32)" if n > 1 else _slot(s, view)
            out.append(f"{pad}lm.tmem_copy({region(name, i, 1, n)}, {part})")
    for at in range(0, s.depth, s.step):
        word, first = at // s.word, at % s.word // s.block
        cut = f".cols({at}, {s.step})" if s.step < s.depth else ""
        words = max(1, s.step // s.word)
        number = f", first={first}" if first else ""
        given = [f'lm.scales({region(name, word * sides, words * sides, s.words * sides)}, block={s.block}, dtype=lm.{s.scale}, layout="tmem_128x4"{number})' for name, sides in (("ta", 1), ("tb", side))]
        if s.named:
            out += [f"{pad}of_{x} = {g}" for x, g in zip("ab", given, strict=True)]
            given = ["of_a", "of_b"]
        start = "k == 0" if not at else "False"
        out.append(f"{pad}lm.mma(acc, {_slot(s, 'sa')}{cut}, {_slot(s, 'sb')}{cut}, init=({start}), scale_a={given[0]}, scale_b={given[1]}{', ctas=2' if s.pairs else ''})")
    return [*out, f"{pad}lm.commit(empty, stage=s)", "            lm.commit(done, stage=d)"]


def _epilogue(s: Scaled) -> list[str]:
    pad = " " * 12
    return ["    with epi:", "        for t in lm.tiles(sched):", f"{pad}d = lm.step(turns)", f"{pad}lm.wait(done, stage=d)", f"{pad}c = lm.tmem_load(acc)", f'{pad}lm.tmem_wait("ld")',
            f"{pad}lm.arrive(free, stage=d)", f"{pad}lm.store(C, c, coords=(t.n * {s.n}, t.m * {BM}), clip=True)"]  # fmt: skip


@dataclass(frozen=True)
class GeneratedScaled(Case):
    """A case whose text is generated."""

    shape: Scaled = Scaled()

    def text(self) -> str:
        return text(self.shape)


def _padded(scales: Array, rows: int) -> Array:
    """Scales of whole tiles of so many rows, ones behind the end."""
    full = np.ones((-(-len(scales) // rows) * rows, scales.shape[1]), np.float32).astype(scales.dtype)
    full[: len(scales)] = scales
    return full


def case(s: Scaled, name: str = "generated") -> GeneratedScaled:
    """The pipeline with arguments for two settings: tiles of both axes and a ring that wraps, and one step of a ragged tile."""
    axes = ({"M": 2 * BM + 40, "N": s.n + 24, "K": s.depth * (s.stages + 1)}, {"M": BM, "N": 72, "K": s.depth})
    side = s.n // 128

    def fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
        m, n, k = x["M"], x["N"], x["K"]
        dtype, draw = (E4M3 if s.kind == "mxf8" else E2M1), (quarters if s.kind == "nvf4" else powers)
        a, b, fa, fb = elements(rng, m, k, dtype), elements(rng, n, k, dtype), draw(rng, m, k // s.block), draw(rng, n, k // s.block)
        side_m = 2 * BM if s.pairs and s.bulk else BM
        packed = {"SA": atoms(_padded(fa, side_m)), "SB": atoms(_padded(fb, s.n))}
        sizes = {"MB": -(-m // 128), "NB": side * -(-n // s.n)}
        if s.bulk:
            packed, sizes = {t: p.reshape(-1) for t, p in packed.items()}, {f"{t}N": p.size for t, p in packed.items()}
        return Filled({"A": a, "B": b, **packed, "C": empty(m, n, dtype=np.float32)}, {**x, "KB": k // s.word, **sizes}, {"C": scaled(a, fa) @ scaled(b, fb).T})

    return GeneratedScaled(name, "generated.py", axes, fill, tolerance=1e-5, ctas=2 if s.pairs else 1, shape=s)
