"""H090: legality cannot be decided without a target."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.targets import TARGETS
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

UNDECIDES = True

PAGE = Page(
    code="H090",
    title="no target",
    statement="The target is named by the schedule, by the caller, or by the workspace's default.",
    why="Whether an instruction exists and how much a block may take depends on the exact architecture. Without one the verdict is undecided.",
    failing=edit(COPY, ('target="sm_90a"', "")),
    passing=COPY,
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        yield Fault("H090", "not decided for any architecture: no target is named", program.span.start(), (),
                    f"write `@cake.schedule(target=\"sm_90a\")`, or give the target with the request: {', '.join(TARGETS)}", severity="note")  # fmt: skip
