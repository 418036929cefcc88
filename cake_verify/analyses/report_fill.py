"""A choice among columns that a copy filled in, told as a fault."""

from __future__ import annotations

from cake_ir.fault import Fault
from cake_verify.analyses.labels import boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.value_walk import ValueWalk


def chosen_fill(plan: Plan, walk: ValueWalk, setting: Setting) -> list[Fault]:
    """At most one fault: the first minimum or maximum over zeros that a copy filled in, at the mask that lets them pass if there is one."""
    if not walk.fills.chosen:
        return []
    c = walk.fills.chosen[0]
    assert c.fill.label
    axis, start, number = c.fill.label
    load = plan.program.ops[number]
    box = boxed(plan, load)
    tensor, name = str(load.attrs.get("tensor")), axis
    end = c.fill.extent - start
    infinity = "lm.inf" if c.kind == "min" else "-lm.inf"
    facts = {"role": c.member.role, "setting": str(setting), "reduction": c.kind, "expected": max(0, end)}
    filled = (load.span, f"fills with zeros from `{name}` = {c.fill.extent} on; this tile starts at {start}")
    what = "the choice" if c.at.op.startswith("arg") else f"the {c.kind}"
    if c.fill.mask is not None:
        message = (f"this mask lets {c.fill.passed} columns pass, and `{tensor}` ends {max(0, end)} columns into the tile: zeros filled in beyond it reach {what}, "
                   f"for which zero is not neutral")  # fmt: skip
        help = f"compare positions of the tile that was loaded, `base=` its first `{name}`, with the extent of `{name}`"
        return [Fault("D010", message, c.fill.mask.span, ((c.at.span, f"{what} runs over them"), filled), help, (), facts | {"found": c.fill.passed})]
    message = f"zeros that a copy of `{tensor}` filled in reach {what}, for which zero is not neutral"
    base = f"base={start}" if box is None else f"base=.. the tile's first `{name}`"
    return [Fault("D010", message, c.at.span, (filled,), f"mask first: `lm.where(lm.iota(x, axis=1, {base}) < .., x, {infinity})`", (), facts)]
