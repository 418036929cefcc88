"""Which accumulators and A registers may be in flight at each wgmma and at each wait of a role: decides where registers are pinned.

The state is the list of in-flight groups, oldest first. At a loop head the longer of the entry's and the back edge's lists stands for
both: the gates have made sure that the back edge only adds groups at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_backend.cuda.faults import not_lowered
from cake_ir.program import Expr, For, If, Op, Stmt, op_of
from cake_ir.types import FragT

Group = frozenset[str]
State = tuple[Group, ...]


@dataclass(slots=True)
class InFlight:
    """By operation id: places to pin before an mma issues, and places to pin after a wait because they have just retired."""

    opens: frozenset[int] = frozenset()
    before: dict[int, tuple[str, ...]] = field(default_factory=dict)
    after: dict[int, tuple[str, ...]] = field(default_factory=dict)
    accumulators: set[str] = field(default_factory=set)
    """Every name that is an accumulator of a wgmma in the role."""
    carried: set[str] = field(default_factory=set)
    """Places that may still be in flight where an iteration ends: they are declared outside the loop."""


def place_name(e: Expr) -> str | None:
    """The variable at the bottom of a place expression."""
    while e.op != "var":
        if not e.args:
            return None
        e = e.args[0]
    return str(e.attrs["name"])


def registers_of(op: Op) -> Group:
    """Names of the places that an mma holds until it has retired: its accumulator, and A if it comes from registers."""
    names = {place_name(op.operands["acc"])}  # type: ignore[arg-type]  # a place operand is one expression
    a = op.operands["a"]
    if isinstance(a, Expr) and isinstance(a.type, FragT):
        names.add(place_name(a))
    return frozenset(n for n in names if n is not None)


def analyse(body: tuple[Stmt, ...], opens: frozenset[int]) -> InFlight:
    """In-flight states of a role's body; `opens` are the MMAs that begin a group."""
    found = InFlight(opens)
    _block(body, (), found)
    return found


def _longer(a: State, b: State) -> State:
    return a if len(a) >= len(b) else b


def _block(block: tuple[Stmt, ...], state: State, found: InFlight) -> State:
    for s in block:
        if isinstance(s, For):
            # Twice settles it: the back edge only appends, and a wait in the body bounds what stays.
            after = _block(s.body, state, found)
            for _ in range(2):
                if len(after) <= len(state):
                    break
                state = after
                after = _block(s.body, state, found)
            state = _longer(state, after)
            found.carried |= frozenset().union(*after) if after else frozenset()
            continue
        if isinstance(s, If):
            then, orelse = _block(s.then, state, found), _block(s.orelse, state, found)
            if len(then) != len(orelse):
                not_lowered("a branch whose arms leave different MMA groups in flight", s.head, "peel the loop so that both arms drain")
            state = then
            continue
        op = op_of(s)
        if op is None:
            continue
        if op.name == "mma" and op.attrs.get("kind") == "wgmma":
            group = registers_of(op)
            flying = frozenset().union(*state) if state else frozenset()
            found.accumulators.add(str(place_name(op.operands["acc"])))  # type: ignore[arg-type]  # a place operand is one expression
            found.before[op.id] = tuple(sorted(group - flying))
            state = (*state, group) if op.id in found.opens or not state else (*state[:-1], state[-1] | group)
        elif op.name == "mma_wait":
            pending = int(op.attrs.get("pending") or 0)  # type: ignore[arg-type]  # pending is an int option
            left, kept = (state[: len(state) - pending], state[len(state) - pending :]) if pending else (state, ())
            still = frozenset().union(*kept) if kept else frozenset()
            retired = frozenset().union(*left) - still if left else frozenset()
            found.after[op.id] = tuple(sorted(retired))
            state = kept
    return state
