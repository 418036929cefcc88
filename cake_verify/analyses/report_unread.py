"""Parts of shared memory that are written and never read, told as faults."""

from __future__ import annotations

from cake_ir.fault import Fault, Fix
from cake_ir.program import For
from cake_verify.analyses import edits
from cake_verify.analyses.left_out import fixes
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.slices import Slice, slices
from cake_verify.analyses.trips import written
from cake_verify.analyses.unread_parts import COPIES, Rect, Unread, loop_of
from cake_verify.analyses.words import call


def unread_fault(plan: Plan, u: Unread) -> Fault:
    """Slices that are left out: by reads that all take the same one, or by a loop that ends early."""
    axis = _axis(u)
    first, size = (0, 1) if axis == "rows" else (2, 3)
    rows, taken = _stretch(u.parts, first, size), _stretch(u.read, first, size)
    brought = f"{call(u.op)} brings" if u.op.name in COPIES else f"{_who(u)} of `{plan.sites[u.op.id].role}` write{'s' if len(u.members) == 1 else ''}"
    are = f"{axis} {rows} of `{u.view}`, which {brought}, are never read"
    related = [(u.op.span, "written here")]
    mends: tuple[Fix, ...] = ()
    part = next((s for s in slices(plan, u.reader) if s.form is not None and not s.form.terms), None)
    if u.odd:
        takes = f"every read takes {axis} {taken}" if len(u.read) == 1 else f"{call(u.reader)} takes {axis} that others take"
        message = f"{takes}: {are}"
        span = part.span if part is not None else u.reader.span
        mends = _own_part(plan, u, part, first, size) if part is not None else ()
        help = "let each member or round take its own part, or do not write what nobody needs"
    else:
        message = f"{are}, and {axis} {taken} are"
        loop = loop_of(plan, u.reader)
        span = loop.head if loop is not None else u.reader.span
        mends = _longer(loop, u, first, size)
        help = "read all parts, or do not write what nobody needs"
    if span != u.reader.span:
        related.insert(0, (u.reader.span, "read here"))
    facts: dict[str, object] = {"role": u.role, "view": u.view, "unread": rows}
    return Fault("S028", message, span, tuple(related), help, mends, facts)


def _axis(u: Unread) -> str:
    """Along which axis the parts lie one after another."""
    return "rows" if len({(r[0], r[1]) for r in (*u.parts, *u.read)}) > 1 else "columns"


def _stretch(parts: tuple[Rect, ...], first: int, size: int) -> str:
    """Parts as ranges, neighbours joined."""
    out: list[list[int]] = []
    for lo, n in sorted({(p[first], p[size]) for p in parts}):
        if out and out[-1][1] >= lo:
            out[-1][1] = max(out[-1][1], lo + n)
        else:
            out.append([lo, lo + n])
    return ", ".join(f"{lo}..{hi}" for lo, hi in out[:3]) + (", .." if len(out) > 3 else "")


def _who(u: Unread) -> str:
    what = "CTA" if u.op.name == "send" else "member"
    return f"{what}{'s' if len(u.members) > 1 else ''} {', '.join(map(str, u.members))}"


def _own_part(plan: Plan, u: Unread, part: Slice, first: int, size: int) -> tuple[Fix, ...]:
    """The start that would take what is left: the round's, the member's, or the one part that nobody takes."""
    units, n = len(u.parts) + len(u.read), u.parts[0][size]
    if not part.lo.span.line:
        return ()
    times = lambda name: name if n == 1 else f"{n} * {name}"  # noqa: E731 - two uses
    loop = loop_of(plan, u.reader)
    if loop is not None and loop.hi is not None and loop.hi.attrs["value"] == units:
        return (edits.replace(part.lo.span, times(written(loop.var))),)
    if plan.program.roles[u.role].members == units:
        return (edits.replace(part.lo.span, times(f"{u.role}.index")),)
    return (edits.replace(part.lo.span, str(u.parts[0][first])),) if len(u.parts) == 1 else ()


def _longer(loop: For | None, u: Unread, first: int, size: int) -> tuple[Fix, ...]:
    if loop is None or not u.parts:
        return ()
    lo = min(p[first] for p in u.parts)
    return fixes(loop, (lo, max(p[first] + p[size] for p in u.parts)), u.parts[0][size])


__all__ = ["unread_fault"]
