"""Row ranges of outputs whose rows are divided by offsets in memory: a store stays between its own offset and the next.

Where a coordinate contains `lm.ld(G, i)` and somewhere `lm.ld(G, i + 1)` is read as well, G divides the rows; that it grows is an
obligation of the launcher. Reads past the end only bring rows that nobody uses; a write there spoils the next sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_ir.fault import Fix
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Assign, Expr, Op, statements
from cake_ir.record import record
from cake_ir.types import FragT, ViewT
from cake_verify.analyses import edits, trips
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.sites import boxed
from cake_verify.analyses.state import Found, Member


@record(eq=False)
class Range:
    """One guarded coordinate of a store: position, the read of its offset, rows written (a value position or a constant). `late`: how far behind
    the offset the first of rows begins that have a number each, as a sum; `last`: whether the offset is where the sequence ends, from which rows are counted down."""

    op: Op
    coordinate: int
    tensor: str
    read: int
    rows_at: int | None
    rows: int
    late: tuple[int, dict[str, int]] | None = None
    last: bool = False


def _writes_tensor(op: Op, plan: Plan) -> bool:
    for e in effects_of(op, plan.program):
        touches = e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ()
        for t in touches:
            if t.space == "gmem" and "w" in t.mode:
                return True
    return False


def guarded(plan: Plan, op: Op) -> Range | None:
    """The coordinate of a store that has to stay inside one sequence, if one does."""
    coords = op.operands.get("coords")
    if not isinstance(coords, tuple) or not _writes_tensor(op, plan) or op.operands.get("mask") is not None or op.attrs.get("clip"):
        return None
    source, prefix = op.operands.get("view") or op.operands.get("x"), prefix_tensors(plan.program)
    if not prefix or not isinstance(source, Expr) or not isinstance(source.type, (ViewT, FragT)):  # one number has no rows of its own
        return None
    resolve = trips.resolver_of(plan.program, plan.sites[op.id].role)
    for k, e in enumerate(coords):
        run = run_of(plan.program, plan.sites[op.id].role, e)  # rows that have a number each
        if run is None and isinstance(e.type, FragT):
            continue
        offsets = [n for n in outside_reads(run[0] if run is not None else resolve(e)) if n.op == "ld" and n.attrs["tensor"] in prefix]
        if len({n.attrs["tensor"] for n in offsets}) != 1:  # behind the rows of another tensor's sequences: where those are to end nothing says
            continue
        n = offsets[0]
        if run is not None:
            return Range(op, k, str(n.attrs["tensor"]), int(n.attrs["op"]), None, run[1], trips.linear(Expr("sub", (run[0], n))))  # type: ignore[call-overload]  # as below
        extent = boxed(op, k)
        rows = plan.code.ops[op.id].index.get("rows")
        is_rows = rows is not None and extent == _view_rows(op)
        constant, terms = trips.linear(Expr("sub", (resolve(e), n)))
        down = constant <= 0 and any(c < 0 for c in terms.values()) and not any(c > 0 for c in terms.values())
        return Range(op, k, str(n.attrs["tensor"]), int(n.attrs["op"]), rows if is_rows else None, extent, last=down)  # type: ignore[call-overload]  # an `ld` carries its operation's number
    return None


def what_is_left(plan: Plan, op: Op, found: Range) -> Fix | None:
    """The edit that gives a store as many rows as its sequence has left, at most what it holds; None where the end has no name."""
    coords = op.operands.get("coords")
    end = _end_name(plan, op, found)
    if end is None or not isinstance(coords, tuple) or op.name not in ("tma_store", "bulk_store"):
        return None
    text = f"lm.min({found.rows}, {end} - ({trips.spoken(coords[found.coordinate])}))"
    return edits.replace(op.spans["rows"], text) if "rows" in op.spans else edits.add_argument(op.span, f"rows={text}")


def _end_name(plan: Plan, op: Op, found: Range) -> str | None:
    """The author's name for the offset after the one that the store's coordinate starts from."""
    program, role = plan.program, plan.sites[op.id].role
    resolve = trips.resolver_of(program, role)
    start = resolve(program.ops[found.read].operands["i"])  # type: ignore[arg-type]  # reads have one index
    for block in program.body:
        for s in statements(block.body) if block.role == role else ():
            if not isinstance(s, Assign) or len(s.targets) != 1 or s.targets[0].startswith("tmp"):  # a name of ours: the author's follows
                continue
            if isinstance(s.value, Op):
                index = s.value.operands.get("i") if s.value.name == "ld" and s.value.attrs.get("tensor") == found.tensor else None
            else:
                e = resolve(s.value)
                index = e.args[0] if e.op == "ld" and e.attrs["tensor"] == found.tensor else None
            if isinstance(index, Expr) and trips.linear(Expr("sub", (resolve(index), start))) == (1, {}):
                return trips.written(s.targets[0], s.target_spans[0] if s.target_spans else None)
    return None


def _view_rows(op: Op) -> int:
    view = op.operands.get("view")
    return view.type.rows if isinstance(view, Expr) and isinstance(view.type, ViewT) else -1


def _behind(plan: Plan, op: Op, constant: int, terms: dict[str, int]) -> Callable[[Member, int], int | None]:
    """The element that lies a sum of tile fields, rounds and members behind an offset; None where something else is in the sum."""
    loops = plan.sites[op.id].loops

    def value(m: Member, scope: dict[str, Any], term: str) -> Any:
        if term.startswith("role_index"):
            return m.index
        if term.startswith("?"):
            return scope.get(term[1:])
        tiles = [x for x in loops if x.kind == "tiles" and term.startswith("tile.")]
        if len(tiles) != 1:
            return None
        fields = plan.program.schedulers[str(tiles[0].scheduler)].fields
        return dict(zip(fields, scope.get(tiles[0].var, ()), strict=False)).get(term[5:])

    def behind(m: Member, offset: int) -> int | None:
        scope, first = m.variables(), offset + constant
        for term, n in terms.items():
            x = value(m, scope, term)
            if not isinstance(x, int):
                return None
            first += n * x
        return first

    return behind


def check_rows(plan: Plan, op: Op) -> Step | None:
    """A step that raises when the rows written leave the sequence that the coordinate belongs to."""
    found = guarded(plan, op)
    if found is None:
        return None
    at = plan.code.ops[op.id].index["coords"]
    number = op.id
    k, tensor, read, rows_at, fixed = found.coordinate, found.tensor, found.read, found.rows_at, found.rows

    late = _behind(plan, op, *found.late) if found.late is not None else None

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        i = m.lds.get(read)
        if i is None or i < found.last:
            return None
        i -= found.last
        start, end = m.world.values(tensor, i), m.world.values(tensor, i + 1)
        first = v[at][k] if late is None else late(m, start)
        if first is None:
            return None
        n = fixed if rows_at is None else min(v[rows_at], fixed)
        if n == min(fixed, end - first):
            m.world.exact.add(number)
        elif n < end - first < fixed:
            m.world.short.setdefault(number, (m.role, first, n, end))
        if n > 0 and not start <= first <= first + n <= end:
            raise Found("S013", range=found, first=first, rows=n, start=start, end=end, index=i)
        return None

    return step
