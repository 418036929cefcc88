"""D035: coordinates do not stand in each other's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations

from cake_ir.fact import fact
from cake_ir.fault import Fault
from cake_ir.program import Expr, Param, Program
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.affine import steps as affine_steps
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.sites import Site, boxed, covered, sites
from cake_verify.analyses.trips import linear, resolver_of, spoken
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import CARRY

PAGE = Page(
    code="D035",
    title="coordinates in each other's place",
    statement="A coordinate steps along its axis by what one access covers there, and the tile's field in it counts tiles of that axis: not each by the other's. "
    "A vector lies along the innermost axis, and has room there; its elements go along another axis with coordinates of their own (`lm.iota`).",
    why="Coordinates are innermost first and extents outermost first, so that two are easily exchanged. A copy out of bounds is filled with zeros, and nothing else shows it.",
    failing=edit(CARRY, ("lm.load(X, coords=(0, t.g), shape=(512,))", "lm.load(X, coords=(t.g, 0), shape=(512,))")),
    passing=CARRY,
    limits="Decided for pairs of axes along which an access covers different numbers of elements, where exchanged coordinates would fit both, where one access covers a whole fixed axis and moves along it, where `lm.assume_values` says that a number of a table is one along another axis, where a tile's field counts tiles of the other axis and a sum stands there, where another access of the tensor has the same coordinate along the other axis (of copies: with a number of the same table along this one), and for square tiles where what moves along both axes, fields, rounds or numbers of a table, counts tiles "
    "of the other axis's extent. Coordinates that are fragments are read where they are consecutive numbers (`base + lm.iota(x, axis)`); of others only the axis is looked at.",
)

_COPIES = ("tma_load", "tma_store", "cp_async", "load", "store")
_Form = tuple[int, dict[str, int]]
"""A sum as `linear` gives it: no term in it cancels out."""


def check(program: Program) -> Iterator[Fault]:
    for site in sites(program).of(*_COPIES):
        coords, tensor = site.op.operands.get("coords"), program.tensors.get(str(site.op.attrs.get("tensor")))
        if tensor is None or not isinstance(coords, tuple) or len(coords) < 2:
            continue
        resolve = resolver_of(program, site.role.name)
        sizes = [boxed(site.op, k) for k in range(len(coords))]
        at = [resolve(e) for e in coords]
        wide = any([isinstance(e.type, FragT) for e in coords])
        if wide:
            runs = [run_of(program, site.role.name, e) or (_NUMBERS, 0) if isinstance(e.type, FragT) else (x, n) for e, x, n in zip(coords, at, sizes, strict=True)]
            at, sizes = [x for x, _ in runs], [n for _, n in runs]
        forms = [linear(e) for e in at]
        across = _across(program, site, tensor, forms) if not wide else None
        if across is not None:
            yield _vector(site, tensor, coords, across)
            continue
        steps = [_steps(form) for form in forms]
        pair = next((p for p in combinations(range(len(coords)), 2) if _exchanged(program, site, tensor, forms, steps, sizes, *p)), None)
        if pair is None and (named := _by_range(program, tensor, forms)) is not None:
            yield _fault(site, tensor, tuple(at), *named)
        elif pair is not None:
            yield _vector(site, tensor, coords, pair[1]) if _of_its_own(program, site, tensor, forms, *pair) else _fault(site, tensor, coords, *pair)
        elif (axis := _outside(program, site, tensor, coords, forms, sizes)) is not None:
            still = next((k for k, (form, e) in enumerate(zip(forms, coords, strict=True)) if form == (0, {}) and tensor.extents[len(coords) - 1 - k] != tensor.extents[len(coords) - 1 - axis] and not isinstance(e.type, FragT)), None)
            yield _away(site, tensor, coords, axis, sizes[axis]) if still is None else _fault(site, tensor, coords, *sorted((axis, still)))
    yield from _beside(program)
    yield from _by_table(program)
    yield from _by_vector(program)


def _of_its_own(program: Program, site: Site, tensor: Param, forms: list[_Form], a: int, b: int) -> bool:
    """Whether a row or column vector has a coordinate that counts along the very axis it is given for: then it is the vector that lies across."""
    x = site.op.operands.get("x")
    t = x.type if isinstance(x, Expr) else site.op.type
    if a or not isinstance(t, FragT) or t.form not in ("rowvec", "colvec") or not tensor.extents or covered(site.op, b) > 1:
        return False
    terms = [name for name, n in forms[a][1].items() if n]
    return len(terms) == 1 and forms[a][1][terms[0]] == 1 and tensor.extents[-1] in (_counted(program, site, terms[0]), _rounds_of(site, terms))


def _rounds_of(site: Site, terms: list[str]) -> str | None:
    """The argument that says how many rounds a counter has."""
    loop = next((x for x in site.loops if terms == [f"?{x.var}"]), None)
    return str(loop.hi.attrs.get("name")) if loop is not None and loop.hi is not None and loop.hi.op == "param" else None


def _steps(form: _Form) -> dict[str, int] | None:
    """The strides of tiles and counters; None where something else decides too. Offsets read from memory are only a start."""
    out = {}
    for term, n in form[1].items():
        if not n or "[" in term:
            continue
        if not term.startswith(("tile.", "?")) or n < 0:
            return None
        out[term] = n
    return out


def _exchanged(program: Program, site: Site, tensor: Param, forms: list[_Form], steps: list[dict[str, int] | None], sizes: list[int], a: int, b: int) -> bool:
    if not sizes[a] or not sizes[b]:  # numbers of rows that nothing is known of
        return _by_counts(program, site, tensor, forms, a, b)
    if (len(forms[a][1]) > 1) is not (len(forms[b][1]) > 1) and _beside_a_sum(program, site, tensor, forms, a, b):
        return True
    one, other = steps[a], steps[b]
    if one is None or other is None or not (one or other):
        return False
    if sizes[a] == sizes[b]:
        return _by_counts(program, site, tensor, forms, a, b)
    if sizes[a] < sizes[b]:
        a, b, one, other = b, a, other, one
    extent = tensor.extents[len(tensor.extents) - 1 - a] if tensor.extents else None
    if (_zero(forms[a]) or _zero(forms[b])) and _by_counts(program, site, tensor, forms, a, b):
        return True
    if not one or min(one.values()) != sizes[b]:
        return False
    if other:  # along the short axis it steps by what it covers along the long one, which has room for more than one step
        return min(other.values()) == sizes[a] and not (isinstance(extent, int) and extent < sizes[a])
    return isinstance(extent, int) and extent <= sizes[a] and _zero(forms[b])


def _zero(form: _Form) -> bool:
    return not form[0] and not form[1]


def _by_range(program: Program, tensor: Param, forms: list[_Form]) -> tuple[int, int] | None:
    """A number that a table gives, of which `lm.assume_values` says that it is one along another axis of the tensor, where no table names anything."""
    extents = tensor.extents[::-1]
    for a, (constant, terms) in enumerate(forms):
        name = next(iter(terms), "")
        stated = declared_values(program, name.partition("[")[0]) if not constant and len(terms) == 1 and "[" in name and terms[name] == 1 else None
        if stated is None or len(extents) != len(forms):
            continue
        end = linear(resolver_of(program, "")(stated.hi))
        b = next((k for k, extent in enumerate(extents) if isinstance(extent, str) and end == linear(Expr("param", (), {"name": extent}))), a)
        if b != a and isinstance(extents[a], str) and extents[a] != extents[b] and extents.count(extents[b]) == 1 and forms[b][1] and not any("[" in t for t in forms[b][1]):
            return min(a, b), max(a, b)
    return None


_NUMBERS = Expr("read")
"""Stands for a fragment of numbers that are not consecutive."""


def _outside(program: Program, site: Site, tensor: Param, coords: tuple[Expr, ...], forms: list[_Form], sizes: list[int]) -> int | None:
    """The axis of fixed extent that one access covers whole and along which it moves with tiles, rounds or numbers of a table: all but the first lie outside."""
    for axis, (e, (_, terms), n) in enumerate(zip(coords, forms, sizes, strict=True)):
        extent = tensor.extents[len(tensor.extents) - 1 - axis] if axis < len(tensor.extents) else None
        if not isinstance(extent, int) or not n >= extent > 1 or not terms or isinstance(e.type, FragT):
            continue
        if any((abs(c) >= extent or "." in name) and name != "member" and _several(program, site, name) for name, c in affine_steps(program, site.role.name, e).items()):
            return axis
        if any(abs(c) > 1 and "[" in name for name, c in terms.items()):  # a block whose number a table gives
            return axis
        if any(name.startswith("mul(") and "tile." in name for name in terms):  # so many a tile as an argument says
            return axis
    return None


def _several(program: Program, site: Site, name: str) -> bool:
    """Whether a tile's field has more than one value."""
    var, dot, field = name.partition(".")
    loop = next((x for x in site.loops if x.var == var), None)
    d = program.schedulers.get(str(loop.scheduler)) if loop is not None and dot else None
    if d is None:
        return not dot
    count = d.tiles[-1] if d.kind == "grouped" and field == "n" else d.tiles[d.names.index(field)] if d.kind != "grouped" else None
    return count is None or ranges.of(program, None, count).exact != 1


def _away(site: Site, tensor: Param, coords: tuple[Expr, ...], axis: int, n: int) -> Fault:
    message = f"{call(site.op)} covers all {n} elements of axis {axis} of `{tensor.name}`, and `{spoken(coords[axis])}` moves it along that axis: only the first is inside"
    return Fault("D035", message, site.op.spans.get("coords", site.op.span), ((tensor.span, "extents are outermost first here, coordinates innermost first"),),
                 "move along the axis that is longer than one access", (), {"role": site.role.name, "tensor": tensor.name, "axis": axis})  # fmt: skip


def _beside(program: Program) -> Iterator[Fault]:
    """Of two accesses of a tensor that cover as much, one that moves along the axis on which the other stands still, and the other way round."""
    by: dict[tuple[str, str, str], list[Site]] = {}
    for s in sites(program).of("load", "store"):
        coords = s.op.operands.get("coords")
        if isinstance(coords, tuple) and len(coords) > 1:
            by.setdefault((s.op.name, str(s.op.attrs.get("tensor")), s.role.name), []).append(s)
    for (_, name, role), every in by.items():
        if len(every) < 2:
            continue
        found = [s for s in every if not any([isinstance(e.type, FragT) for e in s.op.operands["coords"]]) and covered(s.op, 0) > 1]  # type: ignore[union-attr]  # tuples, as asked above
        still = [s.op.operands["coords"][0].op == "const" for s in found]  # type: ignore[index,union-attr]  # tuples, as asked above
        if all(still) or not any(still) or name not in program.tensors:
            continue
        resolve = resolver_of(program, role)
        forms = [[linear(resolve(e)) for e in s.op.operands["coords"]] for s in found]  # type: ignore[union-attr]  # tuples, as asked above
        for i, j in combinations(range(len(found)), 2):
            for odd, right in ((i, j), (j, i)):
                axis = _turned(found[odd], found[right], forms[odd], forms[right])
                if axis is not None:
                    coords = found[odd].op.operands["coords"]
                    assert isinstance(coords, tuple)  # as above
                    fault = _fault(found[odd], program.tensors[name], coords, 0, axis)
                    yield replace(fault, related=((found[right].op.span, "as here"), *fault.related))
                    break


def _by_table(program: Program) -> Iterator[Fault]:
    """Of two copies of a tensor into one view that a table places along one axis each, the one that has the coordinates the other way round."""
    by: dict[tuple[str, str], list[tuple[Site, list[_Form]]]] = {}
    for s in sites(program).of("cp_async", "tma_load") if "ld" in sites(program).named else ():
        coords = s.op.operands.get("coords")
        if isinstance(coords, tuple) and len(coords) > 1:
            resolve = resolver_of(program, s.role.name)
            at = [resolve(e) for e in coords]
            if any(e.args and any(n.op == "ld" for n in e.parts()) for e in at):
                by.setdefault((s.role.name, str(s.op.attrs.get("tensor"))), []).append((s, [linear(e) for e in at]))
    for (role, name), found in by.items():
        for (one, mine), (other, theirs) in combinations(found, 2):
            axes = _swapped(mine, theirs)
            if axes is None or one.op.operands.get("box") != other.op.operands.get("box") or name not in program.tensors:
                continue
            votes = [sum(forms[axes[0]] == own[axes[0]] for (r, _), all_ in by.items() if r == role for _, forms in all_) for own in (mine, theirs)]
            odd, right = (other, one) if votes[0] >= votes[1] else (one, other)
            coords = odd.op.operands["coords"]
            assert isinstance(coords, tuple)  # as above
            fault = _fault(odd, program.tensors[name], coords, *axes)
            yield replace(fault, related=((right.op.span, "as here"), *fault.related))
            return


def _by_vector(program: Program) -> Iterator[Fault]:
    """Of two accesses of a tensor whose elements one vector places, the one that has it along another axis."""
    by: dict[tuple[str, str], list[tuple[Site, int]]] = {}
    for s in sites(program).of("load", "store", "atomic"):
        coords = s.op.operands.get("coords")
        placed = [k for k, e in enumerate(coords) if isinstance(e.type, FragT) and e.op == "var"] if isinstance(coords, tuple) else []
        if len(placed) == 1 and isinstance(coords, tuple) and len(coords) > 1:
            by.setdefault((s.role.name, str(coords[placed[0]].attrs["name"])), []).append((s, placed[0]))
    for found in by.values():
        axes = Counter(axis for _, axis in found)
        if len(axes) < 2:
            continue
        for (one, a), (other, b) in combinations(found, 2):
            if a == b or one.op.name != other.op.name or one.op.attrs["tensor"] != other.op.attrs["tensor"] or _mirrored(program, one, other, a, b):
                continue
            odd, right = (one, other) if axes[a] < axes[b] else (other, one)
            coords, tensor = odd.op.operands["coords"], program.tensors.get(str(odd.op.attrs["tensor"]))
            if tensor is not None and isinstance(coords, tuple):
                fault = _fault(odd, tensor, coords, min(a, b), max(a, b))
                yield replace(fault, related=((right.op.span, "as here"), *fault.related))
                return


def _mirrored(program: Program, one: Site, other: Site, a: int, b: int) -> bool:
    """Whether two accesses have the same coordinates in each other's place, as the halves of a symmetric result have."""
    mine, theirs, resolve = one.op.operands["coords"], other.op.operands["coords"], resolver_of(program, one.role.name)
    return isinstance(mine, tuple) and isinstance(theirs, tuple) and len(mine) == len(theirs) and linear(resolve(mine[b])) == linear(resolve(theirs[a]))


def _swapped(mine: list[_Form], theirs: list[_Form]) -> tuple[int, int] | None:
    """Two axes of which one coordinate stands along the other one in the other access, and numbers of one table along the rest."""
    if len(mine) != len(theirs):
        return None
    for a, b in permutations(range(len(mine)), 2):
        table = _table(mine[b])
        crossed = mine[a] == theirs[b] and mine[a][1] and mine[a] != theirs[a] and table is not None and table == _table(theirs[a]) and table != _table(mine[a])
        if crossed and all(mine[k] == theirs[k] for k in range(len(mine)) if k not in (a, b)):
            return min(a, b), max(a, b)
    return None


def _table(form: _Form) -> tuple[str, int] | None:
    """The table whose number a coordinate is, and by what it is multiplied."""
    terms = list(form[1].items())
    return (terms[0][0].partition("[")[0], terms[0][1]) if len(terms) == 1 and "[" in terms[0][0] else None


def _turned(odd: Site, right: Site, mine: list[_Form], other: list[_Form]) -> int | None:
    """The axis whose coordinate the first access has along the innermost one: there it moves by less than it covers."""
    if len(mine) != len(other) or covered(odd.op, 0) != covered(right.op, 0) or not mine[0][1] or other[0][1]:
        return None
    if any(abs(c) >= covered(odd.op, 0) for c in mine[0][1].values()):
        return None
    for k in range(1, len(mine)):
        if mine[k][1] or covered(odd.op, k) > 1 or mine[0] != other[k]:
            continue
        if all(mine[x] == other[x] for x in range(1, len(mine)) if x != k):
            return k
    return None


def _by_counts(program: Program, site: Site, tensor: Param, forms: list[_Form], a: int, b: int) -> bool:
    """Whether what moves along each axis, a tile's field, a round or a number of a table, counts tiles of the other axis's extent: both do, or one does
    and the other counts nothing that is known."""
    if not tensor.extents or tensor.extents[-1 - a] == tensor.extents[-1 - b]:
        return False
    one, other = forms[a][1], forms[b][1]
    if len(one) > 1 or len(other) > 1 or one.keys() == other.keys():
        return False
    extents = [tensor.extents[-1 - k] for k in (a, b)]
    counted = ["".join([_counted(program, site, t) for t in x]) for x in (one, other)]  # of one term, or none
    crossed = [c == e for c, e in zip(counted, extents[::-1], strict=True)]
    return any(crossed) and all(x or not c for x, c in zip(crossed, counted, strict=True))


def _beside_a_sum(program: Program, site: Site, tensor: Param, forms: list[_Form], a: int, b: int) -> bool:
    """Whether a tile's field counts tiles of the other axis's extent, along which a sum of several stands that counts neither's."""
    terms = [list(forms[k][1]) for k in (a, b)]
    one = next((k for k in (0, 1) if len(terms[k]) == 1 and terms[k][0].startswith("tile.") and len(terms[1 - k]) > 1), None)
    if one is None or not tensor.extents:
        return False
    extents = [tensor.extents[len(tensor.extents) - 1 - k] for k in (a, b)]
    return extents[0] != extents[1] and _counted(program, site, terms[one][0]) == extents[1 - one] and not any(t in terms[one] or _counted(program, site, t) in extents for t in terms[1 - one])


def _counted(program: Program, site: Site, term: str) -> str:
    """The extent of which a term counts tiles; empty where that is not known."""
    if term.startswith("?"):
        loop = next((x for x in site.loops if f"?{x.var}" == term and x.lo is not None and x.hi is not None), None)
        resolve = resolver_of(program, site.role.name)
        return _tiles_of(resolve(loop.hi)) if loop is not None and loop.hi is not None and loop.lo is not None and linear(resolve(loop.lo)) == (0, {}) else ""
    if "[" in term:
        stated = declared_values(program, term.partition("[")[0])
        return _tiles_of(resolver_of(program, "")(stated.hi)) if stated is not None and stated.lo.attrs.get("value") == 0 else ""
    return _counted_by_field(program, term.removeprefix("tile."))


@fact
def _counted_by_field(program: Program, field: str) -> str:
    found = (d for d in program.schedulers.values() if d.kind != "grouped" and field in d.names)
    return next((_tiles_of(resolver_of(program, "")(d.tiles[d.names.index(field)])) for d in found), "")


def _tiles_of(count: Expr) -> str:
    names = {str(n.attrs["name"]) for n in count.parts() if n.op == "param"}
    return names.pop() if count.op in ("cdiv", "floordiv", "param") and len(names) == 1 else ""


def _across(program: Program, site: Site, tensor: Param, forms: list[_Form]) -> int | None:
    """The axis along which the coordinates of a vector step by its length, although a vector lies along the innermost one, which is shorter or
    which it does not move along."""
    x = site.op.operands.get("x")
    t = x.type if isinstance(x, Expr) else site.op.type
    if tensor.kind != "gmem" or not isinstance(t, FragT) or (t.rank != 1 and t.form not in ("rowvec", "colvec")) or not tensor.extents:
        return None
    n = covered(site.op, 0)
    room = tensor.extents[-1]
    if n < 2 or any(c >= n for c in forms[0][1].values()):
        return None
    for k in range(1, len(forms)):
        stepping = [term for term, c in forms[k][1].items() if c == n and term.startswith("tile.")]
        rows = tensor.extents[len(tensor.extents) - 1 - k]
        if stepping and isinstance(rows, str) and _counted(program, site, stepping[0]) == rows and isinstance(room, int) and room < n:
            return k
    return None


def _vector(site: Site, tensor: Param, coords: tuple[Expr, ...], axis: int) -> Fault:
    """A vector whose elements are meant for another axis than the one it lies along."""
    x = site.op.operands.get("x")
    t = x.type if isinstance(x, Expr) else site.op.type
    n, room, base = covered(site.op, 0), tensor.extents[-1], spoken(coords[axis])
    form = t.form if isinstance(t, FragT) else ""
    what, numbers = {"rowvec": ("row vector", "its tile, 0"), "colvec": ("column vector", "its tile, 1")}.get(form, ("vector", "the vector, 0"))
    message = f"{call(site.op)} lays the {n} elements of a {what} along axis 0 of `{tensor.name}`, which has {room}: `{base}` steps by {n} along axis {axis}"
    help = f"a vector lies along the innermost axis; give each element its place along axis {axis}: `lm.iota(<{numbers.partition(',')[0]}>,{numbers.partition(',')[2]}, base={base})`"
    return Fault("D035", message, site.op.spans.get("coords", site.op.span), ((tensor.span, "extents are outermost first here, coordinates innermost first"),), help, (),
                 {"role": site.role.name, "tensor": tensor.name, "expected": room, "found": n}, cause="vector laid across")  # fmt: skip


def _fault(site: Site, tensor: Param, coords: tuple[Expr, ...], a: int, b: int) -> Fault:
    texts = [spoken(coords[k]) for k in (a, b)]
    message = f"{call(site.op)} has coordinates in each other's place: `{texts[0]}` fits axis {b} of `{tensor.name}`, and `{texts[1]}` axis {a}"
    return Fault("D035", message, site.op.spans.get("coords", site.op.span), ((tensor.span, "extents are outermost first here, coordinates innermost first"),),
                 "exchange them", (), {"role": site.role.name, "tensor": tensor.name})  # fmt: skip
