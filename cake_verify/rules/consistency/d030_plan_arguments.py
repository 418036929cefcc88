"""D030: what a plan passes to a schedule fits its parameters."""

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.plan import Plan, Run, Workspace
from cake_ir.program import Expr, Param, Program
from cake_ir.span import Span
from cake_verify.analyses.trips import linear, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import PLAN, edit

PAGE = Page(
    code="D030",
    title="a plan passes something that does not fit",
    statement="A tensor or workspace that a plan passes to a schedule has the rank and the dtype of the parameter, and its extents where both are numbers or differ by a number; scalars have its dtype.",
    why="A kernel addresses memory by the parameter's type. Another dtype or rank reads and writes beside the data.",
    failing=edit(PLAN, ("dtype=lm.f32)\n    lm.run", "dtype=lm.bf16)\n    lm.run")),
    passing=PLAN,
)


def check_plan(plan: Plan, programs: tuple[Program, ...]) -> Iterator[Fault]:
    spaces = {s.name: s for s in plan.steps if isinstance(s, Workspace)}
    given = {p.name: p for p in plan.params}
    runs = [s for s in plan.steps if isinstance(s, Run)]
    for step, program in zip(runs, programs, strict=True):
        for name, bound in step.tensors.items():
            wanted, at = program.tensors[name], step.spans.get(name, step.span)
            space = spaces.get(bound)
            rank, dtype, where = (len(space.shape), space.dtype, space.span) if space else (given[bound].rank, given[bound].dtype, given[bound].span)
            extents: list[object] = [e.attrs.get("value") if e.op == "const" else None for e in space.shape] if space else [*given[bound].extents]
            yield from _tensor(program, wanted, bound, at, where, rank, dtype, extents)
            if space is not None and rank == wanted.rank:
                yield from _extents(program, wanted, space, step, at)
        for name, e in step.scalars.items():
            wanted = program.scalars[name]
            found = getattr(e.type, "dtype", None)
            if found != wanted.dtype and e.op != "const":
                yield Fault("D030", f"`{name}` of `{program.name}` is {wanted.dtype}, the plan passes {found}", step.spans.get(name, step.span), ((wanted.span, f"{wanted.dtype} here"),),
                            facts={"expected": wanted.dtype, "found": found})  # fmt: skip


def _extents(program: Program, wanted: Param, space: Workspace, step: Run, at: Span) -> Iterator[Fault]:
    """Extents of a workspace that differ by a number from what the launch says of them, whatever the arguments."""
    for axis, (name, have) in enumerate(zip(wanted.extents, space.shape, strict=False)):  # extents need not be declared
        given = step.scalars.get(name) if isinstance(name, str) else None
        if given is None:
            continue
        off, terms = linear(Expr("sub", (given, have)))
        if off and not terms:
            message = f"dimension {axis} of `{wanted.name}` is `{name}` = {spoken(given)}, `{space.name}` has {spoken(have)}"
            yield Fault("D030", message, step.spans.get(str(name), at), ((wanted.span, f"`{wanted.name}` of `{program.name}`"), (space.span, f"`{space.name}`")),
                        facts={"expected": spoken(have), "found": spoken(given)})  # fmt: skip


def _tensor(program: Program, wanted: Param, bound: str, at: Span, where: Span, rank: int, dtype: str | None, extents: list[object]) -> Iterator[Fault]:
    related = ((wanted.span, f"`{wanted.name}` of `{program.name}`"), (where, f"`{bound}`"))
    if rank != wanted.rank:
        message = f"`{wanted.name}` of `{program.name}` has {wanted.rank} dimension{'s' if wanted.rank > 1 else ''}, what the plan passes has {rank}"
        yield Fault("D030", message, at, related, f"the launches that share `{bound}` see it in one shape: give them parameters of one rank, in which an element is at `row * columns + column` where it has one axis",
                    facts={"expected": wanted.rank, "found": rank})  # fmt: skip
    elif wanted.dtype is not None and dtype is not None and dtype != wanted.dtype:
        yield Fault("D030", f"`{wanted.name}` holds {wanted.dtype}, `{bound}` holds {dtype}", at, related, facts={"expected": wanted.dtype, "found": dtype})
    else:
        for axis, (a, b) in enumerate(zip(wanted.extents, extents, strict=False)):
            if isinstance(a, int) and isinstance(b, int) and a != b:
                yield Fault("D030", f"dimension {axis} of `{wanted.name}` is {a}, `{bound}` has {b}", at, related, facts={"expected": a, "found": b})
