"""Products that start from zero over others which nobody has read, told as faults."""

from __future__ import annotations

from cake_ir.fault import Fault, Fix
from cake_ir.program import Assign, Expr, If, Op
from cake_verify.analyses import edits
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.trips import spoken, written
from cake_verify.analyses.value_walk import ValueWalk
from cake_verify.analyses.words import call


def lost_products(plan: Plan, walk: ValueWalk, setting: Setting) -> list[Fault]:
    """Products that start from zero over earlier ones which nobody has read: most of an operation's work is thrown away."""
    out = []
    for number, lost in walk.lost.items():
        op = plan.program.ops[number]
        anew = _starts_anew(plan, op)
        if anew is not None:  # several at once
            lost = max(lost, min(walk.made[number], sum([n[1] for (made, _), n in walk.shares.items() if made == number])))
        if 2 * lost < walk.made[number] or walk.made[number] < 2:
            continue
        if anew is not None:
            at = anew.spans.get("init", anew.span)
            message = f"{call(anew)} starts from zero, and {lost} of {walk.made[number]} products of {call(op)} into the same accumulator are overwritten before anything has read them"
            fix = (edits.replace(at, "False"),) if "init" in anew.spans else ()
            out.append(Fault("S035", message, at, ((op.span, "lost"),), "add to them", fix, {"role": plan.sites[number].role, "lost": lost, "made": walk.made[number], "setting": str(setting)}))
            continue
        start = op.spans.get("init")
        message = f"{lost} of {walk.made[number]} products of {call(op)} are overwritten before anything has read them: its accumulator starts from zero each time"
        loops = [loop for loop in plan.sites[number].loops if loop.kind != "tiles"]
        fixes: tuple[Fix, ...] = ()
        if start is not None and _declared_zero(plan, op):
            fixes = (edits.replace(start, "False", title="add to what the accumulator is declared with"),)
        elif start is not None and loops:
            firsts = [f"{written(x.var)} == {spoken(x.lo) if x.lo is not None else '0'}" for x in loops]
            fixes = (edits.replace(start, f"({' and '.join(firsts)})"),)
        related = ((loops[-1].head, "repeated here"),) if loops else ()
        out.append(Fault("S035", message, start or op.span, related, "start from zero at the first product of a tile only", fixes,
                         {"role": plan.sites[number].role, "lost": lost, "made": walk.made[number], "setting": str(setting)}))  # fmt: skip
    return out or _updates_lost(plan, walk, setting) or _members_lost(plan, walk, setting)


def _starts_anew(plan: Plan, op: Op) -> Op | None:
    """Another product of the role that always starts the accumulator of this one from zero, where this one does not."""
    if _always_anew(op):
        return None
    acc, role = op.operands["acc"], plan.sites[op.id].role
    others = (s.op for s in plan.sites.values() if s.op.name == "mma" and s.role == role and s.op is not op and _always_anew(s.op))
    return next((o for o in others if isinstance(acc, Expr) and isinstance(x := o.operands["acc"], Expr) and acc.op == x.op == "var" and acc.attrs == x.attrs), None)


def _always_anew(op: Op) -> bool:
    init = op.operands.get("init")
    return isinstance(init, Expr) and init.op == "const" and bool(init.attrs["value"])


def _updates_lost(plan: Plan, walk: ValueWalk, setting: Setting) -> list[Fault]:
    """Products that start from zero right behind an update in place of their accumulator, each time."""
    for number, by in walk.clobbered.items():
        if sum(by.values()) < walk.made[number]:
            continue
        op, before = plan.program.ops[number], plan.program.ops[next(iter(by))]
        start = op.spans.get("init", op.span)
        names = [written(t) for t in plan.sites[before.id].stmt.targets] if isinstance(plan.sites[before.id].stmt, Assign) else []  # type: ignore[union-attr]  # tested here
        message = f"{call(op)} starts from zero, and what `{', '.join(names)}` was brought up to date with just before is lost"
        return [Fault("S035", message, start, ((before.span, "updated here, and never read"),), "add to it, or leave the update out",
                      (edits.replace(start, "False"),) if "init" in op.spans else (), {"role": plan.sites[number].role, "setting": str(setting)})]  # fmt: skip
    return []


def _members_lost(plan: Plan, walk: ValueWalk, setting: Setting) -> list[Fault]:
    """Members whose sums nobody reads, while those of the others are read."""
    out = []
    for number in sorted(walk.made):
        shares = {i: share for (n, i), share in walk.shares.items() if n == number}
        idle = [i for i, (made, lost) in shares.items() if 2 * lost >= made]
        if len(shares) < 2 or not idle or len(idle) == len(shares):
            continue
        op, role = plan.program.ops[number], plan.sites[number].role
        index = f"{role}.index"
        guards = list(dict.fromkeys(s.cond.span for x in plan.sites.values() if x.role == role and x.op.id > number for s, _ in x.around
                                    if isinstance(s, If) and any(n.op == "role_index" for n in s.cond.parts())))  # fmt: skip
        message = f"nothing reads what {call(op)} sums in member {idle[0]} of `{role}`: its share of the products is lost"
        related = ((op.span, "summed here"), *((span, "this says who reads, too") for span in guards[1:3])) if guards else ()
        out.append(Fault("S035", message, guards[0] if guards else op.span, related, f"let each member store its sum, or hand it to the one that adds them: a condition on `{index}` says who",
                         (), {"role": role, "member": idle[0], "lost": shares[idle[0]][1], "made": shares[idle[0]][0], "setting": str(setting)}))  # fmt: skip
    return out[:1]


def _declared_zero(plan: Plan, op: Op) -> bool:
    """Whether the accumulator gets a value where it is declared."""
    names = {str(n.attrs["name"]) for n in op.operands["acc"].parts() if n.op == "var"} if isinstance(op.operands["acc"], Expr) else set[str]()
    for s in plan.sites.values():
        value = s.op.operands.get("value")
        if s.role == plan.sites[op.id].role and isinstance(s.stmt, Assign) and names & set(s.stmt.targets) and isinstance(value, Expr) and value.op == "frag":
            return value.attrs.get("init") is not None
    return False


__all__ = ["lost_products"]
