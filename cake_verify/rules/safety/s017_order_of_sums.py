"""S017: sums whose order is left to the hardware say so."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.types import ViewT
from cake_verify.analyses.edits import add_argument
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

_SUM = edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32].zeroed"), ("lm.store(Y, x, coords=(0,))", 'lm.atomic(Y, x, coords=(0,), order="any")'))

PAGE = Page(
    code="S017",
    title="the order of a floating-point sum is free and nobody says so",
    statement='Floating-point additions into memory from several blocks or threads carry `order="any"`: the result may differ in its last bits from run to run.',
    why="Atomic additions happen in the order in which the hardware comes to them. Whoever calls the kernel must know that its results are not reproducible bit for bit.",
    failing=edit(_SUM, (', order="any"', "")),
    passing=_SUM,
    limits="Minima, maxima and integer updates give one result in any order and need nothing.",
)


def check(program: Program) -> Iterator[Fault]:
    for op in program.ops:
        if op.name not in ("atomic", "tma_reduce") or op.attrs.get("op") != "add" or op.attrs.get("order") == "any":
            continue
        view = getattr(op.operands.get("view"), "type", None)
        tensor = program.tensors.get(str(op.attrs.get("tensor")))
        dtype = view.dtype if isinstance(view, ViewT) else (tensor.dtype if tensor else None) or "f32"
        if not DTYPES[dtype].is_float:
            continue
        name = tensor.name if tensor is not None else view.view if isinstance(view, ViewT) else "memory"
        yield Fault("S017", f"additions of {dtype} into `{name}` happen in any order", op.span, (), 'write `order="any"` if results may differ in their last bits from run to run',
                    (add_argument(op.span, 'order="any"'),), {"tensor": name, "dtype": dtype})  # fmt: skip
