"""Q001: every tile of an output is written by one block, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cake_ir.fault import Fault, Fix
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Flag
from cake_ir.program import Expr, If, Program
from cake_ir.record import record
from cake_ir.types import TileT
from cake_verify.analyses import edits, ranges
from cake_verify.analyses.affine import Affine, affine, shifted
from cake_verify.analyses.grouped_rows import misplaced, rows_left
from cake_verify.analyses.positions import Position
from cake_verify.analyses.runs import mask_ends
from cake_verify.analyses.sites import Site, boxed, sites, stores_by_tensor
from cake_verify.analyses.started_loops import rounds, with_starts
from cake_verify.analyses.tensors import read_tensors
from cake_verify.analyses.trips import canonical, resolver_of, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="Q001",
    title="outputs not covered once",
    statement="The coordinates of a store depend on every axis of the tile space, on the member and on the loops that repeat it, each with the stride of what the inner ones cover.",
    why="A tile axis that does not occur makes all blocks along it write one place; a stride below the extent makes neighbours overlap, one above it leaves a gap that nobody writes.",
    failing=edit(LOOP, ("c.tma_store(C, coords=(t.n * 128, t.m * 64))", "c.tma_store(C, coords=(t.n * 128, 0))")),
    passing=LOOP,
    limits="Rows of grouped tiles are decided where the first row, and the count (`rows=`, or the rows of an `lm.in_bounds` mask), follow from the tile and the member. "
    "Otherwise decided for coordinates that are linear in tile fields, members and loop variables. A gap is reported only where one store alone writes the tensor and no condition is "
    "around it; how much one store covers is what its mask lets through, where the mask says so in numbers (`lm.in_bounds(o, HEADS, 128)`), and nothing is said to overlap where the mask cannot be read; whether the tile counts fit the tensor needs declared extents. Where a role uses flags and adds to what it read, S039 decides.",
)


@record()
class _Term:
    """One source of repetition: its stride along an axis, how many values it takes (None: not known)."""

    name: str
    stride: int
    count: int | None


def check(program: Program) -> Iterator[Fault]:
    for stores in stores_by_tensor(program):
        if fault := _group_rows(program, stores):
            yield fault
            continue
        for s in stores:
            if _in_turn(program, s):
                continue
            fault = _store(program, s, alone=len(stores) == 1)
            if fault:
                yield fault


def _group_rows(program: Program, stores: Sequence[Site]) -> Fault | None:
    """Rows of a grouped tile that the wrong one writes, or nobody."""
    wrong = misplaced(program, stores)
    if wrong is None:
        return None
    s, tensor = wrong.site or stores[0], str(stores[0].op.attrs["tensor"])
    facts = {"tensor": tensor, "rows": wrong.rows, "row": wrong.row}
    fix = rows_left(program, s)
    fixes = (fix,) if fix is not None else ()
    of = f"a tile of {wrong.rows} row{'s' if wrong.rows > 1 else ''}"
    if wrong.site is None:
        return Fault("Q001", f"row {wrong.row} of {of} is not written to `{tensor}`", s.op.spans.get("rows", s.op.span), (), "write the tile's rows from its first to its last", fixes, facts)
    who = f" by member {wrong.member}" if s.role.members > 1 else ""
    return Fault("Q001", f"{of} is written to `{tensor}` up to row {wrong.row}{who}, which belongs to the next group", s.op.spans.get("rows", s.op.spans.get("mask", s.op.span)), (),
                 "store as many rows as the tile has left", fixes, {**facts, "member": wrong.member})  # fmt: skip


def _in_turn(program: Program, s: Site) -> bool:
    """Whether blocks take turns at what is written: the role signals or waits for flags, and reads the tensor too. S039 says whether the turns hold."""
    tensor = s.op.attrs["tensor"]
    if tensor not in read_tensors(program):
        return False
    return any(isinstance(e, Flag) for x in sites(program).ops if x.role is s.role for e in effects_of(x.op, program))


def _store(program: Program, s: Site, alone: bool) -> Fault | None:
    coords = s.op.operands["coords"]
    assert isinstance(coords, tuple)
    lines = [affine(program, s.role.name, e) for e in coords]
    known = [a for a in lines if a is not None]
    if len(known) < len(lines):
        mentioned = set().union(*({*a.terms} for a in known), *(_names(program, s, e) for e, a in zip(coords, lines, strict=True) if a is None))
    else:
        mentioned = set().union(*({*a.terms} for a in known)) if known else set()
    for loop in reversed(s.loops):  # what a loop starts from, each of its rounds depends on
        if loop.var in mentioned and loop.lo is not None:
            mentioned |= _names(program, s, loop.lo)
    fault = _missing(program, s, mentioned)
    if fault or len(known) < len(lines):
        # what an argument moves one launch by leaves gaps for another one
        beside = [b for a, e in zip(lines, coords, strict=True) if (b := a if a is not None else shifted(program, s.role.name, e)) is not None] if not fault else []
        return fault or (next((f for axis, a in enumerate(beside) if (f := _strides(program, s, axis, a, alone and not a.open))), None) if len(beside) == len(lines) else None)
    for axis, line in enumerate(_started(program, s, known)):
        fault = _strides(program, s, axis, line, alone)
        if fault:
            other = next((k for k in range(len(known)) if k != axis and _fit_exchanged(program, s, known, axis, k)), None)
            return fault if other is None else _exchanged(program, s, fault, axis, other)
    return None


def _started(program: Program, s: Site, lines: Sequence[Affine]) -> list[Affine]:
    """The coordinates in rounds that count from 0, where no other coordinate tells apart what their loops start from."""
    out = []
    for axis, line in enumerate(lines):
        found = with_starts(program, s, line)
        told = {n for k, x in enumerate(lines) if k != axis for n in x.terms}
        out.append(line if told & (found.terms.keys() - line.terms.keys()) else found)
    return out


def _fit_exchanged(program: Program, s: Site, lines: Sequence[Affine], a: int, b: int) -> bool:
    """Whether two coordinates in each other's place cover their axes, and differ."""
    return lines[a] != lines[b] and not any(_strides(program, s, k, lines[x], alone=True) for k, x in ((a, b), (b, a)))


def _exchanged(program: Program, s: Site, fault: Fault, a: int, b: int) -> Fault:
    """The fault with the coordinates of the store exchanged, and of the accesses of its role that have the same ones."""
    coords = s.op.operands["coords"]
    assert isinstance(coords, tuple)
    texts = [canonical(e) for e in coords]
    same = [x.op for x in sites(program).ops if x.role is s.role and isinstance(c := x.op.operands.get("coords"), tuple) and [canonical(e) for e in c] == texts]
    one, other = (spoken(edits.named(program, coords[k])) for k in (a, b))
    fix = Fix(tuple(edits.exchanged(program, op, a, b) for op in same), "likely", f"exchange `{one}` and `{other}`")
    return replace(fault, help="coordinates are innermost first", fixes=(fix, *fault.fixes))


def _names(program: Program, s: Site, e: Expr) -> set[str]:
    """Everything that a coordinate which is not linear depends on, by the same names as linear ones."""
    out: set[str] = set()
    seen: set[str] = set()
    level = [e]
    for last in (*[False] * _CHAIN, True):
        deeper: list[Expr] = []
        wanted = {id(a) for x in level for n in x.parts() for a in (n.args[1:] if n.op == "iota" else n.args)} | {*map(id, level)}
        for node in (n for x in level for n in x.parts()):
            if id(node) not in wanted:  # the place whose shape positions have: they do not depend on what lies there
                continue
            if node.op == "field":
                out.add(f"{node.args[0].attrs.get('name')}.{node.attrs['name']}")
            elif node.op == "role_index":
                out.add("member")
            elif node.op == "var" and node.attrs["name"] not in seen:
                name = str(node.attrs["name"])
                seen.add(name)
                if last:
                    continue
                key = (s.role.name, name)
                deeper += [b.value for b in sites(program).bindings.get(key, ())]
                operands = [operand for r in sites(program).results.get(key, ()) for operand in r.op.operands.values()]
                deeper += [x for operand in operands for x in (operand if isinstance(operand, tuple) else (operand,)) if isinstance(x, Expr)]
            elif node.op == "slot_index":
                out.add("slot")
            elif node.op == "cta_id":
                out.add("block")
            elif node.op == "cta_rank":  # a block's place in its cluster is part of its tile's place along the cluster's axes
                for loop in s.loops:
                    if loop.kind == "tiles" and isinstance(loop.var_type, TileT):
                        d = program.schedulers[str(loop.scheduler)]
                        out |= {f"rank.{loop.var}.{name}" for name, extent in zip(d.names, d.cluster, strict=False) if extent > 1}
        level = deeper
    return out | seen


_CHAIN = 8
"""Definitions of definitions that are followed."""


def _missing(program: Program, s: Site, mentioned: set[str]) -> Fault | None:
    """A tile axis, or the member, that no coordinate and no condition around the store depends on."""
    if _all_mentioned(program, s, mentioned):
        return None
    guards = {n for c in s.path if isinstance(c, If) for n in _names(program, s, c.cond)}
    mask = s.op.operands.get("mask")
    if isinstance(mask, Expr):
        guards |= _names(program, s, mask)
    seen = mentioned | guards
    span = s.op.spans.get("coords", s.op.span)
    for loop in s.loops:
        if loop.kind != "tiles" or not isinstance(loop.var_type, TileT):
            continue
        d = program.schedulers[str(loop.scheduler)]
        if d.kind == "grouped" or (d.kind == "grid" and "block" in seen):  # a block has one tile
            continue
        for k, name in enumerate(d.names):
            apart = d.cluster[k] if k < len(d.cluster) and f"rank.{loop.var}.{name}" in seen else 1
            if f"{loop.var}.{name}" not in seen and ranges.of(program, None, d.tiles[k]).hi > apart:
                what = "tiles" if apart == 1 else "tiles of one rank"
                return Fault("Q001", f"{what} along `{name}` all write the same place of `{s.op.attrs['tensor']}`", span, ((loop.head, f"`{written(loop.var)}.{name}` runs here"),),
                             f"let a coordinate depend on `{written(loop.var)}.{name}`", (), {"axis": name, "tensor": str(s.op.attrs["tensor"])})  # fmt: skip
    if _every_block(program, s) and "block" not in seen:
        tensor = s.op.attrs["tensor"]
        return Fault("Q001", f"every block of the persistent grid writes the same place of `{tensor}`", span, (),
                     "let one block through, `if lm.cta_id() == 0:`, or add up what they have: `lm.atomic(..)`", (), {"tensor": str(tensor)})  # fmt: skip
    if s.role.members > 1 and "member" not in seen:
        return Fault("Q001", f"the {s.role.members} members of `{s.role.name}` all write the same place of `{s.op.attrs['tensor']}`", span, ((s.role.span, f"{s.role.members} members"),),
                     f"let a coordinate depend on `{s.role.name}.index`, or store under `if {s.role.name}.index == 0:`", (), {"members": s.role.members})  # fmt: skip
    several = _let_through(program, s) if s.role.members > 1 else []
    if len(several) > 1 and "member" not in mentioned and len(several) < s.role.members:
        guard = next(c for c in s.path if isinstance(c, If))
        return Fault("Q001", f"members {', '.join(map(str, several))} of `{s.role.name}` all write the same place of `{s.op.attrs['tensor']}`", guard.cond.span, ((s.op.span, "stored here"),),
                     f"let one of them through: `{s.role.name}.index == {several[0]}`, or let a coordinate depend on `{s.role.name}.index`",
                     (edits.replace(guard.cond.span, f"{s.role.name}.index == {several[0] if len(several) == s.role.members else 0}"),), {"members": several})  # fmt: skip
    return None


def _all_mentioned(program: Program, s: Site, mentioned: set[str]) -> bool:
    """Whether coordinates depend on all that repeats a store, as mostly: then it does not matter what conditions depend on."""
    if s.role.members > 1 and "member" not in mentioned:
        return False
    tiles = [x for x in s.loops if x.kind == "tiles"]
    if not tiles and program.launch.grid == "persistent":
        return False
    return all([f"{x.var}.{name}" in mentioned for x in tiles for name in program.schedulers[str(x.scheduler)].names])


def _every_block(program: Program, s: Site) -> bool:
    """Whether a store behind the tiles of its role is done once by every block of as many as fit, with what its own tiles or its shared memory gave."""
    if program.launch is None or program.launch.grid != "persistent" or any(x.kind == "tiles" for x in s.loops):
        return False
    own = {t for x in sites(program).of_role(s.role.name) if "view" in x.op.operands or any(loop.kind == "tiles" for loop in x.loops) for t in x.targets}
    value = s.op.operands.get("x")
    return any(loop.kind == "tiles" for x in sites(program).of_role(s.role.name) for loop in x.loops) and ("view" in s.op.operands or (isinstance(value, Expr) and not own.isdisjoint(_names(program, s, value))))


def _let_through(program: Program, s: Site) -> list[int]:
    """The members that the conditions on the member around a store let through; none where something else decides as well."""
    resolve = resolver_of(program, s.role.name)
    conds = [(resolve(c.cond), arm) for c, arm in s.branches()]
    if s.op.operands.get("mask") is not None or not conds or any(n.op not in ("role_index", "const", *_LOGIC) for c, _ in conds for n in c.parts()):
        return []
    return [i for i in range(s.role.members) if all(bool(Position(program, {}, {}, i).value(c)) is arm for c, arm in conds)]


_LOGIC = ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "add", "sub", "mul", "mod", "floordiv")


def _strides(program: Program, s: Site, axis: int, line: Affine, alone: bool) -> Fault | None:
    """Whether the terms of one coordinate step over what the smaller ones cover."""
    extent = boxed(s.op, axis) if s.op.operands.get("rows") is None else None
    if extent is None or any(c < 0 for c in line.terms.values()) or any(_group_row(program, s, n) for n in line.terms):
        return None
    masked = s.op.operands.get("mask") is not None
    if masked:
        ends, unknown = mask_ends(program, s)
        extent = min([extent, *(n for k, e in ends if k == axis and (n := ranges.of(program, s.role.name, e).exact) is not None and n > 0)])
        masked = axis in unknown  # how much it lets through of this axis nobody can tell
    terms = sorted((_Term(n, c, _count(program, s, n)) for n, c in line.terms.items() if c), key=lambda t: t.stride)
    tensor, span = s.op.attrs["tensor"], s.op.spans.get("coords", s.op.span)
    covered, inner = extent, f"one store covers {extent}"
    for t in terms:
        if t.count == 1:
            continue
        if t.stride < covered and not masked:
            return Fault("Q001", f"stores to `{tensor}` overlap: `{_shown(s, t.name)}` steps by {t.stride}, {inner}", span, (), f"step by {covered}", (), {"expected": covered, "found": t.stride, "axis": axis})
        if t.stride > covered and alone and not any(isinstance(c, If) for c in s.path):
            return Fault("Q001", f"stores to `{tensor}` leave gaps: `{_shown(s, t.name)}` steps by {t.stride}, {inner}", span, (), f"step by {covered}", (), {"expected": covered, "found": t.stride, "axis": axis})
        if t.count is None or _chosen(program, s, t.name):
            return None  # what lies outside an unbounded term, or rounds that a branch leaves out, is somebody else's range
        covered, inner = t.stride * t.count, f"the inner loops cover {t.stride * t.count}"
    return None


def _chosen(program: Program, s: Site, name: str) -> bool:
    """Whether a branch around a store chooses among the rounds of a loop, as where each stores what the one before has made."""
    loop = next((x for x in s.loops if x.var == name), None)
    return loop is not None and any(name in _names(program, s, c.cond) for c, _ in s.branches() if c in s.path[s.path.index(loop) :])


def _group_row(program: Program, s: Site, name: str) -> bool:
    """Whether a term is the first row of a grouped tile, which is no multiple of anything: what it writes is decided tile by tile."""
    var, _, field = name.partition(".")
    loop = next((x for x in s.loops if x.var == var), None)
    return field == "row0" and loop is not None and loop.kind == "tiles" and program.schedulers[str(loop.scheduler)].kind == "grouped"


def _shown(s: Site, name: str) -> str:
    var, dot, field = name.partition(".")
    return f"{s.role.name}.index" if name == "member" else f"{written(var)}{dot}{field}"


def _count(program: Program, s: Site, name: str) -> int | None:
    """How many values a term takes, None if that is not known."""
    if name == "member":
        return s.role.members
    if "." in name:
        loop = next((x for x in s.loops if x.var == name.partition(".")[0]), None)
        if loop is None:
            return None
        d = program.schedulers[str(loop.scheduler)]
        return ranges.of(program, None, d.tiles[d.names.index(name.partition(".")[2])]).exact if d.kind != "grouped" else None
    loop = next((x for x in s.loops if x.var == name), None)
    return rounds(program, s, loop) if loop is not None else None
