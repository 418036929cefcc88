"""H014: no two adjacent wgmma with the same operands."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mma_groups import wgmma_roles
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Assign, Do, Expr, For, If, Op, Operand, Program, Stmt
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

TARGETED = False

PAGE = Page(
    code="H014",
    title="the same wgmma twice in a row",
    statement="Two neighbouring MMAs on shared-memory operands differ in an operand, or something other than arithmetic stands between them.",
    why="The assembler (13.0 and 13.5) merges adjacent identical wgmma instructions: one product is lost without a message. Measured on an H200.",
    failing=edit(TILE, ("        lm.mma(acc, a, b, init=True)", "        lm.mma(acc, a, b, init=True)\n        lm.mma(acc, a, b)")),
    passing=TILE,
    limits="To add one product twice, scale the result; a wait for the first group between the two also counts as different.",
    sources=("HW067",),
)


def check(program: Program) -> Iterator[Fault]:
    for block in program.body:
        if block.role in wgmma_roles(program):
            yield from _body(block.body)


def _body(body: tuple[Stmt, ...]) -> Iterator[Fault]:
    last: Op | None = None
    for s in body:
        if isinstance(s, For):
            yield from _body(s.body)
            last = None
        elif isinstance(s, If):
            yield from _body(s.then)
            yield from _body(s.orelse)
            last = None
        elif isinstance(s, Do) or (isinstance(s, Assign) and isinstance(s.value, Op) and s.value.name != "compute"):
            op = s.op if isinstance(s, Do) else s.value
            assert isinstance(op, Op)
            if op.attrs.get("kind") != "wgmma":
                last = None
                continue
            if last is not None and not _starts(op) and all(same(last.operands[n], op.operands[n]) for n in ("acc", "a", "b")):
                yield Fault("H014", "this MMA repeats the one before it: same accumulator, same operands", op.span, ((last.span, "the same product"),),
                            "remove it; to add a product twice, scale the result", (Fix((Edit(op.span, "pass"),), "likely", "remove the repetition"),))  # fmt: skip
            last = op


def _starts(op: Op) -> bool:
    init = op.operands.get("init")
    return isinstance(init, Expr) and init.op == "const" and bool(init.attrs["value"])


def same(a: Operand, b: Operand) -> bool:
    """Whether two operands are written alike; every name then means the same, since nothing was assigned in between."""
    if isinstance(a, Expr) and isinstance(b, Expr):
        return a.op == b.op and a.attrs == b.attrs and len(a.args) == len(b.args) and all(same(x, y) for x, y in zip(a.args, b.args, strict=True))
    return a is b
