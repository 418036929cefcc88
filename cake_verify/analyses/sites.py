"""Where every operation of a program stands: its role, the loops and branches around it, and what its statement binds."""

from __future__ import annotations

from cake_ir.fact import fact
from cake_ir.ops.vectors import rows_placed
from cake_ir.program import Assign, Do, Expr, For, If, Op, Program, Role, Stmt
from cake_ir.record import record
from cake_ir.types import FragT, ViewT


@record(eq=False)
class Site:
    """One operation in its place. `path` lists the enclosing loops and branches from the outside in; `order` counts within the role.

    `arms` says for each `If` of the path which arm the operation is in (True: then).
    """

    op: Op
    role: Role
    path: tuple[For | If, ...]
    arms: tuple[bool, ...]
    order: int
    targets: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[For, ...]:
        return tuple(s for s in self.path if isinstance(s, For))


@record(eq=False)
class Binding:
    """One assignment of an expression (not of an operation) to a name of a role."""

    name: str
    value: Expr
    role: Role
    path: tuple[For | If, ...]


@record(eq=False)
class Sites:
    """All operations in text order, and by role the bindings and the loops by variable."""

    ops: tuple[Site, ...]
    bindings: dict[tuple[str, str], tuple[Binding, ...]]
    loops: dict[tuple[str, str], tuple[For, ...]]
    results: dict[tuple[str, str], tuple[Site, ...]]

    def of_role(self, role: str) -> tuple[Site, ...]:
        return tuple(s for s in self.ops if s.role.name == role)


@fact
def sites(program: Program) -> Sites:
    """The sites of a program, found once."""
    return _Finder(program).run()


def stores_by_tensor(program: Program) -> tuple[tuple[Site, ...], ...]:
    """The stores at coordinates, those of one tensor together."""
    writers: dict[str, list[Site]] = {}
    for s in sites(program).ops:
        if s.op.name in ("tma_store", "store") and isinstance(s.op.attrs.get("tensor"), str) and isinstance(s.op.operands.get("coords"), tuple):
            writers.setdefault(str(s.op.attrs["tensor"]), []).append(s)
    return tuple(tuple(stores) for stores in writers.values())


def covered(op: Op, axis: int) -> int:
    """Elements that one access covers along an axis, innermost first."""
    shape = op.attrs.get("shape")
    x = op.operands.get("x")
    t = x.type if isinstance(x, Expr) else None
    view, rows = op.operands.get("view"), op.operands.get("rows")
    if isinstance(view, Expr) and isinstance(view.type, ViewT):
        given = rows.attrs.get("value") if isinstance(rows, Expr) and rows.op == "const" else None
        return view.type.cols if axis == 0 else given if axis == 1 and isinstance(given, int) else 1
    if isinstance(shape, tuple):
        sizes = [int(v) for v in reversed(shape)]  # type: ignore[arg-type]  # integers by the option's kind
    elif isinstance(t, FragT):
        sizes = [t.rows] if t.form == "rowvec" else [t.cols] if t.rank == 1 or t.form == "colvec" else [t.cols, t.rows]
    else:
        sizes = [1]
    coords = op.operands.get("coords")
    if len(sizes) == 1 and isinstance(coords, tuple) and any(isinstance(c.type, FragT) for c in coords):
        return 1  # each element of a vector has a place of its own, and the other entries are the same for all
    if axis == 1 and len(sizes) == 2 and rows_placed(coords):
        return 1
    return sizes[axis] if axis < len(sizes) else 1


class _Finder:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops: list[Site] = []
        self.bindings: dict[tuple[str, str], list[Binding]] = {}
        self.loops: dict[tuple[str, str], list[For]] = {}
        self.results: dict[tuple[str, str], list[Site]] = {}
        self.order: dict[str, int] = {}

    def run(self) -> Sites:
        for block in self.program.body:
            self.body(block.body, self.program.roles[block.role], (), ())
        tuples = lambda d: {k: tuple(v) for k, v in d.items()}  # noqa: E731 - three uses, one line
        return Sites(tuple(self.ops), tuples(self.bindings), tuples(self.loops), tuples(self.results))

    def body(self, body: tuple[Stmt, ...], role: Role, path: tuple[For | If, ...], arms: tuple[bool, ...]) -> None:
        for s in body:
            if isinstance(s, Do):
                self.site(s.op, role, path, arms, ())
            elif isinstance(s, Assign):
                if isinstance(s.value, Op):
                    self.site(s.value, role, path, arms, s.targets)
                else:
                    for name in s.targets:
                        self.bindings.setdefault((role.name, name), []).append(Binding(name, s.value, role, path))
            elif isinstance(s, For):
                self.loops.setdefault((role.name, s.var), []).append(s)
                self.body(s.body, role, (*path, s), arms)
            else:
                self.body(s.then, role, (*path, s), (*arms, True))
                self.body(s.orelse, role, (*path, s), (*arms, False))

    def site(self, op: Op, role: Role, path: tuple[For | If, ...], arms: tuple[bool, ...], targets: tuple[str, ...]) -> None:
        order = self.order[role.name] = self.order.get(role.name, -1) + 1
        found = Site(op, role, path, arms, order, targets)
        self.ops.append(found)
        for name in targets:
            self.results.setdefault((role.name, name), []).append(found)
