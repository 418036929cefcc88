"""Where an operation runs for small arguments: every tile, member and iteration, with the values that its expressions have there.

Rules that no formula decides are tried on a few small arguments that respect `lm.assume`. What they find is a counterexample with
numbers; that they find nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from operator import lt
from typing import Any

from cake_ir.derive.structure import conjuncts, stated
from cake_ir.fact import fact
from cake_ir.program import AssumeValues, Expr, For, If, Program, Scheduler
from cake_ir.record import record
from cake_ir.scheduler import TileOrder, cluster_size, cluster_total, decode_group, every_tile, group_totals
from cake_ir.types import ScalarT
from cake_verify.analyses import ranges
from cake_verify.analyses.fixed_scalars import definitions
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.sites import Site
from cake_verify.analyses.tape import LEAVES, Tape, evaluate, plain_tape, tape
from cake_verify.analyses.trips import resolver_of, written

MOST = 2048
"""Positions of one operation that are looked at."""


_SMALL = 64
"""Numbers in comparisons that are small enough for a launch to be walked."""
_NOWHERE: Mapping[str, Sequence[int]] = {}


class TooMany(Exception):
    """More positions than are looked at, or a loop whose bounds are not known."""


@record(eq=False)
class Position:
    """One execution: run-time scalars, loop variables (tiles as their fields by name), the member; `high` says which end of its declared
    values an index tensor gives (a name: that one the greatest, the others the least), `apart` that running offsets share all there is evenly, `tile` which tile of the schedule it is."""

    program: Program
    args: Mapping[str, int]
    names: Mapping[str, Any]
    member: int = 0
    high: bool | str = False
    tile: tuple[int, ...] = ()
    inside: bool = True
    apart: bool = False

    def value(self, e: Expr) -> Any:
        """The value of a resolved expression, None where something in it is not known."""
        return e.attrs["value"] if e.op == "const" else self.leaf(e) if e.op in LEAVES else tape(self.program, (e,)).run(self)[0]

    def values(self, exprs: tuple[Expr, ...]) -> list[Any]:
        """The values of several resolved expressions."""
        return tape(self.program, exprs).run(self)

    def leaf(self, e: Expr) -> Any:
        """The value of an expression that depends on the position itself."""
        op = e.op
        if op == "param":
            return self.args.get(str(e.attrs["name"]))
        if op == "var":
            found = self.names.get(str(e.attrs["name"]))
            return None if isinstance(found, dict) else found
        if op == "field":
            tile = self.names.get(str(e.args[0].attrs.get("name")))
            return tile.get(str(e.attrs["name"])) if isinstance(tile, dict) else None
        return self.member if op == "role_index" else self._read(str(e.attrs["tensor"]), e)

    def _read(self, tensor: str, e: Expr) -> int | None:
        stated = declared_values(self.program, tensor)
        if stated is None:
            return None
        if self.apart and tensor in prefix_tensors(self.program):
            return self._offset(tensor, stated, e)
        high = self.high is True or self.high == tensor
        end = evaluate(self.program, stated.hi if high else stated.lo, self.args)
        return None if end is None else int(end) - 1 if high else int(end)

    def _offset(self, tensor: str, stated: AssumeValues, e: Expr) -> int | None:
        """An element of running offsets that go from the least value that is stated to the greatest in even steps."""
        extents = self.program.tensors[tensor].extents
        count = extents[0] if len(extents) == 1 else None
        count = self.args.get(count) if isinstance(count, str) else count
        lo, end = (evaluate(self.program, x, self.args) for x in (stated.lo, stated.hi))
        i = self.value(e.args[0])
        if not isinstance(count, int) or not isinstance(lo, int) or not isinstance(end, int) or not isinstance(i, int) or not 0 <= i < count or count < 2:
            return None
        return lo + (end - 1 - lo) * i // (count - 1)

    def shown(self, names: Iterable[str]) -> str:
        """The arguments by name and where the operation stands, for a message."""
        parts = [f"{n} = {self.args[n]}" for n in sorted(names) if n in self.args]
        for name, v in self.names.items():
            parts += [f"{written(name)}.{k} = {x}" for k, x in v.items()] if isinstance(v, dict) else [f"{written(name)} = {v}"]
        return ", ".join(parts)


def valued(program: Program, e: Expr) -> Callable[[Position], Any]:
    """What gives the value of a resolved expression at one position after the other, as `Position.value` does at one."""
    if e.op == "const":
        v = e.attrs["value"]
        return lambda p: v
    if e.op in LEAVES:
        return lambda p: p.leaf(e)
    run = tape(program, (e,)).run
    return lambda p: run(p)[0]


def declared_values(program: Program, tensor: str) -> AssumeValues | None:
    """What `lm.assume_values` says of an index tensor."""
    return index_tensors(program).get(tensor)


@fact
def index_tensors(program: Program) -> dict[str, AssumeValues]:
    """By tensor what `lm.assume_values` says of it first."""
    found: dict[str, AssumeValues] = {}
    for d in program.decls:
        if isinstance(d, AssumeValues):
            found.setdefault(d.tensor, d)
    return found


def parameters(program: Program, exprs: Iterable[Expr]) -> set[str]:
    """Run-time integers that the values of `exprs` depend on, and those that `lm.assume` ties to them."""
    found = {str(n.attrs["name"]) for e in exprs for n in e.parts() if n.op == "param"}
    grown = True
    while grown:
        grown = False
        for names in _together(program):
            if names & found and not names <= found:
                found |= names
                grown = True
    return found


@fact
def _together(program: Program) -> tuple[frozenset[str], ...]:
    """By assumption the run-time integers that it is about, where there are several."""
    names = [frozenset([str(n.attrs["name"]) for n in cond.parts() if n.op == "param"]) for cond in _assumed(program)]
    return tuple([each for each in names if len(each) > 1])


def equated(program: Program, name: str) -> set[str]:
    """A run-time integer and those that follow from it, or it from them: `KB == K // 128`."""
    found, grown = {name}, True
    while grown:
        grown = False
        for equation in (c for cond in _assumed(program) for c in stated(cond) if c.op == "eq"):
            names = {str(n.attrs["name"]) for n in equation.parts() if n.op == "param"}
            if names & found and not names <= found and any(a.op == "param" for a in equation.args):
                found |= names
                grown = True
    return found


def arguments(program: Program, names: Iterable[str], sizes: Iterable[int] = (), limit: int = 24, ragged: Iterable[int] = (), near: Mapping[str, Sequence[int]] = _NOWHERE, fastest: str = "") -> Iterator[dict[str, int]]:
    """Small values of run-time integers that keep every `lm.assume` among them; `sizes` are further numbers of blocks to try, `ragged` such with a bit more, `near` values by name.
    All values of `fastest` come before those of another change."""
    free, defined, values, facts = _tied(program, tuple(sorted(names)))
    order = free if fastest not in free else [*(n for n in free if n != fastest), fastest]
    tried = 0
    for chosen in islice(product(*(_candidates(program, n, sizes, ragged, near.get(n, ())) for n in order)), 4 * limit):
        args = dict(zip(order, chosen, strict=True))
        for name, value in zip(defined, values, strict=True):
            (v,) = value.given(args)
            if v is None:
                break
            args[name] = int(v)
        else:
            if all([v is not False for v in facts.given(args)]):
                yield args
                tried += 1
                if tried == limit:
                    return


@fact
def _assumed(program: Program) -> tuple[Expr, ...]:
    """What is assumed, names of the declarations put out of the way."""
    resolve = resolver_of(program, "")
    return tuple([resolve(a.cond) for a in program.assumes])


@fact
def _tied(program: Program, wanted: tuple[str, ...]) -> tuple[list[str], list[str], list[Tape], Tape]:
    """Which of some arguments can be chosen, which follow from those, how, and the assumptions that are about no others."""
    facts = [c for cond in (*_assumed(program), *_possible(program)) for c in stated(cond) if {str(n.attrs["name"]) for n in c.parts() if n.op == "param"} <= set(wanted)]
    defined = definitions(facts, wanted)
    return [n for n in wanted if n not in defined], list(defined), [plain_tape(program, (e,)) for e in defined.values()], plain_tape(program, tuple(facts))


@fact
def _possible(program: Program) -> tuple[Expr, ...]:
    """That there is a number which the elements of each index tensor may hold: arguments for which there is none belong to no tensor."""
    resolve = resolver_of(program, "")
    return tuple([Expr("lt", (resolve(d.lo), resolve(d.hi)), {}, ScalarT("bool")) for d in program.decls if isinstance(d, AssumeValues)])


def turning(exprs: Iterable[Expr]) -> dict[str, list[int]]:
    """By parameter the numbers at which comparisons of it with a number change."""
    found: dict[str, list[int]] = {}
    for n in (n for e in exprs for n in e.parts()):
        if n.op in ("lt", "le", "gt", "ge", "eq", "ne"):
            for one, other in (n.args, n.args[::-1]):
                value = other.attrs["value"] if one.op == "param" and other.op == "const" else None
                if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _SMALL:
                    found.setdefault(str(one.attrs["name"]), []).extend((value, value + 1))
    return found


def _candidates(program: Program, name: str, sizes: Iterable[int], ragged: Iterable[int], near: Iterable[int]) -> list[int]:
    """A block and one more, a single element, `near` values, and `sizes` blocks, within what is assumed of the parameter."""
    r = ranges.of(program, None, Expr("param", (), {"name": name}))
    block = _blocks(program).get(name, 1)
    raw = [block + 1, 1, *near, *(block * n + 1 for n in ragged), *(block * n for n in sizes)]
    mod = max(r.mod, 1)
    out: list[int] = []
    for v in raw:
        v = max(v, int(r.lo) if r.lo > 0 else 1)
        v += -(v - r.rem) % mod
        if v <= r.hi and v not in out:
            out.append(v)
    return out


@fact
def _blocks(program: Program) -> dict[str, int]:
    """By parameter the first constant by which tile counts and lets divide it."""
    found: dict[str, int] = {}
    for e in (*(e for s in program.schedulers.values() for e in s.tiles), *(x.value for x in program.lets.values())):
        for n in e.parts():
            if n.op in ("cdiv", "floordiv") and isinstance(n.args[1].attrs.get("value"), int):
                found.setdefault(str(n.args[0].attrs.get("name")), int(n.args[1].attrs["value"]))  # type: ignore[call-overload]  # an integer, see above
    return found


def around(site: Site, program: Program) -> list[Expr]:
    """The expressions that decide how often an operation runs: tile counts, bounds and conditions, resolved."""
    resolve = resolver_of(program, site.role.name)
    out: list[Expr] = []
    for s in site.path:
        if isinstance(s, If):
            out.append(s.cond)
        elif s.kind == "tiles":
            d = program.schedulers[str(s.scheduler)]
            out += d.tiles
            if d.kind == "grouped" and (rows := group_rows(program, d)) is not None:
                out += rows
        else:
            out += [e for e in (s.lo, s.hi) if e is not None]
    return [resolve(e) for e in out]


def positions(program: Program, site: Site, args: Mapping[str, int], high: bool | str = False, free: bool = False, apart: bool = False) -> tuple[Position, ...]:
    """Every execution of an operation for `args`, worked out once for all operations of its block. Raises `TooMany`.

    With `free` a condition on nothing but what memory holds may hold and may not: some memory lets the operation run.
    """
    key = (positions, site.role.name, *map(id, site.path), site.arms, *sorted(args.items()), high, free, apart)
    found = program.facts.get(key)
    if found is None:
        try:
            found = tuple(_Executions(program, site, free).of(args, high, apart))
        except TooMany as many:
            found = many
        program.facts[key] = found
    if isinstance(found, TooMany):
        raise found
    return found  # type: ignore[return-value]  # what was put in under this key


class _Executions:
    """The executions of an operation: tiles, which arguments alone decide, are listed once, and conditions are taken apart once."""

    def __init__(self, program: Program, site: Site, free: bool) -> None:
        self.program, self.site = program, site
        self.resolve = resolver_of(program, site.role.name)
        self.tiles: dict[int, list[tuple[Any, tuple[int, ...], bool]]] = {}
        self.conditions = [[None if free and memory_alone(c) else valued(program, c) for c in conjuncts(self.resolve(s.cond))] for s in site.path if isinstance(s, If)]
        self.found: list[Position] = []

    def of(self, args: Mapping[str, int], high: bool | str, apart: bool) -> list[Position]:
        for member in range(self.site.role.members):
            self._from(0, 0, Position(self.program, args, {}, member, high, apart=apart))
        return self.found

    def _from(self, depth: int, arm: int, p: Position) -> None:
        """Put in the executions from a place on the path, in order."""
        path, arms = self.site.path, self.site.arms
        if depth == len(path):
            self.found.append(p)
            if len(self.found) > MOST:
                raise TooMany
            return
        loop = path[depth]
        if isinstance(loop, If):
            if _taken(p, self.conditions[arm], arms[arm]):
                self._from(depth + 1, arm + 1, p)
            return
        values = self.tiles.get(id(loop))
        if values is None:
            values = list(loop_values(self.program, loop, p, self.resolve))
            if loop.kind == "tiles":
                self.tiles[id(loop)] = values
        for v, tile, inside in values:
            self._from(depth + 1, arm, Position(self.program, p.args, {**p.names, loop.var: v}, p.member, p.high, tile or p.tile, p.inside and inside, p.apart))


def _taken(p: Position, parts: Sequence[Callable[[Position], Any] | None], arm: bool) -> bool:
    """Whether an arm is certainly taken, or may be where a part of the condition is up to memory (None)."""
    if arm:
        return all([value is None or bool(value(p)) for value in parts])
    return any([value is None or ((held := value(p)) is not None and not held) for value in parts])


def group_rows(program: Program, d: Scheduler) -> tuple[Expr, Expr] | None:
    """How many offsets a grouped scheduler has (of one group where no extent says how many), and the end of the last group at most; None where nothing states it."""
    stated, tensor = declared_values(program, str(d.offsets)), program.tensors.get(str(d.offsets))
    if stated is None or tensor is None:
        return None
    count = tensor.extents[0] if tensor.extents else 2
    return Expr("const", (), {"value": count}) if isinstance(count, int) else Expr("param", (), {"name": count}), stated.hi


MOST_GROUPS = 6


def _grouped(program: Program, d: Scheduler, n_tiles: int, p: Position) -> Iterator[tuple[Any, tuple[int, ...], bool]]:
    """The tiles of groups that share all rows there are as evenly as they can."""
    found = group_rows(program, d)
    count, end = (evaluate(program, e, p.args) for e in found) if found is not None else (None, None)
    if not isinstance(count, int) or not isinstance(end, int) or not 2 <= count <= MOST_GROUPS or end < 1 or not d.block:
        raise TooMany
    offsets = [(end - 1) * i // (count - 1) for i in range(count)]
    total = sum(group_totals(offsets, d.block, n_tiles, d.cluster))
    if total > MOST:
        raise TooMany
    for linear in range(total):
        t = decode_group(linear, offsets, d.block, n_tiles, d.raster, d.swizzle, d.cluster)
        if t is not None and t.rows > 0 and t.n < n_tiles:
            yield {"group": t.group, "m": t.m, "n": t.n, "row0": t.row0, "rows": t.rows}, (t.group, t.m, t.n), True


def memory_alone(e: Expr) -> bool:
    """Whether a condition compares what memory holds with launch arguments and numbers only: nothing of where the operation stands."""
    found = {n.op for n in outside_reads(e)}
    return "ld" in found and not found & {"var", "field", "role_index", "slot_index", "cta_rank", "cta_id"}


def loop_values(program: Program, loop: For, p: Position, resolve: Any) -> Iterator[tuple[Any, tuple[int, ...], bool]]:
    """What a loop's variable takes: (value, the tile, whether the tile lies inside the tile counts)."""
    if loop.kind != "tiles":
        lo, hi = (None, None) if loop.lo is None or loop.hi is None else p.values((resolve(loop.lo), resolve(loop.hi)))
        if lo is None or hi is None or hi - lo > MOST:
            raise TooMany
        yield from ((i, (), True) for i in range(int(lo), int(hi)))
        return
    d = program.schedulers[str(loop.scheduler)]
    counts = p.values(tuple([resolve(e) for e in d.tiles]))
    if any(c is None for c in counts):
        raise TooMany
    if d.kind == "grouped":
        yield from _grouped(program, d, int(counts[-1]), p)
        return
    order = TileOrder(tuple(max(0, int(c)) for c in counts), d.names, d.raster, d.swizzle, d.cluster)
    if cluster_total(order) * cluster_size(order) > MOST:
        raise TooMany
    for t in every_tile(order):
        yield dict(zip(d.names, t, strict=True)), t, all(map(lt, t, order.tiles))
