"""A task: what a kernel must compute, on which data it is judged, and how exact its answer must be.

A task never mentions a schedule. A candidate binds to it by exact parameter names; everything else (extents, scalars, oracle,
tolerance, distributions, shapes) is the task's. NumPy is imported where values are made, not here.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from cake_backend.binding import TensorLayout
from cake_backend.expressions import Number, evaluate, evaluate_int
from cake_backend.manifest import DTYPE_BYTES

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Arrays = Mapping[str, Array]

Axes = Mapping[str, int]
FLOATS = ("bf16", "f16", "f32")
SHAPE_KINDS = ("sim", "check", "edge", "bench")


class TaskError(ValueError):
    """A task that contradicts itself, or a name that no task has."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument: `dims` are expressions over the task's axes, outermost first.

    mode is `in`, `out` or `inout`. An `optional` output may be left out by a candidate. `widens` says of a floating input that the
    oracle first converts it to float64, so that a caller may hand it over in f32, which NumPy converts much faster than bf16.
    """

    dims: tuple[str | int, ...]
    dtype: str
    mode: str = "in"
    optional: bool = False
    doc: str = ""
    widens: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in DTYPE_BYTES or self.mode not in ("in", "out", "inout"):
            raise TaskError(f"a tensor of {self.dtype} with mode {self.mode}")
        if self.widens and (self.mode == "out" or self.dtype not in FLOATS):
            raise TaskError(f"a tensor of {self.dtype} with mode {self.mode} that widens: only a floating input does")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar argument of type `i32`, `i64` or `f32`, as an expression over the axes or a constant."""

    dtype: str
    value: str | int | float
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """Named extents. kind: `sim` (small enough to simulate), `check`, `edge` (ragged, tiny), `bench` (timed)."""

    name: str
    axes: dict[str, int]
    kind: str = "check"

    def __post_init__(self) -> None:
        if self.kind not in SHAPE_KINDS:
            raise TaskError(f"shape `{self.name}` has kind {self.kind}, expected one of {', '.join(SHAPE_KINDS)}")


@dataclass(frozen=True, slots=True)
class AxisDomain:
    """Extents that an axis may take, for shapes drawn fresh: multiples of `multiple` from `low` to `high`."""

    low: int
    high: int
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Distribution:
    """One kind of input data. `make(rng, axes)` returns every `in` and `inout` tensor in its own dtype.

    `exact` says that ties and sums are exact in the kernel's arithmetic too, so that a tie must go to the lowest index.
    """

    name: str
    make: Callable[[np.random.Generator, Axes], dict[str, Array]]
    exact: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be from the oracle, element by element.

    compare `close`: |out - ref| <= atol + rtol |ref| + scaled * s, with s the oracle's own magnitude (`<output>.scale`) or the root
    mean square of the reference row. At least `ratio` of the elements must satisfy it, none may exceed `cap` times it, and no
    cluster of failures may fill a tile. compare `exact`: bit for bit. compare `argmin`: the index must name an element whose
    score is within the tolerance of the best.
    """

    reason: str
    compare: str = "close"
    atol: float = 0.0
    rtol: float = 0.0
    scaled: float = 0.0
    ratio: float = 1.0
    cap: float = 1.0
    tile: tuple[int, int] = (64, 64)

    def __post_init__(self) -> None:
        if self.compare not in ("close", "exact", "argmin") or not 0 < self.ratio <= 1 or self.cap < 1 or not self.reason:
            raise TaskError(f"tolerance {self!r}")

    def to_json(self) -> dict[str, Any]:
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True)
class Peer:
    """A known implementation to be compared with; `run` names it in `bench/`, never in a worker."""

    name: str
    run: str
    note: str = ""


class Oracle(Protocol):
    """`oracle(inputs, axes, rows)` computes every output in float64 (indices as int64) for the given flattened output rows.

    A row is one index of the output's leading `Task.row_dims` dimensions; rows None means all. Outputs come with shape
    (rows, rest). It may add `<output>.scale`, a magnitude per row or per element for the tolerance.
    """

    def __call__(self, inputs: Arrays, axes: Axes, rows: Array | None) -> dict[str, Array]: ...


class Witness(Protocol):
    """`witness(inputs, axes, rows, chosen)`: the float64 score of the chosen index in each row (for `compare="argmin"`)."""

    def __call__(self, inputs: Arrays, axes: Axes, rows: Array, chosen: Array) -> Array: ...


@dataclass(frozen=True, slots=True)
class Task:
    """Everything the judge needs to know of a computation. `flops` is an expression over the axes, for floors and rates.

    `unit` names the arithmetic that the flops are done in. An output compared as `argmin` has a `witness` and an `index_limit`
    (an expression: chosen indices are below it).
    """

    name: str
    doc: str
    axes: tuple[str, ...]
    tensors: dict[str, Tensor]
    scalars: dict[str, Scalar]
    shapes: tuple[Shape, ...]
    distributions: tuple[Distribution, ...]
    tolerances: dict[str, Tolerance]
    oracle: Oracle
    domain: dict[str, AxisDomain] = field(default_factory=dict)
    witness: dict[str, Witness] = field(default_factory=dict)
    index_limit: dict[str, str | int] = field(default_factory=dict)
    row_dims: int = 1
    flops: str | int = 0
    unit: str = "bf16"
    peers: tuple[Peer, ...] = ()

    def __post_init__(self) -> None:
        outputs = {n for n, t in self.tensors.items() if t.mode != "in"}
        if outputs != set(self.tolerances):
            raise TaskError(f"task `{self.name}`: tolerances for {sorted(self.tolerances)}, outputs are {sorted(outputs)}")
        for shape in self.shapes:
            if set(shape.axes) != set(self.axes):
                raise TaskError(f"task `{self.name}`: shape `{shape.name}` gives {sorted(shape.axes)}, axes are {sorted(self.axes)}")
            self.layouts(shape.axes)
            self.scalar_values(shape.axes)
        if self.domain and set(self.domain) != set(self.axes):
            raise TaskError(f"task `{self.name}`: a domain for {sorted(self.domain)}, axes are {sorted(self.axes)}: shapes are drawn from all of them or none")
        if missing := {n for n, t in self.tolerances.items() if t.compare == "argmin"} - (set(self.witness) & set(self.index_limit)):
            raise TaskError(f"task `{self.name}`: no witness or no index limit for {sorted(missing)}")
        if not self.shapes or not self.distributions or not outputs:
            raise TaskError(f"task `{self.name}` needs a shape, a distribution and an output")

    # ------------------------------------------------------------ numbers

    def layouts(self, axes: Axes) -> dict[str, TensorLayout]:
        """Dense layouts of all tensors at concrete extents."""
        return {
            name: TensorLayout.dense([evaluate_int(d, axes) for d in t.dims], t.dtype) for name, t in self.tensors.items()
        }

    def scalar_values(self, axes: Axes) -> dict[str, Number]:
        """All scalar arguments at concrete extents."""
        return {n: evaluate(s.value, axes) for n, s in self.scalars.items()}

    def rows(self, axes: Axes) -> int:
        """The number of output rows (products of the leading `row_dims` extents)."""
        first = next(n for n, t in self.tensors.items() if t.mode != "in")
        return prod(self.layouts(axes)[first].shape[: self.row_dims])

    def work(self, axes: Axes) -> dict[str, int]:
        """Floating-point operations, and the fewest bytes read and written."""
        layouts = self.layouts(axes)
        read = sum(layouts[n].nbytes for n, t in self.tensors.items() if t.mode != "out")
        written = sum(layouts[n].nbytes for n, t in self.tensors.items() if t.mode != "in" and not t.optional)
        return {"flops": evaluate_int(self.flops, axes), "bytes_read": read, "bytes_written": written}

    def shape(self, name: str) -> Shape:
        """The shape of that name; TaskError with the nearest one otherwise."""
        for s in self.shapes:
            if s.name == name:
                return s
        raise TaskError(_unknown("shape", name, [s.name for s in self.shapes]))

    def distribution(self, name: str) -> Distribution:
        """The distribution of that name; TaskError with the nearest one otherwise."""
        for d in self.distributions:
            if d.name == name:
                return d
        raise TaskError(_unknown("distribution", name, [d.name for d in self.distributions]))

    def inputs(self, axes: Axes, distribution: Distribution, seed: int) -> dict[str, Array]:
        """Input tensors for one seed; TaskError where the generator returns other names, shapes or dtypes than declared."""
        import numpy as np

        made = distribution.make(np.random.default_rng(seed), axes)
        expected = {n for n, t in self.tensors.items() if t.mode != "out"}
        if set(made) != expected:
            raise TaskError(f"distribution `{distribution.name}` makes {sorted(made)}, expected {sorted(expected)}")
        layouts = self.layouts(axes)
        out = {}
        for name, array in made.items():
            want = numpy_dtype(self.tensors[name].dtype)
            if array.shape != layouts[name].shape or array.dtype != want:
                raise TaskError(
                    f"distribution `{distribution.name}` makes `{name}` as {array.dtype}{list(array.shape)}, "
                    f"expected {want}{list(layouts[name].shape)}"
                )
            out[name] = np.ascontiguousarray(array)
        return out

    def specialised(self, params: Mapping[str, Any]) -> tuple[Shape, ...]:
        """The shapes that a candidate can take whose compile-time parameters fix some of the axes (same name, other value excludes)."""
        fixed = {a: v for a, v in params.items() if a in self.axes and a not in self.scalars and isinstance(v, int)}
        return tuple(s for s in self.shapes if all(s.axes[a] == v for a, v in fixed.items()))

    # ------------------------------------------------------------ binding

    def check_parameters(self, parameters: Iterable[Parameter]) -> tuple[BindingFault, ...]:
        """What keeps a candidate with these run-time parameters from being bound, in their order, then what it lacks."""
        faults: list[BindingFault] = []
        seen: set[str] = set()
        known = [*self.tensors, *self.scalars]
        for p in parameters:
            seen.add(p.name)
            fault: str | None = None
            nearest = None
            if p.name in self.scalars:
                s = self.scalars[p.name]
                if p.kind != "scalar":
                    fault = f"`{p.name}` is a scalar of type {s.dtype} in task `{self.name}`, found a tensor"
                elif p.dtype is not None and p.dtype != s.dtype:
                    fault = f"`{p.name}` is {s.dtype} in task `{self.name}`, found {p.dtype}"
            elif p.name in self.tensors:
                t = self.tensors[p.name]
                if p.kind == "scalar":
                    fault = f"`{p.name}` is a tensor of rank {len(t.dims)} in task `{self.name}`, found a scalar"
                elif p.rank != len(t.dims):
                    fault = f"`{p.name}` has rank {len(t.dims)} in task `{self.name}`, found rank {p.rank}"
                elif p.dtype is not None and p.dtype != t.dtype:
                    fault = f"`{p.name}` is {t.dtype} in task `{self.name}`, found {p.dtype}"
            else:
                nearest = nearest_name(p.name, known)
                fault = _unknown("parameter", p.name, known, f"task `{self.name}`")
            if fault is not None:
                faults.append(BindingFault(p.name, fault, nearest, getattr(p, "span", None)))
        for name, t in self.tensors.items():
            if t.mode != "in" and not t.optional and name not in seen:
                text = f"no parameter `{name}`, an output of task `{self.name}`"
                faults.append(BindingFault(name, text, None, None))
        return tuple(faults)


class Parameter(Protocol):
    """What a candidate declares: `kind` is `scalar` or names a tensor kind; dtype may be undeclared."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def dtype(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class BindingFault:
    """A parameter that does not fit the task: its name, one sentence, the nearest name where unknown, and its span where it has one."""

    parameter: str
    message: str
    nearest: str | None
    span: Any


def nearest_name(name: str, known: Sequence[str]) -> str | None:
    """The known name most like `name`, case aside, if any is near enough to be what was meant."""
    lowered = {k.lower(): k for k in reversed(known)}
    found = difflib.get_close_matches(name.lower(), lowered, 1, 0.3)
    return lowered[found[0]] if found else None


def _unknown(what: str, name: str, known: Sequence[str], owner: str = "") -> str:
    near = nearest_name(name, known)
    tail = f", nearest is `{near}`" if near else f", known are {', '.join(f'`{k}`' for k in known)}"
    return f"unknown {what} `{name}`{' for ' + owner if owner else ''}{tail}"


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an element type, with ml_dtypes for those that NumPy lacks."""
    import numpy as np

    plain = {
        "bool": "?", "i8": "i1", "u8": "u1", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8",
        "f16": "f2", "f32": "f4", "tf32": "f4", "f64": "f8",
    }  # fmt: skip
    if name in plain:
        return np.dtype(plain[name])
    import ml_dtypes

    special = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "ue8m0": "float8_e8m0fnu"}
    return np.dtype(getattr(ml_dtypes, special[name]))
