"""N090: an operation that parses but that this build does not complete."""

from collections.abc import Iterable, Iterator

from cake_ir.derive.structure import listed, nodes
from cake_ir.fault import Fault
from cake_ir.ops import SPECS, spec_of
from cake_ir.program import Assign, Expr, Program
from cake_ir.span import Span
from cake_verify.rule import Page
from cake_verify.rules.examples import TENSOR_MEMORY, edit

UNDECIDES = True

_SCALED = TENSOR_MEMORY.replace("LM.bf16", "LM.e4m3").replace('dtype=lm.bf16, swizzle="128b"', 'dtype=lm.e4m3, swizzle="64b"')
for _old, _new in (
    ("    load = ", "    sf = lm.tmem(cols=128, width=4, shape=(128, 16), dtype=lm.ue8m0)\n    load = "),
    ("        lm.mma(acc, a, b, init=True)\n", '        scales = lm.scales(sf, block=32, dtype=lm.ue8m0, layout="tmem_128x4")\n        lm.mma(acc, a, b, init=True, scale_a=scales, scale_b=scales)\n'),
):
    _SCALED = edit(_SCALED, (_old, _new))

PAGE = Page(
    code="N090",
    title="known, not in this build",
    statement="Every operation of the vocabulary parses; of some, this build knows the spelling and not yet all effects, and says so.",
    why="A schedule with such an operation is neither proved nor refused: the verdict is undecided.",
    failing=_SCALED,
    passing=TENSOR_MEMORY,
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    paired = any(op.attrs.get("ctas") == 2 for op in program.ops)
    found = nodes(program)
    for op in program.ops:
        spec = spec_of(op)
        if not spec.build:
            yield from _note(spec.spelling, op.span, told)
        elif paired and op.name == "tmem_copy":
            yield from _note(spec.spelling, op.span, told, " beside MMAs of a pair of CTAs")
        yield from _pure(found[op.id], told)
    for _, body in listed(program):
        for s in body:
            if isinstance(s, Assign) and isinstance(s.value, Expr):  # another name for a view or a region is no operation
                yield from _pure(s.value.walk(), told)


def _pure(found: Iterable[Expr], told: set[str]) -> Iterator[Fault]:
    """Operations without effects, which stand in expressions."""
    for node in found:
        if "operands" not in node.attrs:
            continue
        pure = SPECS.get(("lm", node.op))
        if pure is not None and not pure.build:
            yield from _note(pure.spelling, node.span, told)


def _note(spelling: str, span: Span, told: set[str], where: str = "") -> Iterator[Fault]:
    if spelling not in told:
        told.add(spelling)
        yield Fault("N090", f"`{spelling}`{where} is known, but not in this build: nothing is decided about it", span, facts={"operation": spelling}, severity="note")
