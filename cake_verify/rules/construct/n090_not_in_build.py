"""N090: an operation that parses but that this build does not complete."""

from collections.abc import Iterator

from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.ops import SPECS, spec_of
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.rule import Page
from cake_verify.rules.examples import TENSOR_MEMORY, edit

UNDECIDES = True

PAGE = Page(
    code="N090",
    title="known, not in this build",
    statement="Every operation of the vocabulary parses; of some, this build knows the spelling and not yet all effects, and says so.",
    why="A schedule with such an operation is neither proved nor refused: the verdict is undecided.",
    failing=edit(TENSOR_MEMORY, ("        lm.mma(acc, a, b, init=True)", '        lm.mma(acc, a, b, init=True, scale_a=lm.scales(acc, block=32, dtype=lm.ue8m0, layout="tmem_128x4"))')),
    passing=TENSOR_MEMORY,
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    paired = any(op.attrs.get("ctas") == 2 for op in program.ops)
    for op in program.ops:
        spec = spec_of(op)
        if not spec.build:
            yield from _note(spec.spelling, op.span, told)
        elif paired and op.name == "tmem_copy":
            yield from _note(spec.spelling, op.span, told, " beside MMAs of a pair of CTAs")
        for node in nodes(program)[op.id]:
            if "operands" in node.attrs:
                pure = SPECS.get(("lm", node.op))
                if pure is not None and not pure.build:
                    yield from _note(pure.spelling, node.span, told)


def _note(spelling: str, span: Span, told: set[str], where: str = "") -> Iterator[Fault]:
    if spelling not in told:
        told.add(spelling)
        yield Fault("N090", f"`{spelling}`{where} is known, but not in this build: nothing is decided about it", span, facts={"operation": spelling}, severity="note")
