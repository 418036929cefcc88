"""The launch manifest: how a compiled schedule is launched, as data.

Lowering writes it beside the text, the judge evaluates it on concrete tensors (`cake_backend.binding`), and the worker that owns
the GPU only interprets the numbers that come out. Expressions are those of `cake_backend.expressions` over the scalar
arguments. All sizes are elements unless said; dimensions count from the outermost, boxes from the innermost.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from cake_backend.expressions import ExpressionError, names_in
from cake_backend.manifest_json import ManifestError, Reader

VERSION = 1
DTYPE_BYTES: dict[str, int] = {
    "bool": 1, "i8": 1, "u8": 1, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "e4m3": 1, "e5m2": 1, "ue8m0": 1,
}  # fmt: skip
SWIZZLE_SPAN: dict[str, int] = {"none": 0, "32b": 32, "64b": 64, "128b": 128}
CTYPES = ("i32", "u32", "i64", "u64", "f32")
MODES = ("in", "out", "inout", "const")
PARAM_KINDS = ("tmap", "ptr", "stride", "extent", "scalar", "expr", "hang", "counters")

Expr = str | int


@dataclass(frozen=True, slots=True)
class Param:
    """One kernel parameter, in order.

    kind: `tmap` (tensor map number `map`, 128 bytes by value), `ptr` (device address of `tensor`), `stride` (u64, elements) and
    `extent` (i32) of `tensor` along `dim`, `scalar` (argument `name`), `expr`, `hang` (u32* for hang records, see
    `cake_backend.judge.hangs`), `counters` (u32*, `Manifest.counters` words per CTA, zeroed before the launch).
    """

    kind: str
    map: int | None = None
    tensor: str | None = None
    dim: int | None = None
    name: str | None = None
    expr: Expr | None = None
    ctype: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {f: getattr(self, f) for f in self.__slots__ if getattr(self, f) is not None}


@dataclass(frozen=True, slots=True)
class Grid:
    """How many CTAs run: one a tile (`tiles`), or as many as are resident at once (`persistent`), never more than tiles.

    `tiles` holds the count along each scheduler axis; the first axes are rounded up to `cluster`.
    """

    kind: str
    tiles: tuple[Expr, ...]
    cluster: tuple[int, ...] = (1, 1)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tiles": list(self.tiles), "cluster": list(self.cluster)}


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch: `block` threads, `smem` bytes of dynamic shared memory, `pdl` where it may start before its predecessor ends.

    `clears` names tensors and workspaces that are set to zero in front of it. `module` numbers the cubin that holds the entry: a plan
    compiles each of its schedules on its own.
    """

    entry: str
    block: int
    grid: Grid
    params: tuple[Param, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)
    smem: int = 0
    ctas_per_sm: int = 1
    pdl: bool = False
    clears: tuple[str, ...] = ()
    module: int = 0

    def to_json(self) -> dict[str, Any]:
        optional = {"clears": list(self.clears), "module": self.module}
        return {
            "entry": self.entry,
            "block": self.block,
            "cluster": list(self.cluster),
            "smem": self.smem,
            "ctas_per_sm": self.ctas_per_sm,
            "grid": self.grid.to_json(),
            "pdl": self.pdl,
            "params": [p.to_json() for p in self.params],
            **{name: value for name, value in optional.items() if value},
        }


@dataclass(frozen=True, slots=True)
class TensorMap:
    """One TMA descriptor: `box` innermost first, `l2` promotion in bytes (0 for none), `fill` "zero" or "nan" outside the tensor."""

    tensor: str
    dtype: str
    rank: int
    box: tuple[int, ...]
    swizzle: str = "none"
    l2: int = 256
    fill: str = "zero"

    def to_json(self) -> dict[str, Any]:
        return {f: list(v) if isinstance(v := getattr(self, f), tuple) else v for f in self.__slots__}


@dataclass(frozen=True, slots=True)
class TensorParam:
    """A tensor argument: rank, dtype and mode (`in`, `out`, `inout`, or `const`: read only and written by nobody upstream)."""

    rank: int
    dtype: str
    mode: str

    def to_json(self) -> dict[str, Any]:
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True)
class Guard:
    """What must hold of the arguments before a launch; `line` is the schedule's own."""

    expr: Expr
    message: str
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True)
class Workspace:
    """Scratch memory the launcher provides; its contents are poisoned before every run."""

    name: str
    shape: tuple[Expr, ...]
    dtype: str

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything the host must know to launch a candidate. `scalars` maps argument names to "i32", "u32", "i64" or "f32"."""

    schedule: str
    target: str
    launches: tuple[Launch, ...]
    maps: tuple[TensorMap, ...] = ()
    tensors: dict[str, TensorParam] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    counters: int = 0
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "schedule": self.schedule,
            "target": self.target,
            "launches": [x.to_json() for x in self.launches],
            "maps": [x.to_json() for x in self.maps],
            "tensors": {n: t.to_json() for n, t in self.tensors.items()},
            "scalars": dict(self.scalars),
            "guards": [g.to_json() for g in self.guards],
            "workspaces": [w.to_json() for w in self.workspaces],
            "counters": self.counters,
        }

    def dumps(self) -> str:
        """Canonical JSON text."""
        return json.dumps(self.to_json(), indent=1, sort_keys=True)

    @staticmethod
    def loads(text: str) -> Manifest:
        """Read JSON text; raises ManifestError naming the place that is wrong."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"manifest is not JSON: {error}") from None
        return Manifest.from_json(data)

    @staticmethod
    def from_json(data: object) -> Manifest:
        """Read a JSON value strictly: unknown keys, wrong types and references to nothing are ManifestErrors."""
        return _read_manifest(Reader(data, "manifest"))


def _read_manifest(r: Reader) -> Manifest:
    if (version := r.integer("version")) != VERSION:
        raise ManifestError(f"manifest version {version}, expected {VERSION}")
    manifest = Manifest(
        schedule=r.text("schedule"),
        target=r.text("target"),
        launches=tuple(_read_launch(x) for x in r.items("launches")),
        maps=tuple(_read_map(x) for x in r.items("maps", default=True)),
        tensors={n: _read_tensor(x) for n, x in r.entries("tensors")},
        scalars={n: x.choice_value(CTYPES) for n, x in r.entries("scalars")},
        guards=tuple(
            Guard(g.expression("expr"), g.text("message"), g.integer("line", optional=True)) for g in r.closed_items("guards")
        ),
        workspaces=tuple(
            Workspace(w.text("name"), tuple(w.expressions("shape")), w.choice("dtype", DTYPE_BYTES))
            for w in r.closed_items("workspaces")
        ),
        counters=r.integer("counters", default=0),
    )
    r.close()
    _check_references(manifest)
    return manifest


def _read_launch(r: Reader) -> Launch:
    grid = r.child("grid")
    launch = Launch(
        entry=r.text("entry"),
        block=r.integer("block", least=1, most=1024),
        grid=Grid(
            grid.choice("kind", ("persistent", "tiles")),
            tuple(grid.expressions("tiles")),
            tuple(grid.integers("cluster", default=(1, 1), least=1)),
        ),
        params=tuple(_read_param(x) for x in r.items("params")),
        cluster=_three(r.integers("cluster", default=(1, 1, 1), least=1)),
        smem=r.integer("smem", default=0),
        ctas_per_sm=r.integer("ctas_per_sm", default=1, least=1, most=64),
        pdl=r.flag("pdl", default=False),
        clears=r.texts("clears"),
        module=r.integer("module", default=0, most=63),
    )
    grid.close()
    r.close()
    return launch


def _three(values: tuple[int, ...]) -> tuple[int, int, int]:
    padded = (*values, 1, 1, 1)
    return padded[0], padded[1], padded[2]


_FIELDS: dict[str, tuple[str, ...]] = {
    "tmap": ("map",),
    "ptr": ("tensor",),
    "stride": ("tensor", "dim"),
    "extent": ("tensor", "dim"),
    "scalar": ("name", "ctype"),
    "expr": ("expr", "ctype"),
    "hang": (),
    "counters": (),
}


def _read_param(r: Reader) -> Param:
    kind = r.choice("kind", PARAM_KINDS)
    read: dict[str, Any] = {
        "map": lambda: r.integer("map"),
        "tensor": lambda: r.text("tensor"),
        "dim": lambda: r.integer("dim", most=4),
        "name": lambda: r.text("name"),
        "expr": lambda: r.expression("expr"),
        "ctype": lambda: r.choice("ctype", CTYPES),
    }
    param = Param(kind, **{f: read[f]() for f in _FIELDS[kind]})
    r.close()
    return param


def _read_map(r: Reader) -> TensorMap:
    out = TensorMap(
        tensor=r.text("tensor"),
        dtype=r.choice("dtype", DTYPE_BYTES),
        rank=r.integer("rank", least=1, most=5),
        box=tuple(r.integers("box", least=1)),
        swizzle=r.choice("swizzle", SWIZZLE_SPAN, default="none"),
        l2=r.integer("l2", default=256),
        fill=r.choice("fill", ("zero", "nan"), default="zero"),
    )
    r.close()
    return out


def _read_tensor(r: Reader) -> TensorParam:
    out = TensorParam(r.integer("rank", least=1, most=5), r.choice("dtype", DTYPE_BYTES), r.choice("mode", MODES))
    r.close()
    return out


_ENTRY_NAME = re.compile(r"[A-Za-z_]\w{0,200}")


def _check_references(m: Manifest) -> None:
    """Every map, tensor and scalar that something points to exists."""
    buffers = {**{n: t.rank for n, t in m.tensors.items()}, **{w.name: len(w.shape) for w in m.workspaces}}
    if not m.launches:
        raise ManifestError("manifest has no launches")
    for i, tmap in enumerate(m.maps):
        if tmap.tensor not in buffers:
            raise ManifestError(f"maps[{i}] is of `{tmap.tensor}`, which is neither a tensor nor a workspace")
        if len(tmap.box) != tmap.rank:
            raise ManifestError(f"maps[{i}] has rank {tmap.rank} and a box of {len(tmap.box)} extents")
    for launch in m.launches:
        if not _ENTRY_NAME.fullmatch(launch.entry):
            raise ManifestError(f"`{launch.entry[:80]}` is no kernel name")
        for name in launch.clears:
            if name not in buffers:
                raise ManifestError(f"`{launch.entry}` clears `{name}`, which is neither a tensor nor a workspace")
        for i, p in enumerate(launch.params):
            where = f"parameter {i} of `{launch.entry}`"
            if p.map is not None and not 0 <= p.map < len(m.maps):
                raise ManifestError(f"{where} is map {p.map} of {len(m.maps)}")
            if p.tensor is not None and p.tensor not in buffers:
                raise ManifestError(f"{where} is of `{p.tensor}`, which is neither a tensor nor a workspace")
            if p.dim is not None and p.tensor is not None and not 0 <= p.dim < buffers[p.tensor]:
                raise ManifestError(f"{where} is dimension {p.dim} of `{p.tensor}`, which has {buffers[p.tensor]}")
            if p.name is not None and p.name not in m.scalars:
                raise ManifestError(f"{where} is the scalar `{p.name}`, which is not declared")
            if p.kind == "counters" and m.counters <= 0:
                raise ManifestError(f"{where} asks for counters, and the manifest has none")
    used: list[Expr] = [e for launch in m.launches for e in launch.grid.tiles]
    used += [p.expr for launch in m.launches for p in launch.params if p.expr is not None]
    used += [g.expr for g in m.guards] + [e for w in m.workspaces for e in w.shape]
    for expr in used:
        try:
            unknown = names_in(expr) - set(m.scalars)
        except ExpressionError as error:
            raise ManifestError(str(error)) from None
        if unknown:
            raise ManifestError(f"`{expr}` reads `{min(unknown)}`, which is no scalar of this manifest")
