"""Whether the roles that meet on a ring step it by numbers that come from the same arguments.

A run decides trip counts for the arguments that were tried. Where both ends count with the same arguments, settings on both sides of
every block boundary tell different expressions apart; where they count with different ones, nothing says that these agree outside the
tried values, unless an assumption does.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Assign, Expr, For, If, Program, Stmt
from cake_ir.span import Span
from cake_verify.analyses import trips
from cake_verify.analyses.step_counts import Steps


def _sources(program: Program, role: str, e: Expr) -> set[str]:
    """The arguments, memory reads and tile fields that an expression depends on."""
    out = set()
    for n in trips.resolver_of(program, role)(e).parts():
        if n.op == "param":
            out.add(str(n.attrs["name"]))
        elif n.op == "ld":
            out.add(str(n.attrs["tensor"]))
        elif n.op == "field":
            out.add(f"tile.{n.attrs['name']}")
        elif n.op == "extent":
            out.add(f"{n.attrs['tensor']}.extent({n.attrs['dim']})")
    return out


Step = tuple[str, frozenset[str], Span | None]
"""A ring that is stepped, what decides how often, and the head of the innermost loop around."""


def _counted_by(program: Program, role: str, body: tuple[Stmt, ...], around: frozenset[str], head: Span | None) -> Iterator[Step]:
    """Every step of a ring in a body."""
    for s in body:
        if isinstance(s, For):
            inner, span = around, head
            if s.kind == "range" and s.lo is not None and s.hi is not None:
                inner = around.union(_sources(program, role, s.lo), _sources(program, role, s.hi))
                span = s.head
            yield from _counted_by(program, role, s.body, inner, span)
        elif isinstance(s, If):
            inner = around | _sources(program, role, s.cond)
            yield from _counted_by(program, role, s.then, inner, head)
            yield from _counted_by(program, role, s.orelse, inner, head)
        elif isinstance(s, Assign) and isinstance(s.value, Expr):
            steps = [n for n in s.value.parts() if n.op == "step"] if s.value.args else [s.value] if s.value.op == "step" else []
            for ring in dict.fromkeys([str(n.attrs["ring"]) for n in steps]):
                yield ring, around, head


def _tied(program: Program) -> list[set[str]]:
    """Groups of arguments that equations among the assumptions connect."""
    groups: list[set[str]] = []
    for a in program.assumes:
        for n in trips.resolver_of(program, "")(a.cond).parts():
            if n.op == "eq":
                groups.append({str(x.attrs["name"]) for x in n.parts() if x.op == "param"})
    return groups


def partners(program: Program) -> list[Fault]:
    """Notes on rings whose ends count with different arguments."""
    out = []
    by_ring: dict[str, dict[str, tuple[set[str], Span | None]]] = {}
    for block in program.body:
        for ring, sources, head in _counted_by(program, block.role, block.body, frozenset(), None):
            by_ring.setdefault(ring, {}).setdefault(block.role, (set(), head))[0].update(sources)
    talking = {b.pipeline for b in program.barriers.values()}
    for ring in [r for r in program.rings if r in talking]:
        found = by_ring.get(ring, {})
        roles = list(found)
        for i, a in enumerate(roles):
            for b in roles[i + 1 :]:
                if (fault := _differ(program, ring, a, b, found)) is not None and not _same(program, ring, a, b):
                    out.append(fault)
    return out


def _same(program: Program, ring: str, a: str, b: str) -> bool:
    """Whether the counts of two roles are one polynomial: what only one of them asks, as in the arms of a branch that step equally often, cancels out."""
    counts = [r.count for r in Steps(program).rings.get(ring, ()) if r.role in (a, b)]
    return len(counts) > 1 and all(c == counts[0] for c in counts)


def _differ(program: Program, ring: str, a: str, b: str, found: dict[str, tuple[set[str], Span | None]]) -> Fault | None:
    one, other = set(found[a][0]), set(found[b][0])
    if one == other:
        return None
    for group in _tied(program):
        if one & group:
            one |= group
        if other & group:
            other |= group
    if one == other:
        return None
    only, also = sorted(one - other), sorted(other - one)
    text = " and ".join(
        f"`{role}` by {', '.join(f'`{n}`' for n in names)}" for role, names in ((a, only), (b, also)) if names
    )  # fmt: skip
    span = found[a][1] or found[b][1] or program.rings[ring].span
    related = tuple((at, f"`{role}` steps `{ring}` in this loop") for role, at in ((a, found[a][1]), (b, found[b][1])) if at is not None)
    return Fault("S090", f"not decided: the roles that share `{ring}` count its steps with different arguments, {text}", span, related, severity="note",
                 help="count with the same expression in both roles, or state how the arguments are related: `lm.assume(A == B)`",
                 facts={"ring": ring, a: only, b: also})  # fmt: skip
