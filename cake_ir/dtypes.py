"""The closed table of element types, and the casts that each target has in hardware.

Extents count elements and alignment rules count bytes, so a type states two widths: ``bits`` is what one element takes
in global and shared memory as the packed array the caller passes (4 for ``e2m1``, two elements a byte; 6 for the fp6
types, four elements in three bytes), ``container_bits`` what one element takes in a register fragment when it is
computed on.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Literal

from cake_ir.record import record

Kind = Literal["bool", "int", "uint", "float", "scale"]


@record()
class DType:
    """One element type.

    ``kind`` is ``"scale"`` for ``ue8m0``, an exponent-only type that holds powers of two and never enters arithmetic.
    ``exponent_bits`` and ``mantissa_bits`` (stored, without the hidden one) are 0 for integers.
    """

    name: str
    bits: int
    kind: Kind
    exponent_bits: int = 0
    mantissa_bits: int = 0
    max_finite: float = 0.0
    has_inf: bool = False
    numpy_name: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether values are floating point (``ue8m0`` is not: it is a scale)."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether values are signed or unsigned integers (``bool`` is not)."""
        return self.kind in ("int", "uint")

    @property
    def container_bits(self) -> int:
        """Register width of one element: packed 4- and 6-bit types are computed on in bytes, ``bool`` in a predicate."""
        return max(self.bits, 8)

    @property
    def packing(self) -> str:
        """How elements are laid out in memory, in words, for the types that are narrower than a byte."""
        if self.bits == 4:
            return "two elements a byte, the lower index in the low half"
        if self.bits == 6:
            return "four elements in three bytes"
        return f"{self.bits // 8} byte{'s' if self.bits > 8 else ''} an element"

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next value: the relative error of rounding to nearest (0 for integers)."""
        return 0.0 if not self.is_float else 2.0 ** -(self.mantissa_bits + 1)

    def bytes_for(self, elements: int) -> int:
        """Bytes that ``elements`` consecutive elements take.

        Raises ``ValueError`` when a packed type would end inside a byte.
        """
        total = elements * self.bits
        if total % 8:
            raise ValueError(f"{elements} elements of {self.name} end inside a byte ({self.packing})")
        return total // 8


_F32_MAX = float.fromhex("0x1.fffffep+127")

DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("bool", 8, "bool", numpy_name="bool"),
        DType("i8", 8, "int", max_finite=127.0, numpy_name="int8"),
        DType("u8", 8, "uint", max_finite=255.0, numpy_name="uint8"),
        DType("i32", 32, "int", max_finite=2147483647.0, numpy_name="int32"),
        DType("u32", 32, "uint", max_finite=4294967295.0, numpy_name="uint32"),
        DType("i64", 64, "int", max_finite=9223372036854775807.0, numpy_name="int64"),
        DType("u64", 64, "uint", max_finite=18446744073709551615.0, numpy_name="uint64"),
        DType("f16", 16, "float", 5, 10, 65504.0, True, "float16"),
        DType("bf16", 16, "float", 8, 7, float.fromhex("0x1.fep+127"), True, "bfloat16"),
        # Stored in 32 bits; the tensor core reads the upper 19.
        DType("tf32", 32, "float", 8, 10, float.fromhex("0x1.ffcp+127"), True, "float32"),
        DType("f32", 32, "float", 8, 23, _F32_MAX, True, "float32"),
        DType("e4m3", 8, "float", 4, 3, 448.0, False, "float8_e4m3fn"),
        DType("e5m2", 8, "float", 5, 2, 57344.0, True, "float8_e5m2"),
        DType("e2m1", 4, "float", 2, 1, 6.0, False, "float4_e2m1fn"),
        DType("e2m3", 6, "float", 2, 3, 7.5, False, "float6_e2m3fn"),
        DType("e3m2", 6, "float", 3, 2, 28.0, False, "float6_e3m2fn"),
        DType("ue8m0", 8, "scale", 8, 0, 2.0**127, False, "float8_e8m0fnu"),
    )
}


class UnknownDType(KeyError):
    """A dtype name outside the table; ``nearest`` is the closest name, or ``None`` when nothing is close."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nearest = nearest_dtype(name)
        hint = f", did you mean {self.nearest}" if self.nearest else ""
        super().__init__(f"unknown dtype {name}{hint}")

    def __str__(self) -> str:
        return str(self.args[0])


# Names that people bring from NumPy, PyTorch, PTX and CUTLASS.
_ALIASES = {
    "float32": "f32", "float": "f32", "fp32": "f32", "float16": "f16", "half": "f16", "fp16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3", "fp8": "e4m3", "float8": "e4m3", "float8_e5m2": "e5m2", "fp4": "e2m1", "float4": "e2m1",
    "int8": "i8", "s8": "i8", "uint8": "u8", "byte": "u8", "int": "i32", "int32": "i32", "s32": "i32", "uint32": "u32",
    "int64": "i64", "long": "i64", "s64": "i64", "uint64": "u64", "e8m0": "ue8m0", "int4": "i8", "f64": "f32", "double": "f32",
    "ue4m3": "e4m3", "e4m3fn": "e4m3", "pred": "bool",
}  # fmt: skip


def nearest_dtype(name: str) -> str | None:
    """The table's name closest to ``name``, aliases of other systems included; ``None`` when nothing is close."""
    low = name.lower()
    if low in DTYPES:
        return low
    if low in _ALIASES:
        return _ALIASES[low]
    import difflib

    close = difflib.get_close_matches(low, [*DTYPES, *_ALIASES], n=1, cutoff=0.5)
    return _ALIASES.get(close[0], close[0]) if close else None


def dtype(name: str) -> DType:
    """The dtype called ``name``; raises ``UnknownDType`` with the nearest name otherwise."""
    found = DTYPES.get(name)
    if found is None:
        raise UnknownDType(name)
    return found


# --- casts ------------------------------------------------------------------------------------------------------------

_FP8 = frozenset({"e4m3", "e5m2"})
_FP6 = frozenset({"e2m3", "e3m2"})
_NARROW = _FP8 | _FP6 | {"e2m1"}
_HALF = frozenset({"f16", "bf16"})

# Target sets. 100a-family `a` targets and the 120a family have the fp4/fp6/ue8m0 conversions; `.rs` is 100a/103a only.
_ALL = frozenset({"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"})
_SM89 = _ALL - {"sm_80"}
_SM90 = _SM89 - {"sm_89"}
_SM100 = _SM90 - {"sm_90a"}
_DATACENTRE_BLACKWELL = frozenset({"sm_100a", "sm_103a"})


@record()
class Cast:
    """How one value of ``src`` becomes one of ``dst``.

    ``steps`` is the chain of hardware conversions, source first (``("e4m3", "f16", "f32")``); ``targets`` where all of
    them exist; ``rounds`` the rounding modes of the last inexact step, the default first (empty when exact);
    ``saturates`` whether values beyond the range become the largest finite one whatever ``saturate=`` says.
    """

    src: DType
    dst: DType
    steps: tuple[str, ...]
    targets: frozenset[str]
    rounds: tuple[str, ...] = ()
    saturates: bool = False

    @property
    def cost(self) -> int:
        """Conversion instructions a value (or packed pair): 0 for the identity."""
        return len(self.steps) - 1


def _direct(src: str, dst: str) -> tuple[frozenset[str], tuple[str, ...], bool] | None:
    """The one-instruction conversion ``src`` to ``dst``: targets, rounding modes, saturation; ``None`` if there is none."""
    s, d = DTYPES[src], DTYPES[dst]
    if s.kind == "bool" and (d.is_integer or d.name in ("f32", "f16", "bf16")):
        return _ALL, (), False  # a select between 0 and 1
    if s.is_integer and d.is_integer:
        return _ALL, (), False
    if s.is_integer and d.name == "f32":
        return _ALL, () if s.bits <= 16 else ("rn", "rz", "rm", "rp"), False
    if s.name == "f32" and d.is_integer:
        return _ALL, ("rn", "rz", "rm", "rp"), True  # cvt clamps to the integer's range; NaN becomes 0
    if s.name == "f32" and d.name in _HALF:
        return _ALL, ("rn", "rz"), False
    if s.name in _HALF and d.name == "f32":
        return _ALL, (), False
    if s.name == "f32" and d.name == "tf32":
        return _ALL, ("rna",), False  # round half away; `.rn` needs 90a and buys nothing measurable
    if s.name == "tf32" and d.name == "f32":
        return _ALL, (), False  # a tf32 is an f32 with a short mantissa
    if s.name in ("f32", "f16") and d.name in _FP8:
        return _SM89, ("rn",), True
    if s.name == "f32" and d.name in _NARROW:
        return _SM100, ("rn",), True
    if s.name in _NARROW and d.name == "f16":
        return (_SM89 if s.name in _FP8 else _SM100), (), False
    if s.name == "f32" and d.name == "ue8m0":
        return _SM100, ("rz", "rp"), True
    if s.name == "ue8m0" and d.name == "bf16":
        return _SM100, (), False
    if s.name == "ue8m0" and d.name == "f32":
        return _ALL, (), False  # the byte is the exponent: one shift
    return None


_STOCHASTIC = frozenset({"bf16", "f16", "e4m3", "e5m2", "e2m1", "e2m3", "e3m2"})


@cache
def cast(src: str, dst: str) -> Cast | None:
    """The shortest chain of conversions from ``src`` to ``dst`` on any target, or ``None`` when the language has none.

    A target may lack it: look at ``targets``. ``bool`` has no cast *to* it (compare with 0) and ``ue8m0`` none but with
    f32 and bf16.
    """
    s, d = dtype(src), dtype(dst)
    if s is d:
        return Cast(s, d, (src,), _ALL)
    if d.kind == "bool":
        return None
    frontier: list[tuple[str, ...]] = [(src,)]
    for _ in range(3):
        grown: list[tuple[str, ...]] = []
        for path in frontier:
            # `f32` first: a detour through it is exact, one through f16 may overflow.
            for via in ("f32", "f16", "bf16", dst):
                if via in path or _direct(path[-1], via) is None:
                    continue
                if via == dst:
                    return _chain((*path, dst))
                if _widens(path[-1], via):
                    grown.append((*path, via))
        frontier = grown
    return None


def _widens(src: str, via: str) -> bool:
    """Whether every value of ``src`` is exact in ``via``, so that a detour through it loses nothing."""
    s, v = DTYPES[src], DTYPES[via]
    if s.kind == "bool":
        return True
    if s.is_integer:
        return v.name == "f32"  # integers have no other way to a narrow float; the rounding is the chain's
    return s.mantissa_bits <= v.mantissa_bits and s.exponent_bits <= v.exponent_bits


def _chain(steps: tuple[str, ...]) -> Cast:
    targets, saturates = _ALL, False
    rounds: tuple[str, ...] = ()
    for a, b in itertools.pairwise(steps):
        step = _direct(a, b)
        assert step is not None
        targets, rounds, saturates = targets & step[0], step[1] or rounds, saturates or step[2]
    return Cast(DTYPES[steps[0]], DTYPES[steps[-1]], steps, targets, rounds, saturates)


def cast_on(src: str, dst: str, target: str, round: str | None = None) -> Cast | str:
    """The cast ``src`` to ``dst`` on ``target``, or the reason it does not exist there (lower case, one sentence).

    ``round=None`` takes the default mode of the pair. ``"rs"`` (stochastic) exists from f32 on sm_100a and sm_103a.
    """
    found = cast(src, dst)
    if found is None:
        help_ = "compare with 0 instead" if dst == "bool" else "go through f32"
        return f"there is no cast from {src} to {dst}, {help_}"
    if target not in found.targets:
        return f"{target} has no conversion {src} to {dst}, it exists on {', '.join(sorted_targets(found.targets))}"
    if round == "rs":
        if src != "f32" or dst not in _STOCHASTIC:
            return f"stochastic rounding exists from f32 to {', '.join(sorted(_STOCHASTIC))}, not from {src} to {dst}"
        if target not in _DATACENTRE_BLACKWELL:
            return f"{target} has no stochastic rounding, it exists on sm_100a, sm_103a"
        return found
    if round is not None and found.rounds and round not in found.rounds and not (round == "rn" and found.rounds[0] == "rna"):
        return f"the cast from {src} to {dst} rounds {' or '.join(found.rounds)}, not {round}"
    return found


def sorted_targets(names: frozenset[str]) -> list[str]:
    """Target names in order of compute capability."""
    return sorted(names, key=lambda n: int("".join(c for c in n if c.isdigit())))
