"""Updates that combine with what is in memory, one indivisible step an element."""

from __future__ import annotations

from cake_ir.dtypes import DTYPES
from cake_ir.ops.effects import Touch
from cake_ir.ops.move import placed
from cake_ir.ops.spec import Call, OpSpec, P, always
from cake_ir.program import Expr
from cake_ir.types import NONE, FragT, ScalarT, Type, ViewT

COMBINES: dict[str, tuple[str, ...]] = {
    "add": ("i32", "u32", "f32", "f16", "bf16"), "min": ("i32", "u32", "f32"), "max": ("i32", "u32", "f32"), "inc": ("u32",),
    "and": ("i32", "u32"), "or": ("i32", "u32"), "xor": ("i32", "u32"),
}  # fmt: skip
"""What an atomic update may do, and the element types that have it."""

BF16_ADD = frozenset({"sm_80", "sm_89"})
"""Targets without a bf16 addition in memory."""


def _combines(call: Call, dtype: str) -> None:
    op = str(call.attrs["op"])
    if op not in COMBINES:
        call.fault("N061", f"`{op}` is not an atomic update", "op", help=f"updates: {' '.join(COMBINES)}")
    if dtype not in COMBINES[op]:
        call.fault("D003", f"there is no atomic `{op}` of {dtype}", "op", help=f"`{op}` exists for {', '.join(COMBINES[op])}", expected=list(COMBINES[op]), found=dtype)


def _value(call: Call, name: str, dtype: str | None) -> str:
    """The element type of the update; D003 where it is not the memory's, D007 where it is unfinished."""
    x = call.type_of("x")
    have = x.dtype if isinstance(x, (FragT, ScalarT)) else "f32"
    literal = isinstance(e := call.operands["x"], Expr) and e.op == "const"
    if dtype and have != dtype and not (literal and DTYPES[dtype].kind in ("float", "int", "uint")):
        call.fault("D003", f"`{name}` holds {dtype}, the value is {have}", "x", help=f"update with `lm.cast(.., lm.{dtype})`", expected=dtype, found=have)
    if isinstance(x, FragT) and x.partial:
        call.fault("D007", f"a partial `{x.partial}` is used before `lm.finish`", "x", help="finish it: `lm.finish(..)`")
    return dtype or have


def _atomic(call: Call) -> Type:
    tensor = call.scope.declared(str(call.attrs["tensor"]))
    dtype = _value(call, tensor.name, tensor.dtype)
    _combines(call, dtype)
    if call.attrs["scope"] not in ("cta", "gpu", "sys"):
        call.fault("N061", f"`{call.attrs['scope']}` is not a scope", "scope", help="scopes: cta gpu sys")
    if call.attrs["order"] not in (None, "any"):
        call.fault("N061", f"`{call.attrs['order']}` is not an order", "order", help='write `order="any"`, or leave it out')
    placed(call)
    return NONE


def _view_atomic(call: Call) -> Type:
    view, x, idx = call.type_of("view"), call.type_of("x"), call.type_of("idx")
    assert isinstance(view, ViewT)
    dtype = _value(call, view.view, view.dtype)
    _combines(call, dtype)
    if dtype not in ("i32", "u32", "f32"):
        call.fault("D003", f"atomic updates of shared memory work on 32-bit elements, `{view.view}` holds {dtype}", "view")
    if view.rank != 1:
        call.fault("D021", f"`idx` counts the elements of a 1-D view, `{view.view}` is {len(view.shape)}-D", "view", expected=1, found=len(view.shape))
    if not isinstance(idx, FragT) or idx.dtype != "i32":
        call.fault("D024", f"`idx` takes an i32 fragment, found {idx}", "idx")
    if isinstance(x, FragT) and (x.form, x.shape, x.chunk) != (idx.form, idx.shape, idx.chunk):
        call.fault("D002", f"`x` is {x}, `idx` is {idx}: threads hold different elements", "idx", help="make one from the other, or with `like=`")
    return NONE


SPECS = (
    OpSpec("atomic", "atomic", (P("tensor", "gmem"), P("x", "value|scalar"), P("coords", "coords"), P("op", "str", "add"), P("scope", "str", "gpu"),
                                P("order", "str", None), P("mask", "value", None), P("clip", "bool", False)),
           _atomic, always(Touch("tensor", "rw", "gmem")), doc="Combine a fragment (or, by one thread a member, a scalar) with global memory."),
    OpSpec("atomic", "atomic", (P("view", "view"), P("x", "value|scalar"), P("idx", "value"), P("op", "str", "add")),
           _view_atomic, always(Touch("view", "rw", "smem")), on="view",
           doc="Combine values with shared memory at per-element indices; an index outside the view touches nothing."),
)  # fmt: skip
