"""What the columns of a fragment hold that lie behind a tensor's end, followed from the load that fills them to the reduction that meets them.

A load with `clip` puts its `fill` (zero, or an infinity) into places that the tensor does not have. Elementwise operations carry that on: zero
times anything is zero, an exponential makes one of zero and zero of minus infinity. What meets a reduction has to be neutral in it: zero in a
sum, something low in a maximum. Whatever is not certain counts as neutral.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of, rounded_up

ZERO, NONE_BELOW, LOW, HIGH, OTHER, ROW = "zero", "a zero among numbers that are not negative", "something very low", "something very high", "another number", "row"
"""What a place behind the end holds; `ROW` is one number for the whole row, as scalars and row vectors are."""

State = tuple[str, "Filled | None", Span | None] | None
"""What such places hold, the load that began it and the computation that made it of that; None where nothing is known, or where nothing lies behind the end."""

_FAR = 1e20
_ADDS = frozenset({"sum"})


@record(eq=False)
class Filled:
    """A load whose last tile reaches past the end of its tensor."""

    site: Site
    extent: str | int


@record(eq=False)
class Met:
    """A reduction (`kind`) of columns among which some behind the end hold what is not neutral in it."""

    kind: str
    holds: str
    by: Filled
    made: Span | None
    at: Span
    op: Op
    role: str


def met(program: Program) -> Iterator[Met]:
    """The reductions that take in what is not there, at most one a role."""
    filled = {id(s.op): f for s in sites(program).of("load") if (f := _filled(program, s)) is not None}
    for block in program.body if filled else ():
        if any(id(s.op) in filled for s in sites(program).of_role(block.role)):
            flow = _Flow(block.role, filled)
            flow.run(block.body)
            yield from flow.found[:1]


def _filled(program: Program, s: Site) -> Filled | None:
    """A load that certainly reaches past the end along its columns for some arguments."""
    coords, t = s.op.operands.get("coords"), s.op.type
    tensor = program.tensors.get(str(s.op.attrs.get("tensor")))
    if not s.op.attrs.get("clip") or not isinstance(coords, tuple) or not isinstance(t, FragT) or t.form == "rowvec" or tensor is None or len(tensor.extents) != len(coords):
        return None
    extent, tile = tensor.extents[-1], t.cols
    if isinstance(extent, str) and isinstance(size := program.tunables.get(extent), int):
        extent = size
    if isinstance(coords[0].type, FragT) or (isinstance(extent, int) and extent % tile == 0):
        return None
    at = resolver_of(program, s.role.name)(coords[0])
    if isinstance(extent, str) and ranges.of(program, None, Expr("param", (), {"name": extent})).multiple_of(tile):
        return None
    if at.op == "const":
        start = at.attrs["value"]
        if not isinstance(start, int) or (ranges.of(program, None, Expr("param", (), {"name": extent})).lo if isinstance(extent, str) else extent) >= start + tile:
            return None
    elif not _to_the_end(program, s, at, extent, tile):
        return None
    return Filled(s, extent)


def _to_the_end(program: Program, s: Site, at: Expr, extent: str | int, tile: int) -> bool:
    """Whether a coordinate steps by tiles as often as the extent needs, rounded up: then the last one is not whole."""
    constant, terms = linear(at)
    if constant or [*terms.values()] != [tile]:
        return False
    (term,) = terms
    count: Expr | None = None
    for x in s.loops:
        if x.kind != "tiles":
            count = x.hi if term == f"?{x.var}" else count
        elif term.startswith("tile.") and (d := program.schedulers[str(x.scheduler)]).kind != "grouped" and term[5:] in d.names:
            count = d.tiles[d.names.index(term[5:])]
    count = resolver_of(program, s.role.name)(count) if count is not None else None
    up = rounded_up(count) if count is not None else None
    return up is not None and up[1] == tile and up[0].op in ("param", "const") and up[0].attrs.get("name" if isinstance(extent, str) else "value") == extent


def _number(v: object) -> str:
    x = float(v) if isinstance(v, int | float) else 1.0
    return ZERO if x == 0 else LOW if x < -_FAR else HIGH if x > _FAR else OTHER


class _Flow:
    """The places of one role in text order."""

    def __init__(self, role: str, filled: dict[int, Filled]) -> None:
        self.role, self.filled = role, filled
        self.state: dict[str, State] = {}
        self.found: list[Met] = []

    def run(self, body: tuple[Stmt, ...]) -> None:
        for s in body:
            if isinstance(s, For):
                self.run(s.body)
            elif isinstance(s, If):
                before = dict(self.state)
                self.run(s.then)
                then, self.state = self.state, before
                self.run(s.orelse)
                self.state = {k: v for k, v in self.state.items() if then.get(k) == v}
            elif isinstance(s, Assign) and isinstance(s.value, Expr):
                for name in s.targets:
                    self.state.pop(name, None)
            elif (op := op_of(s)) is not None:
                result = self.op(op)
                for name in s.targets if isinstance(s, Assign) else ():
                    self.state[name] = (*result[:2], op.span) if result is not None and op.name == "compute" else result
                acc = op.operands.get("acc")
                if isinstance(acc, Expr) and acc.op == "var":
                    self.state.pop(str(acc.attrs["name"]), None)

    def op(self, op: Op) -> State:
        if id(op) in self.filled:
            return _number(op.attrs.get("fill") or 0), self.filled[id(op)], None
        x = op.operands.get("value" if op.name == "compute" else "x")
        if not isinstance(x, Expr):
            return None
        value = self.value(x, op)
        if op.name == "reduce_across":
            self.meets(str(op.attrs.get("op")), value, op.attrs.get("axis"), op.span, op)
        return value if op.name == "compute" else None

    def meets(self, kind: str, value: State, axis: object, at: Span, op: Op) -> None:
        if value is None or value[1] is None or axis not in (1, None):
            return
        neutral = {"add": (ZERO, NONE_BELOW), "max": (LOW, NONE_BELOW), "min": (HIGH,)}.get(kind)
        if neutral is not None and value[0] not in neutral:
            self.found.append(Met(kind, value[0], value[1], value[2], at if at.line else op.span, op, self.role))

    def value(self, e: Expr, op: Op) -> State:
        """What an expression holds behind the end; reductions in it are asked."""
        if e.op == "const":
            return (ROW if _number(e.attrs["value"]) == OTHER else _number(e.attrs["value"])), None, None
        if e.op == "var" and isinstance(e.type, FragT) and e.type.form not in ("scalar", "rowvec"):
            return self.state.get(str(e.attrs["name"]))
        parts = [self.value(a, op) for a in e.args]
        if e.op in ("sum", "reduce"):
            self.meets("add" if e.op == "sum" else str(e.attrs.get("op")), parts[0], e.attrs.get("axis"), e.span, op)
        if e.op in ("argmax", "topk", "argmin"):
            self.meets("min" if e.op == "argmin" else "max", parts[0], 1, e.span, op)
        if not isinstance(e.type, FragT) or e.type.form in ("scalar", "rowvec"):
            return ROW, None, None
        if e.op == "frag" and e.attrs.get("init") is not None:
            return _number(e.attrs["init"]), None, None
        if e.op == "cast":
            return parts[0]
        of, made = next(((p[1], p[2]) for p in parts if p is not None and p[1] is not None), (None, None))
        kinds = [p[0] if p is not None else "" for p in parts]
        kind = _unary(e.op, kinds[0]) if len(kinds) == 1 else _binary(e, *kinds) if len(kinds) == 2 else ""
        return (kind, of, made) if kind else None


_ONE = {
    "neg": {ZERO: ZERO, LOW: HIGH, HIGH: LOW, OTHER: OTHER},
    "abs": {ZERO: NONE_BELOW, NONE_BELOW: NONE_BELOW, LOW: HIGH, HIGH: HIGH, OTHER: OTHER},
    "exp": {ZERO: OTHER, NONE_BELOW: OTHER, LOW: ZERO, HIGH: HIGH, OTHER: OTHER},
    "sigmoid": {ZERO: OTHER, NONE_BELOW: OTHER, LOW: ZERO},
    "tanh": {ZERO: ZERO, NONE_BELOW: NONE_BELOW},
    "silu": {ZERO: ZERO, NONE_BELOW: NONE_BELOW, LOW: ZERO},
    "sqrt": {ZERO: ZERO, NONE_BELOW: NONE_BELOW},
}
_ONE["exp2"] = _ONE["exp2_fma"] = _ONE["exp"]


def _unary(op: str, kind: str) -> str:
    return _ONE.get(op, {}).get(kind, "")


def _binary(e: Expr, a: str, b: str) -> str:
    """What two numbers give; nothing where either is not known, but that an infinity swallows what is added to it."""
    if not a or not b:
        return a or b if e.op == "add" and {a, b} & {LOW, HIGH} else a if e.op == "sub" and a in (LOW, HIGH) else ""
    op, zeros = e.op, (ZERO, NONE_BELOW)
    if op in ("add", "sub"):
        if a in zeros and b in zeros:
            return NONE_BELOW if op == "add" and a == b == NONE_BELOW else ZERO
        far = [k for k in (a, b) if k in (LOW, HIGH)]
        if op == "sub" and b in (LOW, HIGH):
            far = [k for k in (a, LOW if b == HIGH else HIGH) if k in (LOW, HIGH)]
        return OTHER if not far else far[0] if len(set(far)) == 1 else ""
    if op == "mul":
        if a in zeros or b in zeros:
            return "" if LOW in (a, b) or HIGH in (a, b) else NONE_BELOW if e.args[0] is e.args[1] or _same(*e.args) or NONE_BELOW in (a, b) else ZERO
        return a if b == ROW else b if a == ROW else OTHER if a == b == OTHER else ""
    if op == "div":
        return a if b == ROW else ""
    if op in ("max", "min"):
        if a == b:
            return a
        if op == "max" and LOW in (a, b):
            return b if a == LOW else a
        if op == "min" and HIGH in (a, b):
            return b if a == HIGH else a
    return ""


def _same(a: Expr, b: Expr) -> bool:
    return a.op == b.op == "var" and a.attrs["name"] == b.attrs["name"]


__all__ = ["HIGH", "LOW", "Filled", "Met", "met"]
