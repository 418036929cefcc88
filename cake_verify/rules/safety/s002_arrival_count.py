"""S002: the stated arrival count is not what arrives."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.arrivals import Arrivals, arrivals, units
from cake_ir.derive.clusters import is_tx_load
from cake_ir.fault import Edit, Fault, Fix, Severity
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S002",
    title="the stated arrival count is not what arrives",
    statement="`init_count` of a barrier equals the arrivals of one phase, `count` the stages of its ring, and only declared producers arrive.",
    why="With too few arrivals the phase never completes; with too many the next one is corrupted.",
    failing=edit(LOOP, ('cons=[load], arrive="warp", primed=True)', 'cons=[load], arrive="warp", primed=True, init_count=1)')),
    passing=LOOP,
    sources=("HW053", "HW050",),
)


def check(program: Program) -> Iterator[Fault]:
    """Claims of the author against what is derived, and arrivals by roles that are not declared."""
    for a in arrivals(program).values():
        yield from _claims(program, a)
        yield from _strangers(program, a)


def _claims(program: Program, a: Arrivals) -> Iterator[Fault]:
    b = a.barrier
    if b.init_count is not None and b.init_count != a.count:
        span = b.spans.get("init_count", b.span)
        message = f"`{b.name}` is initialised with {b.init_count} arrivals, {a.count} come in each phase: {_terms(a)}"
        related = tuple((s.op.span, f"`{share.role}` arrives here") for share in a.shares for s in share.sites[:1])
        fix = Fix((Edit(span, str(a.count)),), "certain", f"write {a.count}")
        facts = {"barrier": b.name, "expected": a.count, "found": b.init_count}
        yield Fault("S002", message, span, related, help=f"write {a.count}, or leave it out: it is derived", fixes=(fix,), facts=facts)
    ring = program.rings[b.pipeline]
    if b.count is not None and b.count != ring.stages:
        span = b.spans.get("count", b.span)
        message = f"`{b.name}` has {b.count} barriers for the {ring.stages} stages of `{ring.name}`"
        fix = Fix((Edit(span, str(ring.stages)),), "certain", f"write {ring.stages}")
        facts = {"barrier": b.name, "expected": ring.stages, "found": b.count}
        yield Fault("S002", message, span, ((ring.span, f"{ring.stages} stages"),), help="one barrier a stage", fixes=(fix,), facts=facts)


def _strangers(program: Program, a: Arrivals) -> Iterator[Fault]:
    b = a.barrier
    if a.strangers and units(program, b, a.strangers[0].role) > 1 and all(is_tx_load(s, program) for s in a.strangers[0].sites):
        return  # loads that name the wrong barrier: S018
    names = ", ".join(f"`{r}`" for r in b.prod)
    where: Span = b.spans.get("prod", b.span)
    absent = [s.role for s in a.shares if not s.sites]
    severity: Severity = "warning" if a.given == a.count else "error"
    if a.strangers and absent:
        come = ", ".join(f"`{s.role}`" for s in a.strangers)
        gone = ", ".join(f"`{r}`" for r in absent)
        roles = [*(r for r in b.prod if r not in absent), *(s.role for s in a.strangers)]
        fixes = (Fix((Edit(where, f"[{', '.join(roles)}]"),), "likely", f"write [{', '.join(roles)}]"),) if "prod" in b.spans else ()
        related = tuple((s.sites[0].op.span, f"`{s.role}` arrives here") for s in a.strangers)
        yield Fault("S002", f"`{b.name}` declares {gone} as producer, but {come} arrives on it", where, related, help=f"declare who arrives: {come}",
                    fixes=fixes, facts={"barrier": b.name, "expected": roles, "found": list(b.prod)}, severity=severity)  # fmt: skip
        return
    for share in a.strangers:
        message = f"`{share.role}` arrives on `{b.name}`, whose producers are {names}: its arrivals are not counted"
        title = f"declare `{share.role}` as a producer of `{b.name}`"
        fixes = (Fix((Edit(where, f"[{', '.join([*b.prod, share.role])}]"),), "likely", title),) if "prod" in b.spans else ()
        facts = {"barrier": b.name, "role": share.role, "expected": list(b.prod), "found": share.role}
        yield Fault("S002", message, share.sites[0].op.span, ((where, f"counts {names}"),), help=title, fixes=fixes, facts=facts, severity=severity)


def _terms(a: Arrivals) -> str:
    unit = {"warp": "warps", "thread": "threads", "cp_async": "threads"}.get(a.barrier.arrive)
    parts = [f"{s.count} {unit} of `{s.role}`" if unit else f"{s.members} member{'s' if s.members > 1 else ''} of `{s.role}`" for s in a.shares]
    return " + ".join(parts) + (f", from {a.ctas} CTAs" if a.ctas > 1 else "")
