"""Where every operation of a program stands: its role, the loops and branches around it, and what its statement binds."""

from __future__ import annotations

from operator import attrgetter

from cake_ir.fact import fact
from cake_ir.ops.vectors import rows_placed
from cake_ir.program import Assign, Do, Expr, For, If, Op, Program, Role, Stmt
from cake_ir.record import record
from cake_ir.types import FragT, ViewT


@record(eq=False)
class Site:
    """One operation in its place. `path` lists the enclosing loops and branches from the outside in; `order` counts within the role.

    `loops` are the loops of the path; `arms` says for each of its branches which arm the operation is in (True: then). `number` counts all of the text.
    """

    op: Op
    role: Role
    path: tuple[For | If, ...]
    loops: tuple[For, ...]
    arms: tuple[bool, ...]
    order: int
    number: int
    targets: tuple[str, ...] = ()

    def branches(self) -> list[tuple[If, bool]]:
        """The branches around it from the outside in, each with the arm that it is in."""
        return [*zip((x for x in self.path if isinstance(x, If)), self.arms, strict=True)] if self.arms else []


_NUMBER = attrgetter("number")


@record(eq=False)
class Binding:
    """One assignment of an expression (not of an operation) to a name of a role."""

    name: str
    value: Expr
    role: Role
    path: tuple[For | If, ...]


@record(eq=False)
class Sites:
    """All operations in text order, the same by their name and by role, and by role the bindings and the loops by variable."""

    ops: tuple[Site, ...]
    named: dict[str, tuple[Site, ...]]
    by_role: dict[str, tuple[Site, ...]]
    bindings: dict[tuple[str, str], tuple[Binding, ...]]
    loops: dict[tuple[str, str], tuple[For, ...]]
    results: dict[tuple[str, str], tuple[Site, ...]]

    def of_role(self, role: str) -> tuple[Site, ...]:
        return self.by_role.get(role, ())

    def of(self, *names: str) -> tuple[Site, ...]:
        """The operations of these names in text order: most rules are about a few, and most programs have none of them."""
        if len(names) == 1:
            return self.named.get(names[0], ())
        here = self.named.keys() & names
        if len(here) < 2:
            return self.named[here.pop()] if here else ()
        return tuple(sorted([s for name in here for s in self.named[name]], key=_NUMBER))


@fact
def sites(program: Program) -> Sites:
    """The sites of a program, found once."""
    return _Finder(program).run()


@fact
def stores_by_tensor(program: Program) -> tuple[tuple[Site, ...], ...]:
    """The stores at coordinates, those of one tensor together."""
    writers: dict[str, list[Site]] = {}
    for s in sites(program).of("tma_store", "store"):
        if isinstance(s.op.attrs.get("tensor"), str) and isinstance(s.op.operands.get("coords"), tuple):
            writers.setdefault(str(s.op.attrs["tensor"]), []).append(s)
    return tuple(tuple(stores) for stores in writers.values())


@fact
def rounds(program: Program, role: str) -> tuple[tuple[For, tuple[Site, ...]], ...]:
    """The counted loops of a role in text order, each with all operations in it."""
    found: dict[int, tuple[For, list[Site]]] = {}
    for s in sites(program).of_role(role):
        for x in s.loops:
            if x.kind != "tiles":
                found.setdefault(id(x), (x, []))[1].append(s)
    return tuple([(x, tuple(inside)) for x, inside in found.values()])


def by_member(cond: Expr) -> bool:
    """Whether a condition only says which members do it."""
    return all(n.op in ("role_index", "const", "eq", "ne", "lt", "le", "gt", "ge") for n in cond.parts())


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


def on_view(op: Op) -> str:
    """The declared view whose part an operation copies, loads or stores; empty where it has none."""
    e = op.operands.get("view")
    return e.type.view if isinstance(e, Expr) and isinstance(e.type, ViewT) else ""


def names_view(op: Op, view: str) -> bool:
    """Whether any operand is a part of a declared view."""
    return any(isinstance(e, Expr) and isinstance(e.type, ViewT) and e.type.view == view for e in op.operands.values())


@fact
def view_writers(program: Program) -> dict[str, tuple[Site, ...]]:
    """By declared view what writes it, in text order."""
    found: dict[str, list[Site]] = {}
    for s in sites(program).of(*VIEW_COPIES, "store", "send", "atomic"):
        if view := on_view(s.op):
            found.setdefault(view, []).append(s)
    return {name: tuple(by) for name, by in found.items()}


VIEW_COPIES = ("tma_load", "cp_async", "cp_async_rows", "bulk_load", "tma_gather")
"""What brings tiles of a tensor into a view."""


def starts_anew(op: Op) -> bool:
    """Whether a product may start its accumulator anew, at least in some round."""
    init = op.operands.get("init")
    return isinstance(init, Expr) and not (init.op == "const" and not init.attrs["value"])


def boxed(op: Op, axis: int) -> int:
    """Elements of one whole box of an access along an axis, innermost first: `box=`, the view's, or what is covered; `rows=` takes nothing off."""
    box, view = op.attrs.get("box"), op.operands.get("view")
    if isinstance(box, tuple):
        return int(box[axis]) if axis < len(box) else 1  # type: ignore[arg-type]  # integers by the option's kind; a box of too few is H003's
    if isinstance(view, Expr) and isinstance(view.type, ViewT):
        return view.type.cols if axis == 0 else view.type.rows if axis == 1 and view.type.rank == 2 else 1
    return covered(op, axis)


def extent_along(program: Program, op: Op, axis: int) -> str | int | None:
    """The extent of the axis of its tensor that a coordinate of an access counts, innermost first; None where none is declared."""
    tensor = program.tensors.get(str(op.attrs.get("tensor")))
    return tensor.extents[len(tensor.extents) - 1 - axis] if tensor is not None and axis < len(tensor.extents) else None


def constant_rounds(loop: For) -> int | None:
    """How many rounds a loop between two numbers has."""
    if loop.lo is None or loop.hi is None or loop.lo.op != "const" or loop.hi.op != "const":
        return None
    lo, hi = loop.lo.attrs["value"], loop.hi.attrs["value"]
    return hi - lo if isinstance(lo, int) and isinstance(hi, int) else None


class _Finder:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops: list[Site] = []
        self.named: dict[str, list[Site]] = {}
        self.by_role: dict[str, list[Site]] = {role: [] for role in program.roles}
        self.bindings: dict[tuple[str, str], list[Binding]] = {}
        self.loops: dict[tuple[str, str], list[For]] = {}
        self.results: dict[tuple[str, str], list[Site]] = {}

    def run(self) -> Sites:
        for block in self.program.body:
            self.body(block.body, self.program.roles[block.role], (), (), ())
        tuples = lambda d: {k: tuple(v) for k, v in d.items()}  # noqa: E731 - five uses, one line
        return Sites(tuple(self.ops), tuples(self.named), tuples(self.by_role), tuples(self.bindings), tuples(self.loops), tuples(self.results))

    def body(self, body: tuple[Stmt, ...], role: Role, path: tuple[For | If, ...], loops: tuple[For, ...], arms: tuple[bool, ...]) -> None:
        mine = self.by_role[role.name]
        for s in body:
            if isinstance(s, Do):
                self.site(Site(s.op, role, path, loops, arms, len(mine), len(self.ops)), mine)
            elif isinstance(s, Assign):
                if isinstance(s.value, Op):
                    found = Site(s.value, role, path, loops, arms, len(mine), len(self.ops), s.targets)
                    self.site(found, mine)
                    for name in s.targets:
                        self.results.setdefault((role.name, name), []).append(found)
                else:
                    for name in s.targets:
                        self.bindings.setdefault((role.name, name), []).append(Binding(name, s.value, role, path))
            elif isinstance(s, For):
                self.loops.setdefault((role.name, s.var), []).append(s)
                self.body(s.body, role, (*path, s), (*loops, s), arms)
            else:
                self.body(s.then, role, (*path, s), loops, (*arms, True))
                self.body(s.orelse, role, (*path, s), loops, (*arms, False))

    def site(self, found: Site, mine: list[Site]) -> None:
        self.ops.append(found)
        mine.append(found)
        self.named.setdefault(found.op.name, []).append(found)
