"""Q020: a plan's workspaces are written before they are read."""

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.plan import Plan, Run, Workspace, Zero
from cake_ir.program import Program
from cake_verify.analyses.tensors import read_tensors, writes_before_reading, written_tensors
from cake_verify.rule import Page
from cake_verify.rules.examples import PLAN, edit

PAGE = Page(
    code="Q020",
    title="a workspace is read before it is written",
    statement="Every workspace of a plan is written by a launch, or cleared by `lm.zero`, before a launch reads it; a tensor marked `.zeroed` is cleared before its launch.",
    why="Workspaces hold whatever was there before; under test they are poisoned.",
    failing=edit(PLAN, ("lm.run(copy, X=X, Y=z)\n    lm.run(copy, X=z, Y=Y)", "lm.run(copy, X=z, Y=Y)\n    lm.run(copy, X=X, Y=z)")),
    passing=PLAN,
    limits="A launch that writes some elements counts as writing the workspace, and so does one whose first operation on it is a write; which elements is the schedules' coverage (Q001).",
)


def check_plan(plan: Plan, programs: tuple[Program, ...]) -> Iterator[Fault]:
    spaces = {s.name: s for s in plan.steps if isinstance(s, Workspace)}
    written: set[str] = set()
    cleared: set[str] = set()
    read: set[str] = set()
    launches = iter(programs)
    for step in plan.steps:
        if isinstance(step, Zero):
            written.add(step.tensor)
            cleared.add(step.tensor)
        elif isinstance(step, Run):
            program = next(launches)
            reads, writes = read_tensors(program), written_tensors(program)
            for p, bound in step.tensors.items():
                space = spaces.get(bound)
                at = step.spans.get(p, step.span)
                if space is not None and bound not in written and p in reads and not writes_before_reading(program, p):
                    yield Fault("Q020", f"`{bound}` is read by `{program.name}` before anything was written to it", at, ((space.span, "declared here"),),
                                "launch what fills it first, or clear it with `lm.zero`", (), {"workspace": bound, "schedule": program.name})  # fmt: skip
                    written.add(bound)
                if space is not None and program.tensors[p].zeroed and bound not in cleared:
                    yield Fault("Q020", f"`{p}` of `{program.name}` starts from zeros, but `{bound}` is not cleared", at, ((program.tensors[p].span, "declared `.zeroed`"),),
                                f"put `lm.zero({bound})` before this launch", (), {"workspace": bound, "schedule": program.name})  # fmt: skip
                if p in reads:
                    read.add(bound)
            written |= {bound for p, bound in step.tensors.items() if p in writes}
            cleared -= written & {bound for p, bound in step.tensors.items() if p in writes}
    for name, space in spaces.items():
        if name not in read:
            yield Fault("Q020", f"workspace `{name}` is never read", space.span, (), "remove it, or run what reads it", (), {"workspace": name}, severity="warning")
