"""What members store in one place in turn, where each writes over what the one before has left and nobody has read.

Members that combine their parts in shared memory take turns: the first stores, the others add to what they find. Where they store, too, no
two of them meet and nothing is read too early, and the last one's part is the result.
"""

from __future__ import annotations

from typing import Any

from cake_ir.derive.structure import members_at
from cake_ir.fault import Fault
from cake_ir.program import Expr, Op
from cake_verify.analyses.machine import Machine
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.trips import resolver_of
from cake_verify.analyses.words import call


class Overwritten:
    """The stores of members to one place, and whether what one leaves is ever read before the next one writes."""

    def __init__(self, machine: Machine) -> None:
        self.plan = machine.plan
        self.lost: set[int] = set()
        self.kept: set[int] = set()
        for number, site in self.plan.sites.items():
            step = machine.steps[number]
            if site.op.name == "store" and step is not None and _one_place(self.plan, site.op, site.role) and len(members_at(self.plan.program, site)) > 1:
                machine.steps[number] = self._watched(site.op, step)

    def _watched(self, op: Op, step: Step) -> Step:
        atoms, at, number = self.plan.lookup(op, "view"), self.plan.code.ops[op.id].index["view"], op.id
        lost, kept, last = self.lost, self.kept, dict[Any, Any]()

        def watched(m: Any, v: tuple[Any, ...]) -> Any:
            c = m.cta
            here = id(c), v[at]
            before, last[here] = last.get(here), (c, m)  # the CTA is kept, so that no other one gets its number
            if before is not None and before[1] is not m:
                region = [a for a in atoms[v[at]] if c.O[a] == number]
                (kept if any(c.R[a] for a in region) or not region else lost).add(number)
            return step(m, v)

        return watched

    def faults(self) -> list[Fault]:
        """The first store of which only the last member's values are ever read."""
        for number in sorted(self.lost - self.kept):
            op, site = self.plan.program.ops[number], self.plan.sites[number]
            view = op.operands["view"]
            name = view.type.view if isinstance(view, Expr) else ""  # type: ignore[union-attr]  # a view's type names it
            return [Fault("S028", f"the members of `{site.role}` store to the same bytes of `{name}` one after the other, and nothing reads what one has left before the next writes over it", op.span, (),
                          help=f"add to what is there, `{call(op)}({name}.load(..) + ..)`, or give each member a part of its own", facts={"view": name, "role": site.role})]  # fmt: skip
        return []


def _one_place(plan: Plan, op: Op, role: str) -> bool:
    """Whether an operation stores values that differ to bytes that do not move with the member."""
    view, x = op.operands.get("view"), op.operands.get("x")
    if not isinstance(view, Expr) or not isinstance(x, Expr) or x.op == "const" or plan.program.roles[role].members < 2:
        return False
    return not any(n.op == "role_index" for n in resolver_of(plan.program, role)(view).parts())


__all__ = ["Overwritten"]
