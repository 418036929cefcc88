"""What a fragment expression costs on the execution pipes of one warp, counted from its tree and the forms of its values."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cost.calibration import Constants
from cake_ir.dtypes import DTYPES
from cake_ir.forms import registers
from cake_ir.placement import fragment
from cake_ir.program import Expr
from cake_ir.types import FragT, ListT, PairT, Type

PIPES = ("alu", "fma", "mufu", "shfl", "cvt")

_ALU = frozenset("min max bitand bitor bitxor shl shr lt le gt ge eq ne and or where in_bounds iota floordiv mod".split())
_FMA = frozenset("add sub mul".split())
# Special functions: instructions on the special-function unit and on the FMA pipe that one element takes.
_SPECIAL: dict[str, tuple[float, float]] = {
    "exp2": (1, 0), "exp2_fma": (0, 8), "log2": (1, 0), "rcp": (1, 0), "rsqrt": (1, 0), "tanh": (1, 0), "exp": (1, 1), "log": (1, 1), "sqrt": (1, 1),
    "div": (1, 2), "sigmoid": (2, 2), "silu": (2, 3), "gelu": (1, 8), "erf": (1, 10),
}  # fmt: skip
_FREE = frozenset("var pair item frag_cols frag_rows frag_stage const dyn neg abs not view tmem".split())


@dataclass(slots=True)
class Count:
    """Instructions that each warp of the member issues, by pipe, and the latency that cannot be hidden (cycles)."""

    alu: float = 0.0
    fma: float = 0.0
    mufu: float = 0.0
    shfl: float = 0.0
    cvt: float = 0.0
    shuffles_deep: int = 0

    def add(self, other: Count) -> None:
        """Add another count in place."""
        for pipe in PIPES:
            setattr(self, pipe, getattr(self, pipe) + getattr(other, pipe))
        self.shuffles_deep += other.shuffles_deep

    @property
    def instructions(self) -> float:
        """Issue slots a warp takes."""
        return self.alu + self.fma + self.mufu + self.shfl + self.cvt

    def cycles(self, c: Constants, warps: int) -> dict[str, float]:
        """Busy cycles of each pipe of one scheduler, and of its issue port, for a member of `warps` warps."""
        share = max(1.0, warps / 4)
        out = {"alu": (self.alu * c.alu + self.cvt * c.cvt) * share, "fma": self.fma * c.fma * share, "mufu": self.mufu * c.mufu * share,
               "shfl": self.shfl * c.shfl * share, "issue": self.instructions * share}  # fmt: skip
        return {pipe: cycles for pipe, cycles in out.items() if cycles > 0}


def held(t: Type, warps: int) -> float:
    """Elements of a value that one thread holds."""
    return float(registers(fragment(t, warps))) if isinstance(t, FragT) else 0.0


def count(e: Expr, warps: int) -> Count:
    """The instructions that evaluating `e` takes, each node at the rank of its own value."""
    out = Count()
    _count(e, warps, out)
    return out


def _count(e: Expr, warps: int, out: Count) -> None:
    op, n = e.op, held(e.type, warps)
    fused: Expr | None = None
    if op in ("add", "sub") and n:
        # a product used once becomes part of a fused multiply-add
        fused = next((a for a in e.args if a.op == "mul" and held(a.type, warps) == n), None)
    for a in e.args:
        if a is fused:
            for inner in a.args:
                _count(inner, warps, out)
        else:
            _count(a, warps, out)
    if op in _FREE:
        return
    if op in ("frag", "rowvec", "colvec"):
        out.alu += n if e.attrs.get("init") is not None else 0.0
    elif op == "cast":
        _cast(e, n, out)
    elif op == "excess":
        out.alu += held(e.args[0].type, warps) / 2  # one operation looks at two signs; what follows a find is rare
    elif op in ("reduce", "sum", "finish", "argmin", "argmax", "topk", "amax_scale"):
        _reduction(e, warps, out)
    elif op in _SPECIAL and n:
        special, plain = _SPECIAL[op]
        out.mufu += special * n
        out.fma += plain * n
    elif op in _FMA and n:
        _arithmetic(e, n, out)
    elif op in _ALU or op == "transpose" or op == "scan":
        out.alu += n


def _arithmetic(e: Expr, n: float, out: Count) -> None:
    kind = DTYPES[getattr(e.type, "dtype", "f32")]
    if kind.is_float:
        out.fma += n / 2 if kind.bits <= 16 else n  # 16-bit arithmetic works on pairs
    else:
        out.alu += n


def _cast(e: Expr, n: float, out: Count) -> None:
    source, target = getattr(e.args[0].type, "dtype", "f32"), getattr(e.type, "dtype", "f32")
    if source == target or not n:
        return
    if DTYPES[target].bits < 32 and DTYPES[source].bits == 32:
        out.cvt += n / 2  # two elements a conversion
    else:
        out.alu += n


def _reduction(e: Expr, warps: int, out: Count) -> None:
    source = e.args[0].type
    if e.op in ("argmin", "argmax"):
        out.alu += 2 * held(source, warps)  # in groups of four: three minima, one against the best, a comparison, at most four selects, some of them shared
        return
    if e.op == "topk":
        out.alu += 2 * held(source, warps)
        return
    values = _values(source)
    if e.op == "finish":
        for v in values:
            n = held(v, warps)
            out.shfl += 2 * n
            out.alu += 2 * n * (1.5 if len(values) > 1 else 1)
        out.shuffles_deep += 2
        return
    n, left = held(source, warps), held(e.type, warps)
    pipe = "fma" if e.op == "sum" or e.attrs.get("op") == "add" else "alu"
    steps = 0 if e.attrs.get("partial") else _steps(e)
    setattr(out, pipe, getattr(out, pipe) + max(0.0, n - left) + steps * left)
    out.shfl += steps * left
    out.shuffles_deep += steps


def _steps(e: Expr) -> int:
    """Shuffles that combine the lanes of one reduction."""
    source, t = e.args[0].type, e.type
    if isinstance(source, FragT) and source.form == "vec":
        return ((t.chunk or 1) - 1).bit_length() if isinstance(t, FragT) and t.form == "rowvec" else 5
    return 2 if e.attrs.get("axis") == 1 else 3


def _values(t: Type) -> tuple[FragT, ...]:
    if isinstance(t, PairT):
        return (t.value, t.index)
    if isinstance(t, ListT):
        return (t.value, t.index)
    return (t,) if isinstance(t, FragT) else ()
