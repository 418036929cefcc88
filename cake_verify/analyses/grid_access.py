"""Where an operation touches global memory, as boxes of elements evaluated for one event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Effect, Flag, Issue, Touch
from cake_ir.program import Expr, If, Op, Program
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.grid_cells import FLAG, ONE_THREAD, READ, UPDATE, WRITE, Box, Interval
from cake_verify.analyses.labels import boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.read_numbers import from_memory
from cake_verify.analyses.row_meetings import heard
from cake_verify.analyses.sites import covered, sites
from cake_verify.analyses.state import Member
from cake_verify.analyses.tensors import written_tensors
from cake_verify.analyses.trips import canonical, linear, resolver_of
from cake_verify.analyses.value_bounds import Bounds

_KINDS = {"r": READ, "w": WRITE, "rw": UPDATE}
_FAR = 1 << 62
WHOLE: Interval = (-_FAR, _FAR)

Entry = tuple[tuple[str, ...], tuple[tuple[str, int], ...]]
"""How memory names a place: in words that are the same for all accesses that name it so, and the fields of the tile by which the entries of its tables differ."""

Where = Callable[[Member, tuple[Any, ...]], Box | None]
"""The box that one event touches, None where it touches nothing."""


@record(eq=False)
class Touching:
    """How one operation touches a tensor; `engine` names what does it, empty for ordinary accesses; `sure`: the box is exact; `told`: memory
    or a fragment says where, and is believed to give each of its executions elements of its own; `entry`: as different entries of a table do; `inner`: the
    box itself where memory only decides whether the access happens, and `where` gives all that another tile may touch in its place; `heard`: loads that the
    lanes of a row have all finished with before the value that it stores exists."""

    op: Op
    tensor: str
    kind: str
    engine: str
    sure: bool
    where: Where
    lanes: Any
    told: bool = False
    entry: Entry | None = None
    inner: Where | None = None
    heard: frozenset[int] = frozenset()


@fact
def touched(program: Program) -> dict[Op, tuple[str, str, str]]:
    """(tensor, kind, engine) of every operation's access of global memory, in text order."""
    return {op: found for op in program.ops if (effects := effects_of(op, program)) and (found := _touched(op, effects)) is not None}


def _touched(op: Op, effects: tuple[Effect, ...]) -> tuple[str, str, str] | None:
    for e in effects:
        if isinstance(e, Flag):
            return (str(op.attrs["flags"]), FLAG, "") if e.kind == "signal" else None
        for t in e.touches if isinstance(e, Issue) else (e,):
            if isinstance(t, Touch) and t.space == "gmem":
                return str(op.attrs[t.operand]), _KINDS[t.mode], e.engine if isinstance(e, Issue) else ""
    return None


def contended(program: Program, alias: Mapping[str, str] | None = None) -> frozenset[str]:
    """Tensors that one launch both writes and reads, writes at several places, or writes and updates; and the tensors of flags.

    `alias` names one parameter for all that are bound to one tensor.
    """
    same = alias or {}
    kinds: dict[str, list[str]] = {}
    accesses = touched(program)
    for op in program.ops:
        found = accesses.get(op)
        if found is not None:
            kinds.setdefault(same.get(found[0], found[0]), []).append(found[1])
        elif "flags" in op.attrs:
            kinds.setdefault(same.get(str(op.attrs["flags"]), str(op.attrs["flags"])), []).append(FLAG)
    return frozenset(t for t, k in kinds.items() if FLAG in k or k.count(WRITE) > 1 or (WRITE in k and len(set(k)) > 1) or (UPDATE in k and READ in k))


def touching(plan: Plan, op: Op, bounds: Bounds, extents: dict[tuple[str, int], int]) -> Touching | None:
    """How an operation touches a tensor, with the numbers of one setting."""
    found = touched(plan.program).get(op)
    if found is None:
        return None
    tensor, kind, engine = found
    rank = plan.program.tensors[tensor].rank
    sizes = _sizes(plan.program, tensor, extents)
    index = plan.code.ops[op.id].index
    if kind == FLAG or op.name == "ld":
        at = index["i"]
        return Touching(op, tensor, kind, engine, rank == 1 and plain(plan, op, (op.operands["i"],)), lambda m, v: _clip(((v[at], v[at] + 1),), sizes) if rank == 1 else None, None)
    if op.name == "bulk_load" and (rank == 1 or (rank == 2 and sizes[0] < _FAR)):
        first, count = index["offset"], index["n"]
        return Touching(op, tensor, kind, engine, plain(plan, op, (op.operands["offset"], op.operands["n"])), lambda m, v: _stretch(v[first], v[count], sizes), None)
    coords = op.operands.get("coords")
    box = boxed(plan, op)
    scalar = isinstance(coords, tuple) and op.name in ("store", "atomic") and not isinstance(getattr(op.operands.get("x"), "type", None), FragT)
    everything: Box = tuple((0, n) for n in sizes)
    if not isinstance(coords, tuple) or (box is None and not scalar) or op.name == "cp_async_rows":
        return Touching(op, tensor, kind, engine, False, lambda m, v: everything, None)
    along = {} if box is None else {k: (n, which) for k, n, which in ((box.row, box.rows, 0), (box.col, box.cols, 1)) if k is not None}
    sure = tuple(not isinstance(c.type, FragT) and plain(plan, op, (c,), branches=False) for c in coords)
    known = tuple(compress(coords, sure))
    decided = plain(plan, op, known) or (plain(plan, op, known, branches=False) and _one_arm(plan, tensor)) or _alike(plan, tensor)
    sizes_along = {k: n for k, (n, _) in along.items()}
    if not decided:  # memory chooses between branches: the other one may run in another tile
        shared = _shared_axes(plan, tensor)
        if not shared:
            return Touching(op, tensor, kind, engine, False, lambda m, v: everything, _one_thread(op))
        inner = _around(op, sure, index["coords"], sizes_along, sizes) if all(sure) and plain(plan, op, coords, branches=False) else None
        return Touching(op, tensor, kind, engine, False, _around(op, [k in shared for k in range(len(sure))], index["coords"], sizes_along, sizes), _one_thread(op), inner=inner)
    if not all(sure):
        return Touching(op, tensor, kind, engine, False, _around(op, sure, index["coords"], sizes_along, sizes),
                        _named(plan, op, coords) if any(isinstance(c.type, FragT) for c in coords) else _lanes(op), True, _entry(plan, op, [k for k, known in enumerate(sure) if not known]))  # fmt: skip
    mask = plan.code.ops[op.id].trees.get("mask")
    limit = bounds.limit(mask) if mask is not None else None
    exact = plain(plan, op, ()) and not (op.attrs.get("multicast") and plan.ranks > 1) and (op.operands.get("mask") is None or limit is not None)
    at, rows_at = index["coords"], index.get("rows")

    def where(m: Member, v: tuple[Any, ...]) -> Box | None:
        passed = limit(m, v) if limit is not None else None
        found = []
        for k, first in enumerate(v[at]):
            n, which = along.get(k, (1, 2))
            if passed is not None and which < 2 and passed[which] is not None:
                n = min(n, passed[which])
            if rows_at is not None and which == 0:
                n = min(n, max(0, v[rows_at]))
            found.append((first, first + n))
        return _clip(tuple(found), sizes)

    lanes = _lanes(op)
    return Touching(op, tensor, kind, engine, exact, where, lanes, heard=heard(plan.program).get(op.id, frozenset()) if lanes is None and op.name == "store" else frozenset())


def _entry(plan: Plan, op: Op, told: Sequence[int]) -> Entry | None:
    """The entries of tables that say where an access is, where each is one that a field of the tile numbers, or a part of it that other fields
    count: `(lm.ld(SLOT, t.b) * HEADS + t.h) * 128 + t.p * 64`; None where it is not."""
    site, coords = plan.sites[op.id], op.operands["coords"]
    assert isinstance(coords, tuple)  # asked by the caller
    resolve = resolver_of(plan.program, site.role)
    loops = {loop.var: d for loop in site.loops if loop.kind == "tiles" and (d := plan.program.schedulers[str(loop.scheduler)]).kind != "grouped"}
    texts: list[str] = []
    fields: list[tuple[str, int]] = []

    def field(e: Expr) -> tuple[str, int] | None:
        var, name = (str(e.args[0].attrs.get("name")), str(e.attrs["name"])) if e.op == "field" else ("", "")
        return (var, loops[var].names.index(name)) if var in loops and name in loops[var].names else None

    def within(x: Expr, factor: Expr, size: int) -> tuple[str, int] | None:
        """The field that counts the parts of `factor`, or so many of its elements at a time, of which an access touches `size`."""
        (step, at), whole = next(((k, f) for a, k in _steps(x) if (f := field(a)) is not None), (0, None)), factor.attrs.get("value")
        if at is None or step < size:
            return None
        count = resolve(loops[at[0]].tiles[at[1]])
        if step == 1 and canonical(count) == canonical(factor):
            return at
        many = ranges.of(plan.program, None, count).exact
        return at if many is not None and isinstance(whole, int) and many * step <= whole else None

    def parted(e: Expr, depth: int, size: int) -> tuple[Expr, list[tuple[str, int]]] | None:
        """The number that is read in a coordinate, and the fields that count the parts of what it numbers."""
        if e.op == "ld" or not depth:
            return (e, []) if e.op == "ld" and size == 1 else None
        if e.op == "mul":
            wide = [a for a, n in (e.args, e.args[::-1]) if size == 1 or (isinstance(many := n.attrs.get("value"), int) and many >= size)]
            return next((found for a in wide if (found := parted(a, depth - 1, 1)) is not None), None)
        for a, x in (e.args, e.args[::-1]) if e.op == "add" else ():
            for inner, factor in (a.args, a.args[::-1]) if a.op == "mul" else ():
                found = parted(inner, depth - 1, 1)
                if found is not None and (at := within(x, factor, size)) is not None:
                    return found[0], [*found[1], at]
        return None

    for k in told:
        c = coords[k]
        e = resolve(c)
        found = parted(e, 4, covered(op, k)) if sum(n.op == "ld" for n in e.parts()) == 1 and not isinstance(c.type, FragT) else None
        if found is None or found[0].attrs["tensor"] in written_tensors(plan.program):
            return None
        _, terms = linear(found[0].args[0])
        named = [n for n in found[0].args[0].parts() if n.op == "field" and n.args[0].op == "var"]
        at = field(named[0]) if len(named) == 1 else None
        if at is None or list(terms) != [f"tile.{named[0].attrs['name']}"]:
            return None
        fields += [at, *found[1]]
        texts.append(canonical(e))
    return tuple(texts), tuple(fields)


def _steps(x: Expr) -> Iterator[tuple[Expr, int]]:
    """A number by itself, or as a multiple of another one."""
    yield x, 1
    for a, k in (x.args, x.args[::-1]) if x.op == "mul" else ():
        if isinstance(k.attrs.get("value"), int):
            yield a, int(k.attrs["value"])  # type: ignore[call-overload]  # asked before


def _around(op: Op, sure: Sequence[bool], at: Any, along: Mapping[int, int], sizes: tuple[int, ...]) -> Where:
    """A box around an access of which memory decides a part: whole along the axes where memory or a fragment says which element, as the text says along the `sure` ones."""
    coords = op.operands["coords"]
    if isinstance(coords, tuple) and any(isinstance(c.type, FragT) for c in coords):
        along = {k: covered(op, k) for k in along}

    def where(m: Member, v: tuple[Any, ...]) -> Box | None:
        return _clip(tuple((a, a + along.get(k, 1)) if known else (0, n) for k, (a, known, n) in enumerate(zip(v[at], sure, sizes, strict=True))), sizes)

    return where


def _sizes(program: Program, tensor: str, extents: dict[tuple[str, int], int]) -> tuple[int, ...]:
    p = program.tensors[tensor]
    return tuple(extents.get((tensor, k), _FAR) if p.extents else _FAR for k in reversed(range(p.rank)))


def _clip(box: Box, sizes: tuple[int, ...]) -> Box | None:
    for (a, b), n in zip(box, sizes, strict=True):
        if a < 0 or b > n or a >= b:
            break
    else:  # nearly always: every access of a walk comes here
        return box
    cut = tuple((max(0, a), min(b, n)) for (a, b), n in zip(box, sizes, strict=True))
    return cut if all(a < b for a, b in cut) else None


def _stretch(first: int, count: int, sizes: tuple[int, ...]) -> Box | None:
    """Neighbouring elements of a tensor of one or two axes; of those that run over several rows, the rows."""
    if len(sizes) == 1:
        return _clip(((first, first + count),), sizes)
    row, col = divmod(first, sizes[0])
    if col + count <= sizes[0]:
        return _clip(((col, col + count), (row, row + 1)), sizes)
    return _clip(((0, sizes[0]), (row, -(-(first + count) // sizes[0]))), sizes)


def _lanes(op: Op) -> Any:
    """What decides which lane touches which element of a rectangle; None where that is not known."""
    x = op.operands.get("x")
    t = op.type if isinstance(op.type, FragT) else x.type if isinstance(x, Expr) else None
    return (t.form, t.warps, t.chunk, t.shape) if isinstance(t, FragT) and t.form not in ("rowvec", "colvec", "scalar") else _one_thread(op)


BY_NAME = "by name"
"""In front of lanes that numbers with a name tell: the lane that has a number touches the element that it names."""


def _named(plan: Plan, op: Op, coords: tuple[Expr, ...]) -> Any:
    """What decides which lane touches which element where fragments say so, each made of names that are bound once: the same expression of the same names
    in the same rounds means the same. None where something else does."""
    site = plan.sites[op.id]
    found, lanes, texts, resolve = sites(plan.program).results, _lanes(op), [], resolver_of(plan.program, site.role)
    for c in coords:
        if any(n.op == "var" and isinstance(n.type, FragT) and len(found.get((site.role, str(n.attrs["name"])), ())) != 1 for n in c.parts()):
            return None
        texts.append(str(c.attrs["name"]) if c.op == "var" and isinstance(c.type, FragT) else canonical(resolve(c)))
    return (BY_NAME, lanes, tuple(texts), tuple(loop.var for loop in site.loops)) if isinstance(lanes, tuple) and not op.attrs.get("clip") else None


def _one_thread(op: Op) -> Any:
    """That one thread of the member makes an access, the same for all such: its program orders them."""
    x = op.operands.get("x")
    scalar = op.name in ("store", "atomic") and isinstance(x, Expr) and (not isinstance(x.type, FragT) or x.type.form == "scalar")
    return ONE_THREAD if scalar else None


def _shared_axes(plan: Plan, tensor: str) -> frozenset[int]:
    """The axes along which all accesses of a tensor touch one and the same number of the tile: whichever of them memory lets run."""
    axes: frozenset[int] | None = None
    texts: dict[int, str] = {}
    for op, (name, _, _) in touched(plan.program).items():
        if name != tensor:
            continue
        coords, box, resolve = op.operands.get("coords"), boxed(plan, op), resolver_of(plan.program, plan.sites[op.id].role)
        if not isinstance(coords, tuple):
            return frozenset()
        long = set() if box is None else {k for k, n in ((box.row, box.rows), (box.col, box.cols)) if k is not None and n != 1}
        here = {k: canonical(resolve(c)) for k, c in enumerate(coords) if k not in long and isinstance(c, Expr) and not isinstance(c.type, FragT) and _of_tile(plan, op, c)}
        axes = frozenset(k for k, text in here.items() if (axes is None or k in axes) and texts.setdefault(k, text) == text)
    return axes or frozenset()


def _one_arm(plan: Plan, tensor: str) -> bool:
    """Whether all accesses of a tensor stand in the same arms of what memory decides: a run that takes them takes all there are."""
    arms = set()
    for op, (name, _, _) in touched(plan.program).items():
        if name == tensor:
            site = plan.sites[op.id]
            arms.add(tuple([(id(s), arm) for s, arm in site.around if isinstance(s, If) and from_memory(plan.program, site.role, s.cond)]))
    return len(arms) == 1


def _alike(plan: Plan, tensor: str) -> bool:
    """Whether all accesses of a tensor are to one place in each round of the same loops: then it does not matter which of them a run takes."""
    ops = [op for op, (name, _, _) in touched(plan.program).items() if name == tensor]
    places = set()
    for op in ops:
        site, coords, box = plan.sites[op.id], op.operands.get("coords"), boxed(plan, op)
        if not isinstance(coords, tuple):
            return False
        resolve = resolver_of(plan.program, site.role)
        shape = () if box is None else tuple((k, n) for k, n in ((box.row, box.rows), (box.col, box.cols)) if k is not None and n != 1)
        places.add((tuple(canonical(resolve(c)) for c in coords), shape, tuple(id(s) for s in site.loops)))
    return len(places) == 1


def _of_tile(plan: Plan, op: Op, e: Expr) -> bool:
    """Whether a coordinate is a number of the tile: neither memory nor a round says it."""
    site = plan.sites[op.id]
    rounds = {s.var for s in site.loops if s.kind != "tiles"}
    return not from_memory(plan.program, site.role, e) and not any(n.op == "var" and n.attrs.get("name") in rounds for n in resolver_of(plan.program, site.role)(e).parts())


def plain(plan: Plan, op: Op, entries: tuple[Any, ...], branches: bool = True) -> bool:
    """Whether nothing read from memory decides where, or (with `branches`) whether, an access happens: a run only invents such numbers."""
    site = plan.sites[op.id]
    exprs = [e for e in entries if isinstance(e, Expr)] + [s.cond for s, _ in site.around if isinstance(s, If) and branches]
    loops = [e for s in site.loops for e in (s.lo, s.hi) if isinstance(e, Expr)]
    return not any(from_memory(plan.program, site.role, e) for e in (*exprs, *loops))
