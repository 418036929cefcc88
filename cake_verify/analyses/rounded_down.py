"""Counts that round an argument down, by what becomes of them on small arguments: tiles that leave the rest of it out, and tensors of which nothing reads the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cake_ir.derive.mentions import beside, floor_divisions, mentions
from cake_ir.derive.structure import stated
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.counted_terms import LOADS
from cake_verify.analyses.left_out import gaps
from cake_verify.analyses.positions import TooMany, arguments, around, parameters, positions
from cake_verify.analyses.sites import Site, boxed, sites
from cake_verify.analyses.tape import plain_tape
from cake_verify.analyses.trips import Loop, canonical, linear, loops, resolver_of, spoken

_REACHES = frozenset({*LOADS, "bulk_load", "store", "tma_store"})
_OF_ARGUMENTS = frozenset({"param", "const", "cdiv", "add", "sub", "mul"})
_CHOICES = 12


@record(eq=False)
class _Floor:
    """`x // step` as it is written, where x is made of the argument `name` alone and no known multiple of the step."""

    name: str
    step: int
    e: Expr
    x: Expr

    @property
    def plain(self) -> bool:
        """Whether x is the argument itself."""
        return self.x.op == "param"


def rounded_down(program: Program) -> Iterator[Fault]:
    """At most one fault for each count that rounds down."""
    yield from _shares(program)
    yield from _parts(program)
    floors = _floors(program)
    told: set[str] = set()
    for f in floors:
        if f.name not in told and (fault := _tiles(program, f) or _unread(program, f)) is not None:
            told.add(f.name)
            yield fault


def _floors(program: Program) -> list[_Floor]:
    inside = mentions(program).get("floordiv", ())
    if not any([isinstance(n.args[1].attrs.get("value"), int) for n in (*floor_divisions(program), *inside)]):
        return []
    resolve = resolver_of(program, "")
    out: dict[tuple[str, int], _Floor] = {}
    counts = [n for e in (*(e for d in program.schedulers.values() for e in d.tiles), *(let.value for let in program.lets.values())) for n in e.parts()]
    every = (*counts, *beside(program), *inside)
    chosen = {id(x) for n in every if n.op in ("min", "max") for a in n.args for x in a.parts()}  # the least of several is a part of each
    for n in every:
        if id(n) in chosen or n.op != "floordiv" or not isinstance(step := n.args[1].attrs.get("value"), int) or step <= 1:
            continue
        x = resolve(n.args[0])
        if canonical(Expr("floordiv", (x, n.args[1]))).startswith("ceil"):
            continue
        names = {str(p.attrs.get("name")) for p in x.parts() if not p.args and p.op != "const"}
        if len(names) == 1 and all(p.op in _OF_ARGUMENTS for p in x.parts()) and (canonical(x), step) not in out and not ranges.of(program, None, x).multiple_of(step):
            out[canonical(x), step] = _Floor(names.pop(), step, n, x)
    return list(out.values())


# ------------------------------------------------------------------ tiles


def _tiles(program: Program, f: _Floor) -> Fault | None:
    """Tiles of an argument that is no extent, as the longest of several sequences, whose last one is cut."""
    for d in program.schedulers.values() if f.plain else ():
        for name, count in zip(d.names, d.tiles, strict=False) if d.kind != "grouped" else ():
            e = resolver_of(program, "")(count)
            if e.op != "floordiv" or e.args[0].attrs.get("name") != f.name or e.args[1].attrs.get("value") != f.step:
                continue
            for s in sites(program).of("store", "tma_store", "bulk_store"):
                if (s.op.operands.get("mask") is not None or s.op.operands.get("rows") is not None or s.op.attrs.get("clip")) and _steps_by(program, s, name, f) and any(x.scheduler == d.name for x in s.loops):
                    at = count.span if count.span.line else d.span
                    message = f"`{f.name} // {f.step}` rounds down: what `{f.name}` has behind the last whole {f.step} is in no tile"
                    return Fault("Q012", message, at, ((s.op.span, "the last tile is cut here, so it may be a part of one"),), f"round up, `lm.cdiv({f.name}, {f.step})`, or state `lm.assume({f.name} % {f.step} == 0)`", (),
                                 {"expected": f.name, "found": spoken(e)})  # fmt: skip
    return None


def _steps_by(program: Program, s: Site, field: str, f: _Floor) -> bool:
    """Whether a store covers as many elements as it moves by from one tile to the next, along an axis that no extent counts by this argument."""
    coords, tensor = s.op.operands.get("coords"), program.tensors.get(str(s.op.attrs.get("tensor")))
    if not isinstance(coords, tuple) or tensor is None or f.name in tensor.extents:
        return False
    resolve = resolver_of(program, s.role.name)
    return any(not isinstance(c.type, FragT) and linear(resolve(c))[1].get(f"tile.{field}") == f.step == boxed(s.op, k) for k, c in enumerate(coords))


def _shares(program: Program) -> Iterator[Fault]:
    """Shares of a number of rounds, one for each value of a tile's field, each as large as the number divided by how many there are, rounded down."""
    for x in loops(program):
        if not x.lo.args or not any([n.op == "floordiv" for n in x.lo.parts()]):
            continue
        for lo in x.lo.args if x.lo.op == "min" else (x.lo,):
            found = _share(program, x, lo) if lo.op == "mul" else None
            if found is not None:
                each, n = found
                yield Fault("Q012", f"{n} shares of `{spoken(each)}` rounds leave out what is left of `{spoken(each.args[0])}` when it is divided by {n}", x.stmt.head, ((each.span, "rounds down here"),) if each.span.line else (),
                            f"round up, `lm.cdiv({spoken(each.args[0])}, {n})`, and end the last share at `{spoken(each.args[0])}`", (), {"role": x.role, "found": n})  # fmt: skip
                return


def _parts(program: Program) -> Iterator[Fault]:
    """Parts of an argument, one for each value of a tile's field, from `lm.min(field * part, N)` to `lm.min(lo + part, N)`, that together end before it does."""
    found = sites(program)
    if not any(n.op == "min" for n in beside(program)):
        return
    for (role, _), bound in found.bindings.items():
        resolve = resolver_of(program, role)
        for b in bound:
            e = resolve(b.value)
            for lo, end in (e.args, e.args[::-1]) if e.op == "min" and len(e.args) == 2 else ():
                if lo.op != "mul" or end.op != "param":
                    continue
                field, part = lo.args if lo.args[0].op == "field" else lo.args[::-1]
                counts = {canonical(c): c for d in program.schedulers.values() for name, c in zip(d.names, d.tiles, strict=False) if field.op == "field" and name == field.attrs["name"]}
                n = next(iter(counts.values())).attrs.get("value") if len(counts) == 1 else None
                if not isinstance(n, int) or n < 2 or not all(x.op in ("param", "const", "cdiv", "floordiv", "add", "sub", "mul", "min") for x in part.parts()):
                    continue
                nexts = {canonical(Expr("min", p)) for p in ((Expr("add", (e, part)), end), (end, Expr("add", (e, part))))}
                if not any(canonical(resolve(o.value)) in nexts for (r, _), other in found.bindings.items() if r == role for o in other):
                    continue
                for args in arguments(program, parameters(program, [part, end]), (3, 4 * n + 1, 8 * n + 3), 12):
                    size, each = args.get(str(end.attrs["name"])), plain_tape(program, (part,)).given(args)[0]
                    if isinstance(size, int) and isinstance(each, int) and n * each < size:
                        given = f"{end.attrs['name']} = {size}"
                        yield Fault("Q012", f"{n} parts of `{spoken(part)}` end at {n * each}, before `{end.attrs['name']}` does, for {given}", b.value.span, ((part.span, "rounds down here"),) if part.span.line else (),
                                    f"round up, `lm.cdiv({end.attrs['name']}, {n})`", (), {"role": role, "found": n * each, "expected": size})  # fmt: skip
                        return


def _share(program: Program, x: Loop, lo: Expr) -> tuple[Expr, str] | None:
    """The share that a loop goes over, from its own number of shares on, and how many of them there are; an argument may be known to be whole."""
    for each, field in (lo.args, lo.args[::-1]):
        if field.op != "field" or each.op != "floordiv" or each.args[0].op == "param" or each.args[1].attrs.get("value", 2) == 1 or leaves_nothing(program, x.role, *each.args):
            continue
        counts = [canonical(resolver_of(program, "")(c)) for d in program.schedulers.values() for name, c in zip(d.names, d.tiles, strict=False) if name == field.attrs["name"] and d.kind != "grouped"]
        ends = x.hi.args if x.hi.op == "min" else (x.hi,)
        if counts == [canonical(each.args[1])] and any(_next(e, lo, each, field) for e in ends):
            return each, spoken(each.args[1])
    return None


def leaves_nothing(program: Program, role: str | None, x: Expr, n: Expr) -> bool:
    """Whether a division leaves nothing out: it rounds up, or nothing is left as far as is stated."""
    constant, terms = linear(x)
    if terms.get(canonical(n), 0) == 1 and constant == -1:
        return True  # rounded up, written out
    if n.op == "const" and isinstance(n.attrs["value"], int):
        if canonical(Expr("floordiv", (x, n))).startswith("ceil"):
            return True
        return ranges.of(program, role, x).multiple_of(n.attrs["value"])
    resolve = resolver_of(program, "")
    rest = canonical(Expr("mod", (x, n)))
    return any(c.op == "eq" and canonical(c.args[0]) == rest for a in program.assumes for c in stated(resolve(a.cond)))


def _next(end: Expr, lo: Expr, each: Expr, field: Expr) -> bool:
    """Whether a share ends where the next one begins."""
    if end.op == "add":
        return any(canonical(b) == canonical(each) and (canonical(a) == canonical(lo) or (a.op == "min" and any(canonical(c) == canonical(lo) for c in a.args))) for a, b in (end.args, end.args[::-1]))
    return end.op == "mul" and any(canonical(a) == canonical(each) and linear(b) == (1, {canonical(field): 1}) for a, b in (end.args, end.args[::-1]))


# ------------------------------------------------------------------ tensors that are read


def _unread(program: Program, f: _Floor) -> Fault | None:
    by: dict[str, list[Site]] = {}
    for s in sites(program).ops:
        if s.op.attrs.get("tensor") in program.tensors:
            by.setdefault(str(s.op.attrs["tensor"]), []).append(s)
    for name, found in by.items():
        extents = program.tensors[name].extents
        if any(s.op.name not in _REACHES for s in found):
            continue
        if all(s.op.name == "bulk_load" for s in found):
            fault = _flat(program, f, name, found) if len(extents) == 1 and isinstance(extents[0], str) and any(_uses(program, s, f) for s in found) else None
        else:
            fault = _along(program, f, name, found, list(reversed(extents)).index(f.name)) if f.name in extents and all(s.op.name != "bulk_load" for s in found) else None
        if fault is not None:
            return fault
    return None


def _uses(program: Program, s: Site, f: _Floor) -> bool:
    offset = s.op.operands.get("offset")
    return f.plain and isinstance(offset, Expr) and any(n.op == "floordiv" and n.args[0].attrs.get("name") == f.name and n.args[1].attrs.get("value") == f.step for n in resolver_of(program, s.role.name)(offset).parts())


def _along(program: Program, f: _Floor, name: str, found: list[Site], axis: int) -> Fault | None:
    """A tensor along an axis of this extent: read to its end where that is a whole number of steps, and never otherwise."""
    reads = []
    for s in found:
        coords = s.op.operands.get("coords")
        if not isinstance(coords, tuple) or axis >= len(coords) or isinstance(coords[axis].type, FragT) or s.op.operands.get("rows") is not None:
            return None
        size = boxed(s.op, axis)
        if f.plain and f.step not in (size, size * s.role.members):
            return None  # shares of an argument, which may be known to be whole
        reads.append((s, resolver_of(program, s.role.name)(coords[axis]), size))

    def complete(args: Mapping[str, int]) -> bool | None:
        ends = [[p.value(e) for p in positions(program, s, args, high=True, free=True)] for s, e, _ in reads]
        if any(not isinstance(v, int) for values in ends for v in values):
            return None
        return any(v + size >= args[f.name] for values, (_, _, size) in zip(ends, reads, strict=True) for v in values)

    if not _differs(program, f, [(s, e) for s, e, _ in reads], [], complete):
        return None
    at = found[0].op.spans.get("coords", found[0].op.span)
    return Fault("Q012", f"nothing reads `{name}` along `{f.name}` {f'behind the last whole {f.step}' if f.plain else 'to its end'}: `{spoken(f.e)}` rounds down", _place(f, found[0]), ((at, "loaded here"), (program.tensors[name].span, f"`{f.name}` is declared here")),
                 f"round up, `lm.cdiv({spoken(f.e.args[0])}, {f.step})`, or state `lm.assume({spoken(f.x)} % {f.step} == 0)`", (), {"axis": axis, "expected": f.name, "found": spoken(f.e)})  # fmt: skip


def _flat(program: Program, f: _Floor, name: str, found: list[Site]) -> Fault | None:
    """A tensor of one axis that bulk copies read piece by piece: all of it where the argument is a whole number of steps, and not otherwise."""
    extent = str(program.tensors[name].extents[0])
    reads = []
    for s in found:
        offset, n = s.op.operands.get("offset"), s.op.operands.get("n")
        if not isinstance(offset, Expr) or not isinstance(n, Expr) or not isinstance(size := n.attrs.get("value"), int):
            return None
        reads.append((s, resolver_of(program, s.role.name)(offset), size))
    shown = ""

    def complete(args: Mapping[str, int]) -> bool | None:
        nonlocal shown
        pieces = [(p.value(e), size) for s, e, size in reads for p in positions(program, s, args, high=True, free=True)]
        if any(not isinstance(at, int) for at, _ in pieces) or extent not in args:
            return None
        hole = next(gaps(set(pieces), args[extent]), (0, 0))
        if hole[0] < hole[1]:
            shown = f"from {hole[0]} to {hole[1]}, for {', '.join(f'{k} = {v}' for k, v in sorted(args.items()))}"
        return hole[0] >= hole[1]

    if not _differs(program, f, [(s, e) for s, e, _ in reads], [Expr("param", (), {"name": extent})], complete):
        return None
    s = next(s for s in found if _uses(program, s, f))
    return Fault("Q012", f"nothing reads `{name}` {shown}: `{f.name} // {f.step}` rounds down", _place(f, s), ((s.op.span, "read here"), (program.tensors[name].span, f"`{extent}` is declared here")),
                 f"round up, `lm.cdiv({f.name}, {f.step})`, as what counts `{extent}` does", (), {"expected": extent, "found": spoken(f.e)})  # fmt: skip


def _differs(program: Program, f: _Floor, reads: list[tuple[Site, Expr]], also: list[Expr], complete: Callable[[Mapping[str, int]], bool | None]) -> bool:
    """Whether all is read for every tried argument that is a whole number of steps, and never for one that is not."""
    names = parameters(program, [*(e for _, e in reads), *(e for s, _ in reads for e in around(s, program)), Expr("param", (), {"name": f.name}), *also])
    seen: dict[bool, list[bool]] = {True: [], False: []}
    for args in arguments(program, names, (2, 3, 4), 3 * _CHOICES, (3,), fastest=f.name):
        (x,) = plain_tape(program, (f.x,)).given(args)
        if not isinstance(x, int) or x <= f.step or len(seen[rest := x % f.step > 0]) >= _CHOICES // 2:
            continue
        try:
            whole = complete(args)
        except TooMany:
            continue
        if whole is None or whole == rest:
            return False
        seen[rest].append(whole)
    return bool(seen[True] and seen[False])


def _place(f: _Floor, s: Site) -> Span:
    return f.e.span if f.e.span.line else s.op.span


__all__ = ["rounded_down"]
