"""A schedule as data: frozen records for declarations, statements, operations and expressions.

A `Program` is what `specialise` makes of a parsed template: compile-time values are folded, names are resolved, every node has a
type and a span. Mappings inside nodes are never changed after construction.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from cake_ir.expr import Const, Expr, Operand
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import Type


@record(eq=False)
class Op:
    """An operation with effects, as its spec in `cake_ir.ops` describes it.

    `operands` holds expressions by parameter name (a tuple of them for `coords`), `attrs` names of declared things (tensor, barrier,
    role, ..) and compile-time options. `id` numbers the operations of a program in text order.
    """

    name: str
    operands: dict[str, Operand]
    attrs: dict[str, Const]
    type: Type
    span: Span
    spans: dict[str, Span]
    id: int


# ------------------------------------------------------------------ statements


@record(eq=False)
class Assign:
    """Bind names: one, or several to the items of a pair. An `Op` value is executed; an `Expr` of scalar, slot or view type is evaluated.

    Fragment values always come as an `Op` (name `compute` for a pure expression tree, operand `value`), since writing registers is an
    effect. A fragment name is a place: assigning it again with the same type writes the same registers.
    """

    targets: tuple[str, ...]
    value: Expr | Op
    span: Span
    target_spans: tuple[Span, ...] = ()


@record(eq=False)
class Do:
    """Execute an operation for its effects."""

    op: Op
    span: Span


@record(eq=False)
class For:
    """A loop. kind `range` (lo, hi), `static` (constant trip count, unrolled by lowering) or `tiles` (over `scheduler`)."""

    kind: str
    var: str
    var_type: Type
    lo: Expr | None
    hi: Expr | None
    scheduler: str | None
    body: tuple[Stmt, ...]
    span: Span
    head: Span


@record(eq=False)
class If:
    """A branch on a condition that is uniform over the role member."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    span: Span
    head: Span


Stmt = Assign | Do | For | If


@record(eq=False)
class RoleBlock:
    """`with role:` and its statements."""

    role: str
    body: tuple[Stmt, ...]
    span: Span
    head: Span


# ------------------------------------------------------------------ parameters and declarations


@record(eq=False)
class Param:
    """A run-time parameter: `kind` is `tma`, `gmem` or `scalar`; `extents` are outermost first (names, ints) or empty if undeclared, `axes`
    are the extents as written, before tunables' values took their names' places. At the start it holds zeros if `zeroed`, data if `inout`.
    """

    name: str
    kind: str
    rank: int
    dtype: str | None
    span: Span
    const: bool = False
    zeroed: bool = False
    extents: tuple[str | int, ...] = ()
    axes: tuple[str | int, ...] = ()
    inout: bool = False


@record(eq=False)
class Launch:
    """`grid` is `tiles` or `persistent`; `cluster` is (x, y) in CTAs."""

    grid: str
    cluster: tuple[int, int]
    ctas_per_sm: int
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)


@record(eq=False)
class Assume:
    """A uniform predicate on run-time scalars: a fact for the gates, a guard in the launcher."""

    cond: Expr
    span: Span


@record(eq=False)
class AssumeValues:
    """Every element of `tensor` lies in [lo, hi); non-decreasing if `sorted`."""

    tensor: str
    lo: Expr
    hi: Expr
    sorted: bool
    span: Span


@record(eq=False)
class SmemPool:
    name: str
    nbytes: int
    span: Span


@record(eq=False)
class View:
    """A typed region of a pool: shape (rows, cols) or (n,), `stages` copies `stage_bytes` apart."""

    name: str
    pool: str
    offset: int
    shape: tuple[int, ...]
    dtype: str
    stages: int
    swizzle: str | None
    stage_bytes: int | None
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)


@record(eq=False)
class Tmem:
    """`width` 32-bit columns from `col` on, seen as (lanes, n) elements."""

    name: str
    col: int
    width: int
    shape: tuple[int, int]
    dtype: str
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)


@record(eq=False)
class Role:
    """Warps [warp_lo, warp_hi), split evenly over `members`; `regs` is the setmaxnreg budget a thread."""

    name: str
    warp_lo: int
    warp_hi: int
    regs: int | None
    members: int
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)

    @property
    def warps(self) -> int:
        return self.warp_hi - self.warp_lo

    @property
    def member_warps(self) -> int:
        return (self.warp_hi - self.warp_lo) // self.members


@record(eq=False)
class Pipeline:
    name: str
    stages: int
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)


@record(eq=False)
class Barrier:
    """`count` mbarriers, one a stage of `pipeline`. `arrive`: tx warp member thread cp_async mma. `init_count` is the author's claim."""

    name: str
    pipeline: str
    prod: tuple[str, ...]
    cons: tuple[str, ...]
    arrive: str
    primed: bool
    scope: str
    count: int | None
    init_count: int | None
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)


@record(eq=False)
class NamedBarrier:
    name: str
    roles: tuple[str, ...]
    per_member: bool
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)


@record(eq=False)
class Turns:
    name: str
    role: str
    span: Span


@record(eq=False)
class ClusterBarrier:
    name: str
    span: Span


@record(eq=False)
class Scheduler:
    """kind `grid static grouped counter clc`; `tiles` are counts by axis `names` (for grouped: of the last axis only)."""

    name: str
    kind: str
    tiles: tuple[Expr, ...]
    names: tuple[str, ...]
    raster: str | None
    swizzle: int
    cluster: tuple[int, int]
    offsets: str | None
    counter: str | None
    fetch: str | None
    block: int | None
    span: Span
    spans: dict[str, Span] = field(default_factory=dict)
    deal: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The integer fields of a tile, in the order in which a tile's value lists them."""
        return ("group", "m", "n", "row0", "rows") if self.kind == "grouped" else self.names


@record(eq=False)
class Let:
    """A uniform scalar computed once from run-time parameters, visible in every role."""

    name: str
    value: Expr
    span: Span


Decl = Launch | Assume | AssumeValues | SmemPool | View | Tmem | Role | Pipeline | Barrier | NamedBarrier | Turns | ClusterBarrier | Scheduler | Let


_TABLES: dict[type, str] = {
    SmemPool: "pools", View: "views", Tmem: "tmems", Role: "roles", Pipeline: "rings", Barrier: "barriers", NamedBarrier: "named", Turns: "turns",
    Scheduler: "schedulers", Let: "lets",
}  # fmt: skip
"""The dictionaries of a program, by what they index."""


@record(eq=False)
class Program:
    """One specialised schedule for one target.

    `decls` keep text order; the dictionaries below index them by name. `ops[i].id == i`. `facts` is what `cake_ir.fact` has worked out.
    """

    name: str
    target: str
    params: tuple[Param, ...]
    tunables: dict[str, Const]
    decls: tuple[Decl, ...]
    body: tuple[RoleBlock, ...]
    ops: tuple[Op, ...]
    span: Span
    doc: str = ""
    launch: Launch = field(init=False)
    pools: dict[str, SmemPool] = field(init=False)
    views: dict[str, View] = field(init=False)
    tmems: dict[str, Tmem] = field(init=False)
    roles: dict[str, Role] = field(init=False)
    rings: dict[str, Pipeline] = field(init=False)
    barriers: dict[str, Barrier] = field(init=False)
    named: dict[str, NamedBarrier] = field(init=False)
    turns: dict[str, Turns] = field(init=False)
    schedulers: dict[str, Scheduler] = field(init=False)
    lets: dict[str, Let] = field(init=False)
    assumes: tuple[Assume, ...] = field(init=False)
    tensors: dict[str, Param] = field(init=False)
    scalars: dict[str, Param] = field(init=False)
    facts: dict[object, object] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__  # the frozen class's own initialiser
        by: dict[type, dict[str, Any]] = {cls: {} for cls in _TABLES}
        launch, assumes = None, []
        for d in self.decls:
            table = by.get(type(d))
            if table is not None:
                table[getattr(d, "name")] = d  # noqa: B009 - declarations of these kinds have one
            elif isinstance(d, Assume):
                assumes.append(d)
            elif isinstance(d, Launch):
                launch = launch or d
        put(self, "launch", launch or Launch("tiles", (1, 1), 1, self.span))
        for cls, name in _TABLES.items():
            put(self, name, by[cls])
        put(self, "assumes", tuple(assumes))
        put(self, "tensors", {p.name: p for p in self.params if p.kind != "scalar"})
        put(self, "scalars", {p.name: p for p in self.params if p.kind == "scalar"})

    @property
    def threads(self) -> int:
        """Threads a CTA: every declared warp, whether or not its role has a block."""
        return 32 * max((r.warp_hi for r in self.roles.values()), default=1)


def statements(body: tuple[Stmt, ...], into: list[Stmt] | None = None) -> list[Stmt]:
    """Every statement of a body in text order, nested ones included, at the end of `into`."""
    into = [] if into is None else into
    for s in body:
        into.append(s)
        if isinstance(s, For):
            statements(s.body, into)
        elif isinstance(s, If):
            statements(s.then, into)
            statements(s.orelse, into)
    return into


def op_of(stmt: Stmt) -> Op | None:
    """The operation that a statement executes, if it executes one."""
    if isinstance(stmt, Do):
        return stmt.op
    return stmt.value if isinstance(stmt, Assign) and isinstance(stmt.value, Op) else None


def names_read(stmt: Stmt) -> set[str]:
    """The names that a statement itself reads, without those inside it."""
    op = op_of(stmt)
    read: list[Expr | None] = []
    if op is not None:
        read = [e for o in op.operands.values() for e in (o if isinstance(o, tuple) else (o,))]
    elif isinstance(stmt, For):
        read = [stmt.lo, stmt.hi]
    elif isinstance(stmt, If):
        read = [stmt.cond]
    elif isinstance(stmt, Assign) and isinstance(stmt.value, Expr):
        read = [stmt.value]
    return {str(n.attrs["name"]) for e in read if e is not None for n in e.parts() if n.op == "var"}
