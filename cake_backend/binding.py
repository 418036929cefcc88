"""From a manifest and concrete arguments to plain numbers that a worker can launch without evaluating anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from cake_backend.expressions import ExpressionError, Number, evaluate, evaluate_int, names_in
from cake_backend.manifest import DTYPE_BYTES, SWIZZLE_SPAN, Grid, Guard, Launch, Manifest, Param, TensorMap

MAX_CTAS = 2**31 - 1
_INT_RANGES: dict[str, tuple[int, int]] = {
    "i32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1),
    "i64": (-(2**63), 2**63 - 1),
    "u64": (0, 2**64 - 1),
}


class BindError(ValueError):
    """The arguments do not satisfy the manifest: a wrong rank or dtype, a guard that fails, a box the copy engine cannot take.

    `line` is the schedule's line where known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class OutsideDomain(BindError):
    """A guard of the manifest does not hold: the candidate itself says that it is not for these arguments."""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Shape and strides (elements, outermost first) of one buffer."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @staticmethod
    def dense(shape: Sequence[int], dtype: str) -> TensorLayout:
        """Row-major without gaps."""
        strides, step = [], 1
        for extent in reversed(shape):
            strides.append(step)
            step *= extent
        return TensorLayout(tuple(shape), tuple(reversed(strides)), dtype)

    @property
    def nbytes(self) -> int:
        """Bytes from the first to behind the last element (0 for an empty tensor)."""
        if 0 in self.shape:
            return 0
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (last + 1) * DTYPE_BYTES[self.dtype]

    def to_json(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "strides": list(self.strides), "dtype": self.dtype, "nbytes": self.nbytes}


def bind(
    manifest: Manifest, tensors: Mapping[str, TensorLayout], scalars: Mapping[str, Number]
) -> dict[str, Any]:
    """The concrete launches as a JSON value (format: `cake_backend.judge.device`).

    Raises BindError where an argument is missing or does not fit.
    """
    values = _scalars(manifest, scalars)
    layouts = _tensors(manifest, tensors)
    for w in manifest.workspaces:
        layouts[w.name] = TensorLayout.dense([_int(e, values) for e in w.shape], w.dtype)
    for guard in manifest.guards:
        if (told := unmet(guard, values, layouts)) is not None:
            raise OutsideDomain(told, guard.line)
    launches = [_launch(launch, manifest, layouts, values) for launch in manifest.launches]
    read = {p["map"] for launch in launches if launch["tiles"] for p in launch["params"] if p["kind"] == "tmap"}
    return {
        "launches": launches,
        # a launch without tiles is none: an empty batch needs no map of its empty tensors, which the copy engine would refuse
        "maps": [_map(i, m, layouts[m.tensor]) if i in read or 0 not in layouts[m.tensor].shape else None for i, m in enumerate(manifest.maps)],
        "tensors": {
            name: {**layouts[name].to_json(), "mode": spec.mode} for name, spec in manifest.tensors.items()
        },
        "workspaces": {w.name: layouts[w.name].to_json() for w in manifest.workspaces},
        "counters": manifest.counters,
    }


def unmet(guard: Guard, values: Mapping[str, Number], layouts: Mapping[str, TensorLayout]) -> str | None:
    """What a guard says of arguments that it does not hold for, with the values that it reads; None where it holds."""
    try:
        if evaluate(guard.expr, values, layouts):
            return None
        read = names_in(guard.expr)
    except ExpressionError as error:
        raise BindError(f"guard cannot be evaluated: {error}", guard.line) from None
    shown = ", ".join([f"{n}={v}" for n, v in sorted(values.items()) if n in read])
    quoted = "" if str(guard.expr) in guard.message else f" (`{guard.expr}`)"
    return f"{guard.message}{quoted}, which does not hold" + (f" for {shown}" if shown else "")


def _scalars(manifest: Manifest, given: Mapping[str, Number]) -> dict[str, Number]:
    values: dict[str, Number] = {}
    for name, ctype in manifest.scalars.items():
        if name not in given:
            raise BindError(f"no value for the scalar `{name}`")
        values[name] = _fit(name, given[name], ctype)
    return values


def _fit(name: str, value: Number, ctype: str) -> Number:
    if ctype == "f32":
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BindError(f"`{name}` is {ctype}, found {value!r}")
    low, high = _INT_RANGES[ctype]
    if not low <= value <= high:
        raise BindError(f"`{name}` = {value} does not fit {ctype}")
    return value


def _tensors(manifest: Manifest, given: Mapping[str, TensorLayout]) -> dict[str, TensorLayout]:
    layouts: dict[str, TensorLayout] = {}
    for name, spec in manifest.tensors.items():
        if name not in given:
            raise BindError(f"no tensor for `{name}`")
        layout = given[name]
        if len(layout.shape) != spec.rank:
            raise BindError(f"`{name}` has rank {spec.rank}, found a tensor of rank {len(layout.shape)}")
        if layout.dtype != spec.dtype:
            raise BindError(f"`{name}` is {spec.dtype}, found a tensor of {layout.dtype}")
        layouts[name] = layout
    return layouts


def _int(expr: str | int, values: Mapping[str, Number]) -> int:
    try:
        return evaluate_int(expr, values)
    except ExpressionError as error:
        raise BindError(str(error)) from None


def tile_count(grid: Grid, values: Mapping[str, Number]) -> int:
    """CTAs that the grid's tiles make, each leading axis rounded up to the cluster; 0 where an axis is empty."""
    total = 1
    for axis, expr in enumerate(grid.tiles):
        count = max(0, _int(expr, values))
        step = grid.cluster[axis] if axis < len(grid.cluster) else 1
        total *= -(-count // step) * step
    if total > MAX_CTAS:
        raise BindError(f"a grid of {total} CTAs, at most {MAX_CTAS} can be launched")
    return total


def _launch(
    launch: Launch, manifest: Manifest, layouts: Mapping[str, TensorLayout], values: Mapping[str, Number]
) -> dict[str, Any]:
    tiles, size = tile_count(launch.grid, values), prod(launch.cluster)
    if tiles % size:
        raise BindError(f"`{launch.entry}`: {tiles} CTAs are no multiple of the cluster of {size}")
    if not _writes_anything(launch, manifest, layouts):
        tiles = 0
    return {
        "entry": launch.entry,
        "block": launch.block,
        "cluster": list(launch.cluster),
        "smem": launch.smem,
        "ctas_per_sm": launch.ctas_per_sm,
        "tiles": tiles,
        "persistent": launch.grid.kind == "persistent",
        "pdl": launch.pdl,
        "clears": list(launch.clears),
        "module": launch.module,
        "params": [_param(p, manifest, layouts, values) for p in launch.params],
    }


def _writes_anything(launch: Launch, manifest: Manifest, layouts: Mapping[str, TensorLayout]) -> bool:
    """Whether any tensor or workspace that a launch may write has an element: without one it has nothing to do, however many tiles it makes."""
    named = {manifest.maps[p.map or 0].tensor if p.kind == "tmap" else p.tensor for p in launch.params if p.kind in ("tmap", "ptr")}
    written = [n for n in named if n is not None and (n not in manifest.tensors or manifest.tensors[n].mode in ("out", "inout"))]
    return not written or any(0 not in layouts[n].shape for n in written)


def _param(
    p: Param, manifest: Manifest, layouts: Mapping[str, TensorLayout], values: Mapping[str, Number]
) -> dict[str, Any]:
    match p.kind:
        case "tmap":
            return {"kind": "tmap", "map": p.map}
        case "ptr":
            return {"kind": "ptr", "tensor": p.tensor}
        case "stride" | "extent":
            layout = layouts[p.tensor or ""]
            of = layout.strides if p.kind == "stride" else layout.shape
            ctype = "u64" if p.kind == "stride" else "i32"
            value: Number = of[p.dim or 0]
        case "scalar":
            ctype, value = p.ctype or "i32", values[p.name or ""]
        case "expr":
            ctype = p.ctype or "i32"
            try:
                value = evaluate(p.expr if p.expr is not None else 0, values, layouts)
            except ExpressionError as error:
                raise BindError(str(error)) from None
            value = int(value) if isinstance(value, bool) else value
        case _:
            return {"kind": p.kind}
    return {"kind": ctype, "value": _fit(p.name or p.tensor or str(p.expr), value, ctype)}


def _map(i: int, m: TensorMap, layout: TensorLayout) -> dict[str, Any]:
    """Dimensions and strides (bytes) innermost first, as the driver's encoder takes them, checked against what it accepts."""
    size = DTYPE_BYTES[m.dtype]
    what = f"tensor map {i} of `{m.tensor}`"
    if len(layout.shape) != m.rank:
        raise BindError(f"{what} has rank {m.rank}, found a tensor of rank {len(layout.shape)}")
    if DTYPE_BYTES[layout.dtype] != size:
        raise BindError(f"{what} is of {m.dtype}, found a tensor of {layout.dtype}")
    if 0 in layout.shape:
        raise BindError(f"{what}: the tensor is empty, the copy engine needs every extent above 0")
    if layout.strides[-1] != 1:
        raise BindError(f"{what}: the innermost stride is {layout.strides[-1]} elements, the copy engine needs 1")
    dims = list(reversed(layout.shape))
    strides = [s * size for s in reversed(layout.strides[:-1])]
    for d, stride in enumerate(strides):
        if stride % 16:
            raise BindError(f"{what}: a stride of {stride} bytes along dimension {m.rank - 2 - d}, multiples of 16 expected")
        if not 0 < stride < 2**40:
            raise BindError(f"{what}: a stride of {stride} bytes along dimension {m.rank - 2 - d}, outside 16 to 2^40")
    for extent in m.box:
        if not 1 <= extent <= 256:
            raise BindError(f"{what}: a box extent of {extent}, 1 to 256 expected")
    inner = m.box[0] * size
    if inner % 16:
        raise BindError(f"{what}: the box is {inner} bytes wide, a multiple of 16 expected")
    span = SWIZZLE_SPAN[m.swizzle]
    if span and inner > span:
        raise BindError(f"{what}: the box is {inner} bytes wide, at most {span} with swizzle {m.swizzle}")
    if any(not 0 < n <= 2**32 for n in dims):
        raise BindError(f"{what}: an extent outside 1 to 2^32")
    return {
        "tensor": m.tensor, "dtype": m.dtype, "dims": dims, "strides": strides, "box": list(m.box),
        "swizzle": m.swizzle, "l2": m.l2, "fill": m.fill,
    }  # fmt: skip
