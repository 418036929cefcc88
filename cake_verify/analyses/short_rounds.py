"""Loops that end before the length does by which their last tile is cut.

`rows=lm.min(T, n - i * T)` and `lm.where(lm.iota(x, axis=1, base=i * T) < n, ..)` in a loop over tiles are there for the tile that n ends
in. A loop of fewer than `lm.cdiv(n, T)` rounds never comes to it, and where nothing else is cut by n, the rest of n is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake_ir.derive.mentions import holding, mentions
from cake_ir.derive.structure import nodes
from cake_ir.program import Expr, For, Op, Program
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of


@dataclass(frozen=True, slots=True)
class Short:
    """A loop whose last tile is not the one that is cut: what cuts it, where, and how many rounds are missing; 0 where the length is rounded down."""

    op: Op
    role: str
    loop: For
    at: Span
    length: Expr
    missing: int


def short_rounds(program: Program) -> Iterator[Short]:
    """The loops that end early, one for each length of a role by which nothing else is cut."""
    said = mentions(program).keys()
    chosen = ("compute", "atomic") if said >= {"where", "iota"} else ()
    masked = ("load", "store") if "in_bounds" in said else ()
    by_role: dict[str, dict[str, list[tuple[Site, Short | None]]]] = {role: {} for role in program.roles}
    choosing = holding(program)["where"] if chosen else frozenset[int]()
    for s in sites(program).of("tma_store", "bulk_store", *chosen, *masked):
        if s.op.name == "compute" and s.op.id not in choosing:
            continue
        for by, left, tile, at in _cuts(program, s):
            where = f"{by} {s.op.attrs.get('tensor', '')}" if s.op.name in _STORES else by  # what is stored elsewhere is something else
            by_role[s.role.name].setdefault(where, []).append((s, _ends(program, s, left, tile, at)))
    for role, found in by_role.items():
        for cuts in found.values():
            short = [x for _, x in cuts if x is not None]
            if len(short) == len(cuts) or (short and all(s.op.name == "load" for s, _ in cuts) and _apart(program, role, cuts)):
                yield short[0]


_STORES = frozenset({"store", "tma_store", "bulk_store"})
_PLAIN = frozenset({"load", "ld", "compute"})


def _apart(program: Program, role: str, cuts: list[tuple[Site, Short | None]]) -> bool:
    """Whether a loop that ends early leaves nothing but what it makes of its tiles from round to round, and the others go over the same tiles by
    themselves in loops of their own: none of them makes up for what it leaves out."""
    alone = [x.loop for _, x in cuts if x is not None]
    if any(x is None and not (s.loops and s.loops[-1] not in alone and s.loops[-1].kind == "range") for s, x in cuts):
        return False
    inside = [s for s in sites(program).of_role(role) if alone[0] in s.loops]
    kept = {t for s in inside for t in s.targets if s.op.name == "compute" and any(n.op == "var" and n.attrs["name"] == t for n in nodes(program)[s.op.id])}
    return bool(kept) and all(s.op.name in _PLAIN for s in inside)


def _cuts(program: Program, s: Site) -> Iterator[tuple[str, Expr, int, Span]]:
    """By what an operation is cut, what is left of that, and the elements of its tile."""
    rows = s.op.operands.get("rows")
    if s.op.name in ("tma_store", "bulk_store") and isinstance(rows, Expr):
        e = resolver_of(program, s.role.name)(rows)
        if e.op == "min" and len(e.args) == 2:
            for a, b in (e.args, e.args[::-1]):
                if a.op == "const" and isinstance(a.attrs["value"], int):
                    yield "rows", b, a.attrs["value"], s.op.spans.get("rows", s.op.span)
    mask = s.op.operands.get("mask")
    named = (_named(program, s, mask),) if isinstance(mask, Expr) and mask.op == "var" else ()
    for n in (*nodes(program)[s.op.id], *named):
        if n.op == "in_bounds" and s.op.name in ("load", "store"):
            yield from _in_bounds(program, s, n)
        if n.op != "where" or n.args[0].op != "lt":
            continue
        mask = n.args[0]
        run = run_of(program, s.role.name, mask.args[0]) if not isinstance(mask.args[1].type, FragT) else None
        iota = next((x for x in _named(program, s, mask.args[0]).parts() if x.op == "iota"), None) if run is not None else None
        tile = _covered(iota) if iota is not None else 0
        if run is not None and tile:
            resolve = resolver_of(program, s.role.name)
            yield str(linear(resolve(mask.args[1]))), Expr("sub", (resolve(mask.args[1]), run[0])), tile, mask.span if mask.span.line else s.op.span


def _named(program: Program, s: Site, e: Expr) -> Expr:
    """The expression that a fragment's name stands for, where it is bound once."""
    bound = sites(program).results.get((s.role.name, str(e.attrs["name"])), ()) if e.op == "var" else ()
    value = bound[0].op.operands.get("value") if len(bound) == 1 and bound[0].op.name == "compute" else None
    return value if isinstance(value, Expr) else e


def _covered(iota: Expr) -> int:
    """Elements that positions count along their axis; 0 for those of rows of a tile, which may be masked for what a tile itself leaves out."""
    model = iota.args[0].type
    if not isinstance(model, FragT):
        return 0
    return model.cols if iota.attrs.get("axis") == 1 else model.rows * model.cols if model.form == "vec" and model.rank == 1 else 0


def _in_bounds(program: Program, s: Site, mask: Expr) -> Iterator[tuple[str, Expr, int, Span]]:
    """By what the mask of a load or a store of a vector is cut: both numbers of it count the elements."""
    x, resolve = mask.args[0].type, resolver_of(program, s.role.name)
    if isinstance(x, FragT) and x.form == "vec" and x.rank == 1:
        left = resolve(mask.args[1])
        constant, terms = linear(left)
        loops = {f"?{loop.var}" for loop in s.loops}
        yield str((constant, {t: c for t, c in terms.items() if t not in loops})), left, x.rows * x.cols, mask.span if mask.span.line else s.op.span


def _ends(program: Program, s: Site, left: Expr, tile: int, at: Span) -> Short | None:
    """The loop around a cut, if it ends before its last tile."""
    resolve = resolver_of(program, s.role.name)
    terms = linear(left)[1]
    member = next((n for n in left.parts() if n.op == "role_index"), None)
    if member is not None and s.role.members > 1 and terms.get(canonical(member), 0) == -tile:  # members take turns: a round is a tile of each
        left = Expr("add", (left, Expr("mul", (Expr("const", (), {"value": tile}), member))))
        tile *= s.role.members
    for loop in s.loops:
        if terms.get(f"?{loop.var}", 0) != -tile or loop.lo is None or loop.hi is None:
            continue
        length = Expr("add", (left, Expr("mul", (Expr("const", (), {"value": tile}), Expr("var", (), {"name": loop.var})))))
        rounds = linear(Expr("cdiv", (length, Expr("const", (), {"value": tile}))))
        end = resolve(loop.hi)
        hi = linear(end)
        if hi[1] == rounds[1] and hi[0] < rounds[0] and not linear(length)[0]:
            return Short(s.op, s.role.name, loop, at, length, rounds[0] - hi[0])
        if any(_rounds_down(program, n, length, tile) for n in ((end,) if end.op != "min" else end.args)):
            return Short(s.op, s.role.name, loop, at, length, 0)
        if hi[0] < 0 and not linear(length)[0] and _part(end, hi[1], linear(length), tile):
            return Short(s.op, s.role.name, loop, at, length, -hi[0])
    return None


def _rounds_down(program: Program, e: Expr, length: Expr, tile: int) -> bool:
    """Whether an end is the whole tiles of a length."""
    return e.op == "floordiv" and e.args[1].attrs.get("value") == tile and linear(e.args[0]) == linear(length) and not ranges.of(program, None, e.args[0]).multiple_of(tile)


def _part(end: Expr, terms: dict[str, int], length: tuple[int, dict[str, int]], tile: int) -> bool:
    """Whether an end is that of a part of the rounds that a length needs, but for a number: the least of two, of which one is all of them."""
    if len(terms) != 1 or [*terms.values()] != [1]:
        return False
    every = (a for n in end.parts() if n.op == "min" and canonical(n) in terms for a in n.args if a.op == "cdiv")
    return any(a.args[1].attrs.get("value") == tile and linear(a.args[0]) == length for a in every)


__all__ = ["Short", "short_rounds"]
