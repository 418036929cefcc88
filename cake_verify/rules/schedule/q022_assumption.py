"""Q022: the arguments of a request keep what the schedule assumes."""

from collections.abc import Iterator, Mapping
from typing import Any

from cake_ir.derive.structure import stated
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.tape import evaluate
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP

PAGE = Page(
    code="Q022",
    title="an assumption that these arguments break",
    statement="Every `lm.assume` holds for the extents that a request gives.",
    why="The launcher refuses such a launch: the schedule is not wrong, it is not for this shape.",
    failing=LOOP,
    passing=LOOP,
    limits="Extents come with the request, or from its task; without them nothing is said.",
    severity="warning",
)


def check_extents(program: Program, extents: Mapping[str, Any]) -> Iterator[Fault]:
    """Assumptions that are false for `extents` (values of run-time scalars by name)."""
    for a in program.assumes:
        for c in stated(a.cond):
            if evaluate(program, c, extents) is False:
                named = ", ".join(f"{x.attrs['name']} = {extents[str(x.attrs['name'])]}" for x in c.parts() if x.op == "param")
                yield Fault("Q022", f"this assumption does not hold for {named or 'any arguments'}", c.span, (), "the launcher refuses these arguments", (), {"extents": dict(extents)},
                            severity="warning")  # fmt: skip
