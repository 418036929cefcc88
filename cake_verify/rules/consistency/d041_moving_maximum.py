"""D041: what is summed relative to a running maximum follows it."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import holding, mentions
from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, For, If, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.sites import Site, rounds, sites
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import LARGEST, places
from cake_verify.rules.examples import edit

PAGE = Page(
    code="D041",
    title="a sum relative to a maximum that has moved",
    statement="A sum that a loop carries, of exponentials less a running maximum, is multiplied in every round by the exponential of what the maximum has moved by: of one maximum less the next, and not less a number.",
    why="Earlier rounds were summed relative to an earlier maximum: without the factor, a later and larger maximum leaves them too heavy. Online softmax is right only as long as the first block holds the largest score.",
    failing=edit(LARGEST, ("total * lm.exp(most - top) + lm.sum", "total + lm.sum")),
    passing=LARGEST,
    limits="Looked for where the running maximum is `lm.max` of a vector that the loop carries, the exponential is of a difference with it, and sum and factor stand under no condition but one that all of the round stands under.",
)



def check(program: Program) -> Iterator[Fault]:
    said = mentions(program).keys()
    if "max" not in said or said.isdisjoint(EXPONENTIALS):
        return
    having = holding(program)
    largest, relative = having["max"], frozenset[int]().union(*(having[op] for op in having.keys() & EXPONENTIALS))
    for role in program.roles:
        for loop, inside in rounds(program, role):
            here = [s.op.id for s in inside]
            if not largest.isdisjoint(here) and not relative.isdisjoint(here):
                yield from _Round(program, role, loop, inside).faults()


class _Round:
    """One loop of a role: what it carries, its running maxima, and what is relative to them."""

    def __init__(self, program: Program, role: str, loop: For, inside: tuple[Site, ...]) -> None:
        own = sites(program).of_role(role)
        self.program, self.role, self.loop = program, role, loop
        self.inside = inside
        self.depth = inside[0].path.index(loop)
        before = self.before = {t for s in own[: inside[0].order] for t in s.targets}
        outer = sum([isinstance(x, If) for x in inside[0].path[: self.depth]])
        bound = [(s, (*s.targets, *places(s)), _arms(s)[outer:] if s.arms else []) for s in inside]
        moving = [arms for _, names, arms in bound if not before.isdisjoint(names)]
        taken = moving[0] if moving and all([c == moving[0] for c in moving]) else []  # an arm that has all of a round: without it nothing moves
        self.free = [s for s, _, arms in bound if arms == taken[: len(arms)]]
        self.doubtful = {t for _, names, arms in bound if arms != taken[: len(arms)] for t in names}
        self.changed = {t for _, names, _ in bound for t in names}
        self.carried = (before & self.changed) - self.doubtful
        self.computed = [(s, e) for s in self.free if s.op.name == "compute" and isinstance(e := s.op.operands.get("value"), Expr)]
        self.maxima: set[str] = set()
        for s, e in self.computed:
            if (e.op == "where" and any([_named(a) in self.maxima for a in e.args[1:]])) or any([n.op == "max" and any([_named(a) in self.carried for a in n.args]) for n in nodes(program)[s.op.id]]):
                self.maxima |= set(s.targets) - self.doubtful

    def faults(self) -> Iterator[Fault]:
        weights: dict[str, str] = {}  # names of what is relative to a running maximum, with that
        factors: dict[str, str] = {}
        for s, e in self.computed if self.maxima - self.carried else ():
            for t in s.targets:
                if factor := self._factor(e, factors):
                    factors[t] = factor
                elif (relative := self._relative(e, weights)) and (t not in self.carried or not any(_named(n) == t for n in e.parts())):
                    weights[t] = relative  # an operand that the next round takes is relative to a maximum, too
        yield from self._to_a_number()
        yield from self._from_the_start()
        of_op = nodes(self.program)
        for s in self.free:
            place, most = self._adds(s, weights) if s.op.name == "mma" or s.targets else ("", "")
            if place and not any(place in x.targets and any([n.op == "mul" and any([self._factor(a, factors) for a in n.args]) for n in of_op[x.op.id]]) for x, _ in self.computed):
                factor = next((f for f, m in factors.items() if m == most), None)
                ready = factor is not None and any(factor in x.targets and x.order < s.order for x in self.free)
                fixes: tuple[Fix, ...] = (edits.before(s.op.span, f"{place} = {place} * {factor}"),) if ready and s.op.name == "mma" else ()
                moved = next(x for x in self.inside if most in x.targets)
                message = f"`{place}` keeps what earlier rounds have summed relative to another maximum than `{most}`, and nothing multiplies it by the exponential of the difference"
                yield Fault("D041", message, s.op.span, ((moved.op.span, f"`{most}` moves here"),), f"multiply `{place}` by the exponential of the old maximum less `{most}` first", fixes, {"name": place})
                return

    def _to_a_number(self) -> Iterator[Fault]:
        """What is carried, multiplied by the exponential of a running maximum less what no round changes."""
        moving = {t for s, e in self.computed for t in s.targets if t in self.carried and (t in self.maxima or _named(e) in self.maxima)}
        wrong: dict[str, tuple[Site, str]] = {}
        for s, e in self.computed if moving else ():
            for place, n in ((t, n) for t in s.targets if t in self.carried for n in e.parts() if n.op == "mul" and any(_named(a) == t for a in n.args)):
                found = next((wrong[_named(a)] for a in n.args if _named(a) in wrong), None)
                if found is not None:
                    factor, most = found
                    yield Fault("D041", f"`{place}` is multiplied in every round by the exponential of `{most}` less something that no round changes: only a difference of two maxima brings it from one to the other",
                                factor.op.span, ((s.op.span, "multiplied here"),), f"subtract the new maximum where this subtracts a number, here and where the terms of `{place}` are made", (), {"name": place})  # fmt: skip
                    return
            for t in s.targets:
                wrong.pop(t, None)
                x = unscaled(e.args[0]) if e.op in EXPONENTIALS and isinstance(e.type, FragT) and e.type.form in ("rowvec", "colvec") else None
                if x is not None and x.op == "sub" and (most := _named(unscaled(x.args[0]))) in moving and not any(n.op == "var" and (n.attrs["name"] in self.changed or not self._still(str(n.attrs["name"]))) for n in x.args[1].parts()):
                    wrong[t] = s, most

    def _from_the_start(self) -> Iterator[Fault]:
        """What is carried, multiplied by the exponential of a maximum that no round keeps less the one that it was taken into."""
        if not any([e.op == "max" and any([_named(a) in self.before and _named(a) not in self.carried for a in e.args]) for _, e in self.computed]):
            return
        taken: dict[str, tuple[set[str], Site]] = {}  # maxima of this round, with the names that they take in and no round changes
        factors: dict[str, tuple[str, str]] = {}
        for s, e in self.computed if self.carried else ():
            if e.op == "max" and len(s.targets) == 1 and (still := {n for a in e.args if (n := _named(a)) in self.before and n not in self.changed and not self._number(n)}):
                taken[s.targets[0]] = still, s
            found = next((f for n in e.parts() if n.op == "mul" and any(_named(a) in self.carried and _named(a) in s.targets for a in n.args) for a in n.args if (f := _difference(a, taken) or factors.get(_named(a)))), None)
            if found is not None:
                old, new = found
                yield Fault("D041", f"`{old}` is not brought up to date in this loop: every round takes `{new}` as the maximum with what `{old}` was in front of it, and multiplies `{s.targets[0]}` by the exponential of their difference",
                            taken[new][1].op.span, ((s.op.span, "multiplied here"),), f"keep it at the end of the round, `{old} = {new}`", (), {"name": old})  # fmt: skip
                return
            for t in s.targets:
                factors.pop(t, None)
                if (factor := _difference(e, taken)) is not None:
                    factors[t] = factor

    def _number(self, name: str) -> bool:
        """Whether a name is a vector of one number and nothing else: D040 tells of it."""
        bound = sites(self.program).results.get((self.role, name), ())
        start = bound[0].op.operands.get("value") if len(bound) == 1 else None
        return isinstance(start, Expr) and start.op in ("rowvec", "colvec")

    def _still(self, name: str) -> bool:
        """Whether a name is bound outside of the loop alone."""
        return not any(any(x is self.loop for x in b.path) for b in sites(self.program).bindings.get((self.role, name), ()))

    def _adds(self, s: Site, weights: dict[str, str]) -> tuple[str, str]:
        """The carried sum to which an operation adds something relative to a maximum, and that maximum."""
        if s.op.name == "mma":
            acc, init = s.op.operands["acc"], s.op.operands.get("init")
            place = _named(acc) if isinstance(acc, Expr) else ""
            most = next((r for k in ("a", "b") if isinstance(x := s.op.operands[k], Expr) and (r := self._relative(x, weights))), "")
            return (place, most) if place in self.carried and most and (init is None or (isinstance(init, Expr) and init.op == "const" and not init.attrs["value"])) else ("", "")
        e = s.op.operands.get("value") if s.op.name == "compute" else None
        if not isinstance(e, Expr) or e.op != "add" or len(s.targets) != 1 or s.targets[0] not in self.carried:
            return "", ""
        sides = [(a, b) for a, b in (e.args, e.args[::-1]) if _named(a) == s.targets[0]]
        return (s.targets[0], self._relative(sides[0][1], weights)) if sides and self._relative(sides[0][1], weights) else ("", "")

    def _relative(self, e: Expr, weights: dict[str, str]) -> str:
        """The running maximum less which an expression is an exponential, or a sum of such."""
        if e.op == "var":
            return weights.get(str(e.attrs["name"]), "")
        if e.op in EXPONENTIALS:
            return self._less(e, False)
        if e.op in ("reduce", "sum", "finish", "cast"):
            return self._relative(e.args[0], weights)
        if e.op == "mul":  # a scale a column, of values in a narrow type
            return next((r for x, scale in (e.args, e.args[::-1]) if (not isinstance(scale.type, FragT) or scale.type.form == "colvec") and (r := self._relative(x, weights))), "")
        return self._relative(e.args[1], weights) if e.op == "where" else ""

    def _factor(self, e: Expr, factors: dict[str, str]) -> str:
        """The running maximum to which an expression brings what is relative to another one."""
        return factors.get(str(e.attrs["name"]), "") if e.op == "var" else self._less(e, True) if e.op in EXPONENTIALS else self._factor(e.args[1], factors) or self._factor(e.args[2], factors) if e.op == "where" else ""

    def _less(self, e: Expr, vector: bool) -> str:
        """The running maximum that is subtracted under an exponential: from a vector, or from a tile."""
        if not isinstance(e.type, FragT) or (e.type.form in ("rowvec", "colvec")) is not vector:
            return ""
        x = unscaled(e.args[0])
        name = _named(unscaled(x.args[1])) if x.op == "sub" else ""
        return name if name in self.maxima else ""


def _arms(s: Site) -> list[tuple[int, bool]]:
    """The branches around an operation, each with the arm that it stands in."""
    return [(id(x), arm) for x, arm in s.branches()]


def _difference(e: Expr, taken: dict[str, tuple[set[str], Site]]) -> tuple[str, str] | None:
    """The old and the new maximum of which an exponential has the difference, where the new one takes in the old one."""
    x = unscaled(e.args[0]) if e.op in EXPONENTIALS else None
    if x is None or x.op != "sub":
        return None
    old, new = (_named(unscaled(a)) for a in x.args)
    return (old, new) if new in taken and old in taken[new][0] else None


def unscaled(e: Expr) -> Expr:
    """What a number or a scalar multiplies."""
    while e.op == "mul" and any(not isinstance(a.type, FragT) for a in e.args) and any(isinstance(a.type, FragT) for a in e.args):
        e = next(a for a in e.args if isinstance(a.type, FragT))
    return e


def _named(e: Expr) -> str:
    return str(e.attrs["name"]) if e.op == "var" else ""
