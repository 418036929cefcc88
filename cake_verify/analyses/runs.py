"""Fragments of consecutive numbers, `base + lm.iota(x, axis)` in whatever order it is written and under whatever name: as coordinates, and in masks."""

from __future__ import annotations

from collections.abc import Sequence

from cake_ir.derive.structure import OPPOSITE, TURNED, conjuncts
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of

MANY = 4096
"""Numbers of a run that are looked at one by one."""
_DEPTH = 12
_ALL = frozenset(range(5))


def run_of(program: Program, role: str, e: Expr) -> tuple[Expr, int] | None:
    """The first number of a run (resolved) and how many there are; None for a fragment that is no run."""
    run = _run(program, role, e, _DEPTH) if isinstance(e.type, FragT) else None
    return None if run is None else (run[0], run[1].rows if counts_rows(run[1], run[2]) else run[1].cols)


def reach_of(program: Program, role: str, e: Expr) -> tuple[Expr, int] | None:
    """The first number of a run, or of one divided by a number (words of bits, blocks that share a scale) or turned round by one (a neighbour, `n ^ 1`), and how
    many numbers from it on are in it at least."""
    e = defined(program, role, e)
    if e.op == "bitxor" and e.args[1].op == "const" and (run := run_of(program, role, e.args[0])) is not None and isinstance(first := _number(run[0]), int):
        turned = [n ^ int(e.args[1].attrs["value"]) for n in range(first, first + min(run[1], MANY))]  # type: ignore[call-overload]  # an integer, as what it turns round
        return Expr("const", (), {"value": min(turned)}, run[0].type), max(turned) - min(turned) + 1
    if e.op == "add" and isinstance(e.args[0].type, FragT) and not isinstance(e.args[1].type, FragT) and defined(program, role, e.args[0]).op == "floordiv":
        part = reach_of(program, role, e.args[0])
        return None if part is None else (Expr("add", (part[0], resolver_of(program, role)(e.args[1])), {}, e.args[1].type), part[1])
    by = e.args[1].attrs.get("value") if e.op == "floordiv" and e.args[1].op == "const" else None
    if not isinstance(by, int) or by < 1:
        return run_of(program, role, e)
    run = run_of(program, role, e.args[0])
    return None if run is None else (Expr("floordiv", (run[0], e.args[1]), {}, run[0].type), -(-run[1] // by))


def _number(e: Expr) -> int | None:
    constant, terms = linear(e)
    return None if terms else constant


def counts_rows(t: FragT, axis: object) -> bool:
    """Whether numbers along an axis count rows: a row vector does, and those of a `vec` of rows, which has no row vector of numbers, along axis 0."""
    return t.form == "rowvec" or (t.form != "colvec" and t.rank == 2 and axis == 0)


def defined(program: Program, role: str, e: Expr) -> Expr:
    """What a name of a fragment stands for, where it is bound once; the expression itself otherwise."""
    for _ in range(_DEPTH):
        if e.op != "var":
            break
        bound = sites(program).results.get((role, str(e.attrs["name"])), ())
        value = bound[0].op.operands.get("value") if len(bound) == 1 and bound[0].op.name == "compute" and len(bound[0].targets) == 1 else None
        if not isinstance(value, Expr):
            break
        e = value
    return e


def compared(program: Program, role: str, e: Expr) -> Expr:
    """A comparison of numbers as it holds, with a fragment on the left where one side is one: `not n > col` is `n <= col`, which is `col >= n`."""
    n, denied = defined(program, role, e), False
    while n.op == "not":
        n, denied = defined(program, role, n.args[0]), not denied
    if n.op not in TURNED or (denied and n.op not in OPPOSITE):
        return n
    op, (a, b) = OPPOSITE[n.op] if denied else n.op, n.args
    if isinstance(b.type, FragT) and not isinstance(a.type, FragT):
        return Expr(TURNED[op], (b, a), {}, n.type, n.span)
    return Expr(op, (a, b), {}, n.type, n.span) if denied else n


def at_least(op: str, a: Expr, b: Expr) -> tuple[int, dict[str, int]]:
    """`a < b`, `a <= b` and the like for whole numbers as a sum of terms that is at least a number: that number and the terms."""
    constant, terms = linear(Expr("sub", (b, a) if op in ("lt", "le") else (a, b)))
    return (op in ("lt", "gt")) - constant, terms


def _run(program: Program, role: str, e: Expr, depth: int) -> tuple[Expr, FragT, object] | None:
    """The first number, the type of the numbers themselves, before another fragment gave them its shape, and the axis that they run along."""
    e = defined(program, role, e)
    resolve = resolver_of(program, role)
    if e.op == "iota" and isinstance(e.type, FragT):
        return resolve(e.args[1]) if len(e.args) > 1 else Expr("const", (), {"value": 0}), e.type, e.attrs.get("axis")
    if not depth or e.op not in ("add", "sub") or len(e.args) != 2:
        return None
    left, right = e.args
    if not isinstance(right.type, FragT) or _nothing(program, role, right):
        run = _run(program, role, left, depth - 1)
        return run if run is None or isinstance(right.type, FragT) else (Expr(e.op, (run[0], resolve(right)), {}, right.type), *run[1:])
    if e.op == "add" and (not isinstance(left.type, FragT) or _nothing(program, role, left)):
        run = _run(program, role, right, depth - 1)
        return run if run is None or isinstance(left.type, FragT) else (Expr("add", (resolve(left), run[0]), {}, left.type), *run[1:])
    return None


def _nothing(program: Program, role: str, e: Expr) -> bool:
    """A fragment of zeros that a text adds to give a run the shape of another: `n + 0 * m`."""
    e = defined(program, role, e)
    return e.op == "mul" and any(a.op == "const" and a.attrs.get("value") == 0 for a in e.args)


def _axes(program: Program, role: str, coords: Sequence[Expr]) -> tuple[int, int]:
    """The axes of the tensor that rows and columns of a fragment run along: the second and the first, unless coordinates that are runs say otherwise."""
    forms: dict[int, str] = {}
    for k, c in enumerate(coords):
        if isinstance(c.type, FragT):
            run = _run(program, role, c, _DEPTH)
            forms[k] = (c.type if run is None else run[1]).form
    down, right = (next((k for k, form in forms.items() if form == wanted), None) for wanted in ("rowvec", "colvec"))
    if down is None:
        down = 0 if right == 1 else 1
    return down, right if right is not None else 1 if down == 0 else 0


def mask_ends(program: Program, s: Site) -> tuple[list[tuple[int, Expr]], frozenset[int]]:
    """By axis of the tensor, how many of an access's elements from the first on its mask lets through at most (resolved), and the axes along which
    something else decides too."""
    mask, x, coords = s.op.operands.get("mask"), s.op.operands.get("x"), s.op.operands.get("coords")
    t = x.type if isinstance(x, Expr) else s.op.type
    if not isinstance(mask, Expr) or not isinstance(t, FragT) or not isinstance(coords, tuple):
        return [], frozenset() if mask is None else _ALL
    role, resolve = s.role.name, resolver_of(program, s.role.name)
    placed = next((k for k, c in enumerate(coords) if isinstance(c.type, FragT)), 0)
    one_line = t.rank == 1 or t.form in ("rowvec", "colvec")
    down, right = (placed, placed) if one_line else _axes(program, role, coords)
    out: list[tuple[int, Expr]] = []
    unknown: set[int] = set()
    for part in conjuncts(defined(program, role, mask)):
        m = defined(program, role, part)
        if m.op == "in_bounds":
            out += [(down, resolve(m.args[1])), (right, resolve(m.args[2]))]
        elif m.op in ("lt", "le") and not isinstance(m.args[1].type, FragT) and (run := _run(program, role, m.args[0], _DEPTH)) is not None:
            end = Expr("sub", (resolve(m.args[1]), run[0]), {}, run[0].type)
            rows = counts_rows(run[1], run[2])
            out.append((down if rows else right, Expr("add", (end, Expr("const", (), {"value": 1}))) if m.op == "le" else end))
        else:
            form = m.type.form if isinstance(m.type, FragT) else ""
            if form == "vec" and m.op in TURNED and (of := _run(program, role, m.args[0], _DEPTH)) is not None and (not isinstance(m.args[1].type, FragT) or m.args[1].type.form == "rowvec"):
                form = "rowvec" if counts_rows(of[1], of[2]) else form  # rows against what belongs to their row
            unknown |= {down} if form == "rowvec" else {right} if form == "colvec" else _ALL
    return out, frozenset(unknown)


def elsewhere(program: Program, s: Site, ends: Sequence[tuple[int, Expr]]) -> tuple[int, int] | None:
    """An axis whose mask ends where something else counted from another axis's coordinate does, with that axis."""
    coords = s.op.operands.get("coords")
    if not isinstance(coords, tuple) or len(coords) < 2 or not ends:
        return None
    forms: list[dict[str, int]] = []
    for c in coords:
        first = run_of(program, s.role.name, c) if isinstance(c.type, FragT) else (resolver_of(program, s.role.name)(c), 1)
        forms.append(linear(first[0])[1] if first is not None else {})
    for axis, end in ends:
        for part in _least_of(end):
            terms = linear(part)[1]
            left = [bool(form) and all(terms.get(t, 0) == -n for t, n in form.items()) for form in forms]
            other = next((k for k, counted in enumerate(left) if counted and k != axis), None)
            if other is not None and forms[axis] and not left[axis]:
                return axis, other
    return None


def _least_of(e: Expr) -> list[Expr]:
    """What a minimum is the least of."""
    return [x for a in e.args for x in _least_of(a)] if e.op == "min" else [e]


__all__ = ["at_least", "compared", "defined", "elsewhere", "mask_ends", "reach_of", "run_of"]
