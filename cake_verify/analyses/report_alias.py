"""Views that share bytes, told as faults: written over in between, or read in another layout than they were written in."""

from __future__ import annotations

from cake_ir.fault import Fault
from cake_verify.analyses import edits
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.value_state import Clash
from cake_verify.analyses.words import call


def covered_over(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    """A view whose bytes another view's write has taken while they were still wanted."""
    assert c.one and c.other
    by, decl = plan.program.ops[c.other[2]], plan.program.views[c.one[0]]
    message = f"{call(c.op)} reads `{decl.name}` again after {call(by)} has written other values to the same bytes"
    related = ((c.op.span, "read here"), (by.span, "overwritten here"))
    return Fault("S007", message, decl.spans.get("offset", decl.span), related, "give the views bytes of their own, or fill the view again before it is read", (), facts)


def other_layout(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    """Bytes that were written through a view of another swizzle."""
    assert c.one and c.other
    mine, theirs, by = plan.program.views[c.one[0]], plan.program.views[c.other[0]], plan.program.ops[c.other[2]]
    how = [f'swizzle="{v.swizzle}"' if v.swizzle else "no swizzle" for v in (mine, theirs)]
    message = f"{call(c.op)} reads through `{mine.name}`, which has {how[0]}, what {call(by)} wrote through `{theirs.name}`, which has {how[1]}"
    odd, other = (mine, theirs) if mine.swizzle else (theirs, mine)
    fixes = (edits.replace(odd.spans["swizzle"], f'"{other.swizzle}"' if other.swizzle else "None"),) if "swizzle" in odd.spans else ()
    related = ((by.span, "written here"), (c.op.span, "read here"), (other.span, f"`{other.name}` is declared here"))
    return Fault("S048", message, odd.spans.get("swizzle", odd.span), related, "views that hand values on have one swizzle", fixes, facts)


__all__ = ["covered_over", "other_layout"]
