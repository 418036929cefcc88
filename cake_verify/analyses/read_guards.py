"""Branches on what memory holds: which numbers are worth reading so that runs go both ways, and the way that does something first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cake_ir.program import Expr, If, Program
from cake_verify.analyses.blocks import LENGTH
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.runs import at_least
from cake_verify.analyses.tape import evaluate
from cake_verify.analyses.trips import NO_VALUE

if TYPE_CHECKING:
    from cake_verify.analyses.settings import Settings

MANY = 32
"""Conditions of a program that are no longer each looked at with rounds in it."""
PLENTY = 4096
"""More than any tile has: a count that lets everything through."""
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


def reads(e: Expr) -> bool:
    """Whether a condition looks at an element of a tensor."""
    return not apart(e) and any(n.op == "ld" and "tensor" in n.attrs for n in e.parts())


def apart(e: Expr) -> bool:
    """Whether this asks for two conditions to go different ways."""
    return "apart" in e.attrs


def one_apart(branches: list[tuple[If, Expr]]) -> list[tuple[If, Expr]]:
    """For conditions of two branches that differ in one number only, `a < b` and `a <= b`, that they go different ways: runs in which they agree
    do not show that one role goes where its partner does not."""
    if len(branches) < 2:
        return []
    found: dict[str, tuple[If, Expr, int]] = {}
    out: list[tuple[If, Expr]] = []
    for branch, cond in branches:
        for c in (cond, *(cond.args if cond.op == "or" else ())):
            if c.op not in ("lt", "le", "gt", "ge"):
                continue
            least, terms = at_least(c.op, *c.args)
            other = found.setdefault(str(sorted(terms.items())), (branch, c, least))
            if abs(other[2] - least) == 1:
                out.append((branch, Expr("ne", (other[1], c), {"apart": True}, c.type, c.span)))
            break
    return out if len(out) <= _PAIRS else []  # a ladder of numbers


_PAIRS = 6


def by_some_member(program: Program, role: str, cond: Expr, names: set[str]) -> Expr:
    """A condition that compares with the member as its first or its last member has it: `blk * 64 < tok` may hold for no first one."""
    last = program.roles[role].members - 1
    return Expr("or", (cond, of_member(cond, last)), {}, cond.type, cond.span) if last and "role_index" in names else cond


def of_member(e: Expr, member: int) -> Expr:
    """An expression as one member has it."""
    if e.op == "role_index":
        return Expr("const", (), {"value": member}, e.type, e.span)
    return Expr(e.op, tuple(of_member(a, member) for a in e.args), e.attrs, e.type, e.span) if e.args and e.op != "field" else e


def counted(e: Expr) -> bool:
    """Whether a condition compares with a round, a member or a block, of which the search only knows the first, or one element of a tensor with another,
    where it reads one number everywhere: `arms` says what no run came to."""
    return neighbours(e) or any(n.op in ("var", "role_index", "cta_rank", "cta_id") for n in outside_reads(e))


def neighbours(e: Expr) -> bool:
    """Whether a condition asks if two elements of one tensor are the same."""
    return any(n.op in ("eq", "ne") and all(a.op == "ld" for a in n.args) and n.args[0].attrs["tensor"] == n.args[1].attrs["tensor"] for n in e.parts())


def values_of(conditions: Iterable[Expr]) -> dict[str, list[int]]:
    """By tensor, numbers at which a comparison with its elements changes sides, and one far above."""
    out: dict[str, list[int]] = {}
    for cond in conditions:
        for n in outside_reads(cond):
            if n.op not in _COMPARED:
                continue
            constants = [int(x.attrs["value"]) for x in n.parts() if x.op == "const" and isinstance(x.attrs["value"], int)]  # type: ignore[call-overload]  # tested here
            for x in n.parts():
                if x.op == "ld" and "tensor" in x.attrs:
                    out.setdefault(str(x.attrs["tensor"]), []).extend([PLENTY, *(c + d for c in constants[:4] for d in (0, 1, -1))])
    return out


def held(search: Settings, tensor: str, value: int, env: Mapping[str, Any]) -> int:
    """A value to be read, brought into what `lm.assume_values` says of a tensor whose elements branches look at.

    One that says how often a loop runs keeps to the least that is stated: the greatest comes from arguments that nothing else may tie to it.
    """
    stated = search.bounds.get(tensor)
    if stated is None:
        least = search.least.get(tensor)
        return value if least is None else max(value, least)
    lo, hi = (evaluate(search.program, e, env) for e in (stated.lo, stated.hi))
    if not isinstance(lo, int) or not isinstance(hi, int):
        return value
    return max(lo, min(value, hi - 1))


def least_of(program: Program, tensors: Iterable[str]) -> dict[str, int]:
    """The least number that is stated for each of the tensors for which one is."""
    stated = {t: d.lo for t in tensors if (d := declared_values(program, t)) is not None}
    return {t: int(e.attrs["value"]) for t, e in stated.items() if e.op == "const" and isinstance(e.attrs["value"], int)}


def only_branched(search: Settings) -> list[str]:
    """The tensors that only branches look at: no loop is as long as they say."""
    decided = {str(n.attrs["tensor"]) for x in search.loops for e in (x.lo, x.hi) for n in e.parts() if n.op == "ld"}
    return [t for t in search.read if t not in decided and t not in search.prefix]


def at_first(search: Settings, choice: dict[str, int]) -> dict[str, Any]:
    """What is known under a choice at the first tile, which lies at the end of its axis where tiles come in descending order."""
    env = search.environment(choice)
    if search.scheduler is not None and search.scheduler.raster == "heavy_first":
        env["tile"] = search.tiles(env)[1]
    return env


def kept_out(search: Settings, choice: dict[str, int]) -> int:
    """How many branches on what is read a run does not take."""
    return sum(not side for side, c in zip(search.sides_of(choice), search.guard_conditions, strict=True) if reads(c))


def passing_first(search: Settings, candidates: dict[str, list[int]]) -> dict[str, list[int]]:
    """The candidates, those of read tensors that let a run through the most branches first: what stands behind them is walked at every goal."""
    guards = [i for i, c in enumerate(search.guard_conditions) if reads(c)]
    if not guards:
        return candidates
    start = {n: values[0] for n, values in candidates.items()}
    for name in [n for n in candidates if n.startswith(LENGTH)]:
        if not any(str(x.attrs.get("tensor")) == name[len(LENGTH) :] for i in guards for x in search.guard_conditions[i].parts() if x.op == "ld"):
            continue

        def passed(value: int, name: str = name) -> int:
            try:
                sides = search.guards(search.environment({**start, name: value}))
            except NO_VALUE:
                return 0
            return -sum(sides[i] for i in guards)

        def rank(value: int, passed: Callable[[int], int] = passed) -> tuple[int, bool]:
            return passed(value), value != PLENTY

        candidates[name] = sorted(candidates[name], key=rank)
        start[name] = candidates[name][0]
    return candidates
