"""What a matrix multiply-accumulate takes on each target: dtypes, shapes, operand places and major-ness.

Three families, told apart by where operands live: ``mma_sync`` (fragments, every target), ``wgmma`` (B in shared memory,
sm_90a) and ``tcgen05`` (accumulator in tensor memory, sm_100a and sm_103a). K is always a multiple of one instruction's K,
which is 32 bytes of operand (64 for block-scaled fp4).
"""

from __future__ import annotations

from typing import Literal

from cake_ir.record import record
from cake_ir.targets import target, targets_with

Family = Literal["mma_sync", "wgmma", "tcgen05"]
Place = Literal["frag", "view", "tmem"]

_FP8 = frozenset({"e4m3", "e5m2"})
_F8F6F4 = _FP8 | {"e2m1", "e2m3", "e3m2"}
_INT8 = frozenset({"i8", "u8"})

_FEATURE: dict[Family, str] = {"mma_sync": "MMA_SYNC", "wgmma": "WGMMA", "tcgen05": "TCGEN05"}


@record()
class MmaKind:
    """One operand combination: the accumulator dtypes it allows and the K of one instruction.

    ``may_transpose`` says whether a shared-memory operand may be read MN-major; ``container_bits`` is the width that one
    element occupies in shared memory or registers (fp4 and fp6 sit in bytes, block-scaled fp4 is packed).
    """

    name: str
    k: int
    accumulators: tuple[str, ...]
    may_transpose: bool
    container_bits: int


@record()
class ScaleContract:
    """One accepted scaling of the operands: ``block`` elements along K share a scale of ``dtype``, held in ``layout``."""

    kind: str
    block: int
    dtype: str
    layout: str


# Block scales that the instruction itself applies. Hopper has none: promote the partial accumulator instead.
SCALES: dict[str, tuple[ScaleContract, ...]] = {
    **{
        name: (
            ScaleContract("mxf8f6f4", 32, "ue8m0", "tmem_128x4"),
            ScaleContract("mxf4", 32, "ue8m0", "tmem_128x4"),
            ScaleContract("mxf4nvf4", 16, "e4m3", "tmem_128x4"),
        )
        for name in ("sm_100a", "sm_103a")
    },
    **{
        name: (
            ScaleContract("mxf8f6f4", 32, "ue8m0", "frag_row"),
            ScaleContract("mxf4", 32, "ue8m0", "frag_row"),
            ScaleContract("mxf4nvf4", 16, "e4m3", "frag_row"),
        )
        for name in ("sm_120a", "sm_121a")
    },
}


def kind_of(family: Family, target_name: str, a: str, b: str, scaled: bool = False) -> MmaKind | str:
    """The operand combination ``a`` x ``b`` of ``family`` on ``target_name``, or why it does not exist there."""
    t = target(target_name)
    if not t.has(_FEATURE[family]):
        return f"{target_name} has no {_SPELLING[family]}, it exists on {', '.join(targets_with(_FEATURE[family]))}"
    if scaled:
        return _scaled_kind(family, target_name, a, b)
    if a == b == "f16":
        return MmaKind("f16", 16, ("f32", "f16"), True, 16)
    if a == b == "bf16":
        return MmaKind("bf16", 16, ("f32",), True, 16)
    if a == b == "tf32":
        return MmaKind("tf32", 8, ("f32",), False, 32)
    if "f32" in (a, b):
        return "the tensor core reads f32 operands as tf32 (10 mantissa bits); declare them tf32 to say so"
    if a in _FP8 and b in _FP8:
        if family == "mma_sync" and not t.has("FP8_MMA"):
            return f"{target_name} has no fp8 MMA, it exists on {', '.join(targets_with('FP8_MMA'))}"
        return MmaKind("f8f6f4" if family == "tcgen05" else "fp8", 32, ("f32", "f16"), family == "tcgen05", 8)
    if a in _INT8 and b in _INT8:
        if family == "tcgen05" and not t.has("TCGEN05_I8"):
            return f"{target_name} has no integer tcgen05, it exists on {', '.join(targets_with('TCGEN05_I8'))}"
        return MmaKind("i8", 32, ("i32",), family == "tcgen05", 8)
    if a in _F8F6F4 and b in _F8F6F4:
        if family == "tcgen05":
            return MmaKind("f8f6f4", 32, ("f32", "f16"), False, 8)
        if family == "mma_sync" and t.has("F8F6F4_MMA"):
            return MmaKind("f8f6f4", 32, ("f32", "f16"), False, 8)
        return f"{_SPELLING[family]} on {target_name} has no {a} x {b}; fp4 and fp6 operands exist in tcgen05 and on sm_120a, sm_121a"
    return f"no MMA multiplies {a} by {b}; both operands must be of one family: f16, bf16, tf32, 8-bit integers, or fp8/fp6/fp4"


_SPELLING: dict[Family, str] = {"mma_sync": "mma.sync", "wgmma": "wgmma", "tcgen05": "tcgen05 MMA"}


def _scaled_kind(family: Family, target_name: str, a: str, b: str) -> MmaKind | str:
    t = target(target_name)
    needed = {"mma_sync": "BLOCK_SCALED_MMA", "tcgen05": "TCGEN05_BLOCK_SCALED"}.get(family)
    if needed is None or not t.has(needed):
        instead = "scale the finished partial accumulator: acc = acc + part * (sa * sb)"
        if family == "mma_sync" and t.has("TCGEN05_BLOCK_SCALED"):
            instead = "tcgen05 applies block scales here: accumulate in tensor memory, and bring the scales there with lm.tmem_copy"
        where = f", it exists on {', '.join(targets_with(needed))}" if needed is not None else ""
        return f"{target_name} has no block-scaled {_SPELLING[family]}{where}; {instead}"
    if a == b == "e2m1":
        return MmaKind("mxf4nvf4", 64, ("f32",), False, 4)
    if a in _F8F6F4 and b in _F8F6F4:
        return MmaKind("mxf8f6f4", 32, ("f32",), family == "tcgen05" and {a, b} <= _FP8, 8)
    return f"block scales apply to fp8, fp6 and fp4 operands, not to {a} x {b}"


def unpacked_problem(kind: MmaKind, a: str, b: str) -> str | None:
    """Why e2m1 cannot stand beside a wider operand; ``None`` where it does not."""
    if kind.name == "mxf8f6f4" and a != b and "e2m1" in (a, b):
        return f"{kind.name} reads each element from a byte of its own, a view or fragment of e2m1 packs two: {a} x {b} has no operand to read"
    return None


def scale_problem(target_name: str, kind: MmaKind, block: int, dtype: str, layout: str) -> str | None:
    """Why scales of this block, dtype and layout do not fit ``kind``; ``None`` when they do."""
    accepted = [s for s in SCALES.get(target_name, ()) if s.kind == kind.name or (kind.name == "mxf4nvf4" and s.kind == "mxf4")]
    if any((s.block, s.dtype, s.layout) == (block, dtype, layout) for s in accepted):
        return None
    options = "; ".join(f"{s.dtype} every {s.block} elements in {s.layout}" for s in accepted)
    return f"{target_name} scales {kind.name} by {options or 'nothing'}, found {dtype} every {block} elements in {layout}"


def shape_problem(family: Family, kind: MmaKind, m: int, n: int, k: int, *, warps: int = 4, split: tuple[int, int] | None = None,
                  ctas: int = 1, a_place: Place = "view", b_transposed: bool = False) -> str | None:  # fmt: skip
    """Why an M x N x K tile cannot be made of this kind's instructions by one role member; ``None`` when it can.

    ``warps`` and ``split`` are the member's warps and the fragment's ``warps=`` split (mma_sync).
    """
    if k % kind.k:
        return f"K = {k} is not a multiple of {kind.k}, the K of one {kind.name} instruction"
    if family == "mma_sync":
        wm, wn = split or (warps, 1)
        if m % (16 * wm) or n % (8 * wn):
            return f"m16n8 tiles over {wm} x {wn} warps need M a multiple of {16 * wm} and N of {8 * wn}, found {m} x {n}"
        return None
    if family == "wgmma":
        if warps % 4:
            return f"wgmma is executed by whole warpgroups of 4 warps, the member has {warps}"
        rows = 16 * warps
        if m % rows:
            return f"M = {m} is not a multiple of {rows}, 64 rows a warpgroup"
        if kind.name == "i8" and (n > 256 or n % 8 or (n > 32 and n % 16) or n == 40):
            return f"N = {n} is not 8, 16, 24, 32 or a multiple of 16 up to 256, as integer wgmma needs"
        if n % 8 or not 8 <= n <= 256:
            return f"N = {n} is not a multiple of 8 between 8 and 256"
        return None
    allowed_m: tuple[int, ...] = (64, 128) if ctas == 1 else (128, 256)
    if kind.name.startswith("mx"):
        allowed_m = (128,) if ctas == 1 else (128, 256)
    if m not in allowed_m:
        return f"M = {m} is not {' or '.join(map(str, allowed_m))}, the rows of one tcgen05 MMA with ctas={ctas}"
    # Documents disagree about N below these steps; the stricter ones are safe on every reading.
    wide = a_place == "tmem" or (b_transposed and kind.container_bits == 8)
    step = (8 if m == 64 else 16) if ctas == 1 else 32 if wide else 16
    if ctas == 1 and b_transposed and kind.container_bits == 8:
        step = 16
    if n % step or not step <= n <= 256:
        return f"N = {n} is not a multiple of {step} between {step} and 256"
    return None


def place_problem(family: Family, kind: MmaKind, a_place: Place, b_place: Place, a_transposed: bool, b_transposed: bool) -> str | None:
    """Why the operands cannot live or be read as they are; ``None`` when they can."""
    if family == "mma_sync":
        if (a_place, b_place) != ("frag", "frag"):
            return "mma.sync multiplies fragments, load the operands with .ldmatrix first"
        return None
    if b_place != "view":
        return f"{_SPELLING[family]} reads b from a shared-memory view, not from {'tensor memory' if b_place == 'tmem' else 'registers'}"
    if family == "wgmma" and a_place == "tmem":
        return "wgmma reads a from a view or from registers"
    if family == "tcgen05" and a_place == "frag":
        return "tcgen05 reads a from a view or from tensor memory, move the fragment there with lm.tmem_store"
    if a_transposed and a_place != "view":
        return "only a shared-memory operand is read transposed, this a is in " + ("tensor memory" if a_place == "tmem" else "registers")
    for name, transposed in (("a", a_transposed), ("b", b_transposed)):
        if transposed and not kind.may_transpose:
            return f"{_SPELLING[family]} reads {kind.name} operands K-major only, {name} is a .T view"
    return None


def accumulator_problem(kind: MmaKind, dtype: str) -> str | None:
    """Why ``dtype`` cannot be the accumulator; ``None`` when it can."""
    if dtype in kind.accumulators:
        return None
    return f"{kind.name} operands accumulate in {' or '.join(kind.accumulators)}, the accumulator is {dtype}"
