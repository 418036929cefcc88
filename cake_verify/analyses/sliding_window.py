"""Windows that a loop slides over a tensor: names that hold the elements just before its own, each handed on to the next in every round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cake_ir.program import Expr, For, Program
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, rounds, sites
from cake_verify.analyses.trips import linear, resolver_of


@record(eq=False)
class Standing:
    """A name of a window that the loop does not hand on, though it hands on others: loaded at `load`, and `next` holds its neighbour."""

    role: str
    loop: For
    name: str
    next: str
    load: Site
    handed: Site


def standing(program: Program) -> Iterator[Standing]:
    """The names that stay where they are, at most one for each loop."""
    handed: dict[int, list[Site]] = {}
    for s in sites(program).of("compute"):
        if s.loops and s.path[-1] is s.loops[-1] and s.loops[-1].kind != "tiles" and (name := _alias(s)) and any([_brings(x) for x in sites(program).results.get((s.role.name, name), ())]):
            handed.setdefault(id(s.loops[-1]), []).append(s)
    for role in dict.fromkeys([s.role.name for found in handed.values() for s in found]):
        for loop, inside in rounds(program, role):
            if id(loop) in handed and (stays := _standing(program, role, loop, inside, handed[id(loop)])) is not None:
                yield stays


def _alias(s: Site) -> str:
    """The name whose value a statement gives another name."""
    value = s.op.operands.get("value") if s.op.name == "compute" and len(s.targets) == 1 else None
    return str(value.attrs["name"]) if isinstance(value, Expr) and value.op == "var" and isinstance(value.type, FragT) else ""


def _brings(s: Site) -> bool:
    """Whether an operation is a load, or casts what may be one."""
    value = s.op.operands.get("value")
    return s.op.name == "load" or (isinstance(value, Expr) and value.op == "cast")


def _standing(program: Program, role: str, loop: For, inside: Sequence[Site], handed: list[Site]) -> Standing | None:
    resolve = resolver_of(program, role)
    own, first = sites(program).of_role(role), inside[0].order
    around = inside[0].path[: inside[0].path.index(loop)]
    before = _loaded([s for s in own if s.order < first and s.path[: len(around)] == around])
    changed = {t for s in inside for t in s.targets}
    read = {str(n.attrs["name"]) for s in inside for o in s.op.operands.values() for e in (o if isinstance(o, tuple) else (o,)) if isinstance(e, Expr) for n in e.parts() if n.op == "var"}
    for name, loads in reversed(_loaded(inside).items()):  # what a load was cast to before the load itself
        if len(loads) != 1 or loop.lo is None:
            continue
        window: dict[int, tuple[str, Site]] = {}
        for other, starts in before.items():
            if other not in read and other not in changed:
                continue
            apart = {d for s in starts if (d := _apart(program, role, loop, s, loads[0], resolve(loop.lo))) is not None}
            if len(apart) == 1 and (d := apart.pop()) < 0:
                window[d] = other, starts[-1]
        if len(window) < 2 or sorted(window) != list(range(-len(window), 0)):
            continue
        names = {n for n, _ in window.values()} | {name}
        moved = [s for s in handed if s.targets[0] in names and _alias(s) in names]
        still = next((d for d in sorted(window) if window[d][0] not in changed and window[d][0] in read), None)
        if moved and still is not None:
            stays, after = window[still][0], window[still + 1][0] if still < -1 else name
            beside = next((s for s in moved if s.targets[0] == after), None) or next((s for s in moved if _alias(s) == stays), moved[0])
            return Standing(role, loop, stays, after, window[still][1], beside)
    return None


def _loaded(own: Sequence[Site]) -> dict[str, list[Site]]:
    """The loads that a name was given, casts in between."""
    found: dict[str, list[Site]] = {}
    for s in own:
        value = s.op.operands.get("value")
        if s.op.name == "load":
            for t in s.targets:
                found.setdefault(t, []).append(s)
        elif s.op.name == "compute" and isinstance(value, Expr) and value.op == "cast" and value.args[0].op == "var" and (loads := found.get(str(value.args[0].attrs["name"]))):
            for t in s.targets:
                found.setdefault(t, []).append(loads[-1])
    return found


def _apart(program: Program, role: str, loop: For, one: Site, other: Site, start: Expr) -> int | None:
    """By how many rounds a load in front of a loop lies behind the one of its first round, along the one axis that the loop moves."""
    a, b = _place(one), _place(other)
    if a is None or b is None or a[0] != b[0] or len(a[1]) != len(b[1]):
        return None
    resolve = resolver_of(program, role)
    out: int | None = None
    for x, y in zip(a[1], b[1], strict=True):
        (c, mine), (d, theirs) = linear(resolve(x)), linear(resolve(y))
        step = theirs.pop(f"?{loop.var}", 0)
        if step and start.op == "const" and isinstance(start.attrs["value"], int):
            d += step * start.attrs["value"]
        elif step:
            return None
        if mine != theirs or (c != d and not step) or (step and ((c - d) % step or out is not None)):
            return None
        out = (c - d) // step if step else out
    return out


def _place(s: Site) -> tuple[str, list[Expr]] | None:
    """What a load reads, and where: coordinates of a tensor, or rows and columns of a view."""
    coords, view = s.op.operands.get("coords"), s.op.operands.get("view")
    if isinstance(coords, tuple):
        return None if any(isinstance(c.type, FragT) for c in coords) else (f"{s.op.attrs.get('tensor')}", list(coords))
    at: list[Expr] = []
    key = ""
    while isinstance(view, Expr):
        if view.op in ("rows", "cols"):
            at.append(view.args[1])
            key += f"{view.op}{view.attrs.get('n')}."
        elif view.op == "stage" and view.args[1].op == "var":
            key += f"[{view.args[1].attrs['name']}]"
        else:
            return (f"{key}{view.attrs.get('view')}", at) if view.op == "view" else None
        view = view.args[0]
    return None


__all__ = ["Standing", "standing"]
