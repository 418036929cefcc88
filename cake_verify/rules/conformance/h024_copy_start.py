"""H024: tensor copies start on multiples of 16 bytes of the innermost axis."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Expr, Op, Program
from cake_ir.types import ViewT
from cake_verify.analyses import ranges
from cake_verify.analyses.affine import steps
from cake_verify.analyses.sites import Site
from cake_verify.analyses.trips import resolver_of
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

TARGETED = False

PAGE = Page(
    code="H024",
    title="a tensor copy that starts inside 16 bytes",
    statement="The first coordinate of a `view.tma_load`, `tma_store` or `tma_reduce`, or the column of a `tma_gather`, in bytes, is a multiple of 16 in every tile and iteration.",
    why="The copy engine takes the address of a box's first element in units of 16 bytes: the tensor's address and its outer strides are such multiples, so the first coordinate has to be one too. "
    "A copy off it ends the kernel with an illegal instruction (every such start tried on an H200, in maps of one to three axes, in and out), which neither the assembler nor the encoder of the map sees.",
    failing=edit(LOOP, ("a.tma_load(A, coords=(k * 64, t.m * 64)", "a.tma_load(A, coords=(k * 60, t.m * 64)")),
    passing=LOOP,
    limits="Decided from constants, congruences, and what a loop, a tile axis or a member adds from one to the next, also to what is divided by a number (`t.h // group`). A run-time argument in the coordinate is the caller's.",
    sources=("HW043",),
)

_COPIES = ("tma_load", "tma_prefetch", "tma_store", "tma_reduce")


def check(program: Program) -> Iterator[Fault]:
    for site in ranges.live(program, *_COPIES, "tma_gather"):
        op = site.op
        at, view = op.operands.get("coords"), op.operands.get("view")
        first = op.operands.get("col") if op.name == "tma_gather" else at[0] if isinstance(at, tuple) and at else None
        if not isinstance(first, Expr):
            continue
        if not isinstance(view, Expr) or not isinstance(view.type, ViewT):
            continue
        bits = DTYPES[view.type.dtype].container_bits  # a parameter may leave its dtype to the launcher
        if bits < 128 and (found := _found(program, site, first, 128 // bits)):
            yield _fault(op, found, str(op.attrs["tensor"]), bits)


def _fault(op: Op, found: tuple[int, str], tensor: str, bits: int) -> Fault:
    elements, where = found
    text = f"this copy starts {elements * bits // 8} bytes {where} of `{tensor}`, the copy engine starts on multiples of 16"
    rows = "_rows" if op.name == "tma_gather" else ""
    help_ = f"make the first coordinate a multiple of {128 // bits} elements, or take a wider box and read part of it, or copy with `view.cp_async{rows}` or `lm.load`"
    return Fault("H024", text, op.spans.get("coords", op.spans.get("col", op.span)), (), help_, (), {"expected": 128 // bits, "found": elements})


def _found(program: Program, site: Site, e: Expr, per: int) -> tuple[int, str] | None:
    """A start that is certainly off, in elements, and in words what it is counted from."""
    worst = ranges.of(program, site.role.name, e).worst_for(per)
    if worst is not None:
        return worst, "into a row"
    for name, step in sorted(steps(program, site.role.name, e).items()):
        if step % per:  # two copies that are a step apart cannot both be aligned, whatever the rest of the coordinate is
            return abs(step), f"after the one before along `{name}`"
    quotient = resolver_of(program, site.role.name)(e)
    if quotient.op == "floordiv":  # `t.h // group`: one more from group to group
        name = next((n for n, step in sorted(steps(program, site.role.name, quotient.args[0]).items()) if abs(step) == 1), None)
        if name is not None:
            return 1, f"after one of those before along `{name}`"
    return None
