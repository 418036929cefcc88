"""Where an operation runs for small arguments: every tile, member and iteration, with the values that its expressions have there.

Rules that no formula decides are tried on a few small arguments that respect `lm.assume`. What they find is a counterexample with
numbers; that they find nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from cake_ir.program import AssumeValues, Expr, For, If, Program
from cake_ir.scheduler import TileOrder, cluster_size, cluster_total, cta_tile
from cake_verify.analyses import ranges
from cake_verify.analyses.evaluate import apply, evaluate
from cake_verify.analyses.sites import Site
from cake_verify.analyses.trips import resolver_of, written

MOST = 2048
"""Positions of one operation that are looked at."""


class TooMany(Exception):
    """More positions than are looked at, or a loop whose bounds are not known."""


@dataclass(frozen=True, slots=True)
class Position:
    """One execution: run-time scalars, loop variables (tiles as their fields by name), the member; `high` says which end of its declared
    values an index tensor gives, `tile` which tile of the schedule it is."""

    program: Program
    args: Mapping[str, int]
    names: Mapping[str, Any]
    member: int = 0
    high: bool = False
    tile: tuple[int, ...] = ()
    inside: bool = True

    def value(self, e: Expr) -> Any:
        """The value of a resolved expression, None where something in it is not known."""
        return self._value(e, {})

    def _value(self, e: Expr, known: dict[int, Any]) -> Any:
        """`known` has the values of parts by identity: a name's definition is one expression wherever it stands."""
        op = e.op
        if op == "const":
            return e.attrs["value"]
        if op == "param":
            return self.args.get(str(e.attrs["name"]))
        if op == "var":
            found = self.names.get(str(e.attrs["name"]))
            return None if isinstance(found, dict) else found
        if op == "field":
            tile = self.names.get(str(e.args[0].attrs.get("name")))
            return tile.get(str(e.attrs["name"])) if isinstance(tile, dict) else None
        if op == "role_index":
            return self.member
        if op == "ld":
            return self._read(str(e.attrs["tensor"]))
        if id(e) in known:
            return known[id(e)]
        if op == "cast":
            v = self._value(e.args[0], known)
            v = v if isinstance(v, int) else None
        else:
            v = apply(op, [self._value(a, known) for a in e.args])
        known[id(e)] = v
        return v

    def _read(self, tensor: str) -> int | None:
        stated = declared_values(self.program, tensor)
        if stated is None:
            return None
        end = evaluate(self.program, stated.hi if self.high else stated.lo, self.args)
        return None if end is None else int(end) - 1 if self.high else int(end)

    def shown(self, names: Iterable[str]) -> str:
        """The arguments by name and where the operation stands, for a message."""
        parts = [f"{n} = {self.args[n]}" for n in sorted(names) if n in self.args]
        for name, v in self.names.items():
            parts += [f"{written(name)}.{k} = {x}" for k, x in v.items()] if isinstance(v, dict) else [f"{written(name)} = {v}"]
        return ", ".join(parts)


def declared_values(program: Program, tensor: str) -> AssumeValues | None:
    """What `lm.assume_values` says of an index tensor."""
    return next((d for d in program.decls if isinstance(d, AssumeValues) and d.tensor == tensor), None)


def parameters(program: Program, exprs: Iterable[Expr]) -> set[str]:
    """Run-time integers that the values of `exprs` depend on, and those that `lm.assume` ties to them."""
    found = {str(n.attrs["name"]) for e in exprs for n in e.walk() if n.op == "param"}
    facts = [{str(n.attrs["name"]) for n in a.cond.walk() if n.op == "param"} for a in program.assumes]
    grown = True
    while grown:
        grown = False
        for names in facts:
            if names & found and not names <= found:
                found |= names
                grown = True
    return found


def arguments(program: Program, names: Iterable[str], sizes: Iterable[int] = (), limit: int = 24) -> Iterator[dict[str, int]]:
    """Small values of run-time integers that keep every `lm.assume` among them; `sizes` are further numbers of blocks to try."""
    wanted = sorted(names)
    facts = [c for a in program.assumes for c in ranges.conjuncts(a.cond) if {str(n.attrs["name"]) for n in c.walk() if n.op == "param"} <= set(wanted)]
    defined: dict[str, Expr] = {}
    for c in facts:
        for one, other in (c.args, c.args[::-1]) if c.op == "eq" else ():
            if one.op != "param":
                continue
            name = str(one.attrs["name"])
            if name not in defined and all(n.attrs.get("name") not in (name, *defined) for n in other.walk() if n.op == "param"):
                defined[name] = other
                break
    free = [n for n in wanted if n not in defined]
    tried = 0
    for values in islice(product(*(_candidates(program, n, sizes) for n in free)), 4 * limit):
        args = dict(zip(free, values, strict=True))
        for name, e in defined.items():
            v = evaluate(program, e, args)
            if v is None:
                break
            args[name] = int(v)
        else:
            if all(evaluate(program, c, args) is not False for c in facts):
                yield args
                tried += 1
                if tried == limit:
                    return


def _candidates(program: Program, name: str, sizes: Iterable[int]) -> list[int]:
    """A block and one more, a single element, and `sizes` blocks, within what is assumed of the parameter."""
    r = ranges.of(program, None, Expr("param", (), {"name": name}))
    block = next((b for b in _blocks(program, name)), 1)
    raw = [block + 1, 1, *(block * n for n in sizes)]
    mod = max(r.mod, 1)
    out: list[int] = []
    for v in raw:
        v = max(v, int(r.lo) if r.lo > 0 else 1)
        v += -(v - r.rem) % mod
        if v <= r.hi and v not in out:
            out.append(v)
    return out


def _blocks(program: Program, name: str) -> Iterator[int]:
    """Constants by which tile counts and lets divide a parameter."""
    for e in (*(e for s in program.schedulers.values() for e in s.tiles), *(x.value for x in program.lets.values())):
        for n in e.walk():
            if n.op in ("cdiv", "floordiv") and n.args[0].attrs.get("name") == name and isinstance(n.args[1].attrs.get("value"), int):
                yield int(n.args[1].attrs["value"])  # type: ignore[call-overload]  # an integer, see above


def around(site: Site, program: Program) -> list[Expr]:
    """The expressions that decide how often an operation runs: tile counts, bounds and conditions, resolved."""
    resolve = resolver_of(program, site.role.name)
    out: list[Expr] = []
    for s in site.path:
        if isinstance(s, If):
            out.append(s.cond)
        elif s.kind == "tiles":
            out += program.schedulers[str(s.scheduler)].tiles
        else:
            out += [e for e in (s.lo, s.hi) if e is not None]
    return [resolve(e) for e in out]


def positions(program: Program, site: Site, args: Mapping[str, int], high: bool = False) -> Iterator[Position]:
    """Every execution of an operation for `args`. Raises `TooMany`."""
    resolve = resolver_of(program, site.role.name)
    left = MOST
    for member in range(site.role.members):
        for p in _inner(program, site, 0, 0, Position(program, args, {}, member, high), resolve):
            left -= 1
            if left < 0:
                raise TooMany
            yield p


def _inner(program: Program, site: Site, depth: int, arm: int, p: Position, resolve: Any) -> Iterator[Position]:
    if depth == len(site.path):
        yield p
        return
    s = site.path[depth]
    if isinstance(s, If):
        holds = p.value(resolve(s.cond))
        if holds is not None and bool(holds) == site.arms[arm]:
            yield from _inner(program, site, depth + 1, arm + 1, p, resolve)
        return
    for v, tile, inside in _values(program, s, p, resolve):
        at = Position(program, p.args, {**p.names, s.var: v}, p.member, p.high, tile or p.tile, p.inside and inside)
        yield from _inner(program, site, depth + 1, arm, at, resolve)


def _values(program: Program, loop: For, p: Position, resolve: Any) -> Iterator[tuple[Any, tuple[int, ...], bool]]:
    """What a loop's variable takes: (value, the tile, whether the tile lies inside the tile counts)."""
    if loop.kind != "tiles":
        lo, hi = (p.value(resolve(e)) if e is not None else None for e in (loop.lo, loop.hi))
        if lo is None or hi is None or hi - lo > MOST:
            raise TooMany
        yield from ((i, (), True) for i in range(int(lo), int(hi)))
        return
    d = program.schedulers[str(loop.scheduler)]
    counts = [p.value(resolve(e)) for e in d.tiles]
    if d.kind == "grouped" or any(c is None for c in counts):
        raise TooMany
    order = TileOrder(tuple(max(0, int(c)) for c in counts), d.names, d.raster, d.swizzle, d.cluster)
    if cluster_total(order) * cluster_size(order) > MOST:
        raise TooMany
    for linear in range(cluster_total(order)):
        for rank in range(cluster_size(order)):
            t = cta_tile(order, linear, rank)
            yield dict(zip(d.names, t, strict=True)), t, all(a < b for a, b in zip(t, order.tiles, strict=True))
