"""Columns of tensor memory that nothing has written, told as a fault where what would fill them can be guessed."""

from __future__ import annotations

from cake_ir.fault import Fault, Fix
from cake_ir.ops.scales import region_of
from cake_ir.program import Expr, Op
from cake_ir.types import ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Replay
from cake_verify.analyses.report_site import Site, view_of
from cake_verify.analyses.words import call, spoken_slot


def unwritten_columns(r: Replay, s: Site, lines: tuple[str, ...]) -> Fault:
    """A read of columns that nothing has written: with a copy from shared memory where one view of their type is loaded and not read."""
    decl = r.plan.program.tmems[s.view]
    writes = [x.op for x in r.plan.sites.values() if any("w" in m and view_of(x.op, o) == s.view for o, m in r.tmem_touches(x.op))]
    message = f"{call(s.op)} reads columns of `{s.view}` that nothing has written"
    related = (*((o.span, f"writes `{s.view}`") for o in writes[:2]), (decl.span, "declared here"))
    source = None if writes else _idle_view(r, s)
    fixes: tuple[Fix, ...] = ()
    if source is not None:
        fixes = (edits.before(edits.stmt_span(r.plan, s.op), f"lm.tmem_copy({s.view}, {source})"),)
    help_text = (f"bring them first: `lm.tmem_copy({s.view}, ..)` by the same thread, or `lm.tmem_store` and a barrier" if not writes
                 else "what writes them comes first: in front of this, of the same thread, or behind a wait for it")  # fmt: skip
    return Fault("S027", message, s.span, related, help_text, fixes, {"tmem": s.view, "setting": str(r.setting)}, lines)


def _idle_view(r: Replay, s: Site) -> str | None:
    """The one view of the columns' type and shape that is filled and that nothing reads, at the slot of the product's operands."""
    region = region_of(s.op.operands.get(s.operand))
    e = s.op.operands[s.operand]
    whole = isinstance(e, Expr) and any(x.op == "tmem" for x in ([e.args[0]] if e.op == "scales" else [e]))
    if region is None or not whole:
        return None
    read = {view_of(x.op, o) for x in r.plan.sites.values() for o, m, _ in r.touches(x.op) if "r" in m}
    found = [v for v in r.plan.program.views.values() if v.dtype == region.dtype and len(v.shape) == 2 and v.shape[1] == region.cols and v.shape[0] in (32, 128) and v.name not in read]
    if len(found) != 1:
        return None
    if found[0].stages == 1:
        return found[0].name
    slot = _slot(s.op)
    return f"{found[0].name}[{slot}]" if slot is not None else None


def _slot(op: Op) -> str | None:
    """The slot of an operand in shared memory, as it is written."""
    for name in ("b", "a"):
        e = op.operands.get(name)
        stage = next((x for x in e.parts() if x.op == "stage"), None) if isinstance(e, Expr) and isinstance(e.type, ViewT) else None
        if stage is not None:
            return spoken_slot(stage.args[1])
    return None


__all__ = ["unwritten_columns"]
