"""Whether the roles that meet on a ring step it by numbers that come from the same arguments.

A run decides trip counts for the arguments that were tried. Where both ends count with the same arguments, settings on both sides of
every block boundary tell different expressions apart; where they count with different ones, nothing says that these agree outside the
tried values, unless an assumption does.
"""

from __future__ import annotations

from cake_ir.fault import Fault
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt
from cake_ir.span import Span
from cake_verify.analyses import trips


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


def _steps(e: object, ring: str) -> bool:
    return isinstance(e, Expr) and any([n.op == "step" and n.attrs.get("ring") == ring for n in (e.parts() if e.args else (e,))])


def _counted_by(program: Program, role: str, body: tuple[Stmt, ...], ring: str, around: frozenset[str], head: Span | None) -> list[tuple[frozenset[str], Span | None]]:
    """For every step of a ring in a body, what decides how often it happens, with the innermost loop's head."""
    out: list[tuple[frozenset[str], Span | None]] = []
    for s in body:
        if isinstance(s, For):
            inner, span = set(around), head
            if s.kind == "range" and s.lo is not None and s.hi is not None:
                inner |= _sources(program, role, s.lo) | _sources(program, role, s.hi)
                span = s.head
            out += _counted_by(program, role, s.body, ring, frozenset(inner), span)
        elif isinstance(s, If):
            inner = around | _sources(program, role, s.cond)
            out += _counted_by(program, role, s.then, ring, inner, head) + _counted_by(program, role, s.orelse, ring, inner, head)
        elif isinstance(s, Assign) and not isinstance(s.value, Op) and _steps(s.value, ring):
            out.append((around, head))
    return out


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
    for ring in program.rings:
        talks = any(b.pipeline == ring for b in program.barriers.values())
        found: dict[str, tuple[set[str], Span | None]] = {}
        for block in program.body:
            for sources, head in _counted_by(program, block.role, block.body, ring, frozenset(), None):
                found.setdefault(block.role, (set(), head))[0].update(sources)
        roles = list(found)
        for i, a in enumerate(roles):
            for b in roles[i + 1 :]:
                if talks and (fault := _differ(program, ring, a, b, found)) is not None:
                    out.append(fault)
    return out


def _differ(program: Program, ring: str, a: str, b: str, found: dict[str, tuple[set[str], Span | None]]) -> Fault | None:
    one, other = set(found[a][0]), set(found[b][0])
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
