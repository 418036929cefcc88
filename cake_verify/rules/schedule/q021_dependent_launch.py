"""Q021: a dependent launch waits for the one before it."""

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops import effects_of
from cake_ir.ops.effects import GridDependency
from cake_ir.plan import Plan, Run
from cake_ir.program import Program
from cake_verify.analyses.tensors import written_tensors
from cake_verify.rule import Page
from cake_verify.rules.examples import PLAN, edit

PAGE = Page(
    code="Q021",
    title="a dependent launch that does not wait",
    statement="A schedule run with `after=\"pdl\"` executes `lm.pdl_wait()`, and no tensor that it marks `.const` is written by the launch before it; the first launch of a plan depends on nothing.",
    why="A dependent launch starts while the kernel before it still runs. Without the wait it reads data that are not there yet; `.const` data are read without waiting.",
    failing=edit(PLAN, ("lm.run(copy, X=z, Y=Y)", 'lm.run(copy, X=z, Y=Y, after="pdl")')),
    passing=edit(PLAN, ("lm.run(copy, X=z, Y=Y)", 'lm.run(copy, X=z, Y=Y, after="pdl")'), ("    with work:", "    with work:\n        lm.pdl_wait()")),
    limits="Whether every role waits before its first access is decided schedule by schedule.",
    sources=("HW101",),
)


def check_plan(plan: Plan, programs: tuple[Program, ...]) -> Iterator[Fault]:
    before: set[str] | None = None
    runs = [s for s in plan.steps if isinstance(s, Run)]
    for step, program in zip(runs, programs, strict=True):
        if step.after == "pdl":
            span = step.spans.get("after", step.span)
            off = (Fix((Edit(span, '"stream"'),), "certain", "an ordinary launch"),)
            if before is None:
                yield Fault("Q021", "the first launch of a plan depends on no other", span, (), "", off)
            elif not any(isinstance(e, GridDependency) and e.kind == "wait" for op in program.ops for e in effects_of(op, program)):
                yield Fault("Q021", f'`{program.name}` is run after="pdl" and never waits for the launch before it', span, ((program.span.start(), "no `lm.pdl_wait()` here"),),
                            "add `lm.pdl_wait()` before the first access to data of the launch before", off, {"schedule": program.name})  # fmt: skip
            else:
                for p, bound in step.tensors.items():
                    if program.tensors[p].const and bound in before:
                        yield Fault("Q021", f"`{p}` of `{program.name}` is `.const`, but the launch before it writes `{bound}`", step.spans.get(p, step.span),
                                    ((program.tensors[p].span, "read without waiting"),), "drop `.const`, or launch without pdl", off, {"tensor": p})  # fmt: skip
        before = {bound for p, bound in step.tensors.items() if p in written_tensors(program)}
