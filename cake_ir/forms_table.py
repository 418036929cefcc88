"""Which register form converts to which in the language, and the cheapest legal route where it does not.

The list says which changes a cast may ask for; whether the elements of a given fragment stay where they are is computed (`conversions`).
"""

from __future__ import annotations

from cake_ir.conversions import conversion
from cake_ir.dtypes import DTYPES
from cake_ir.forms import Fragment, fragment_problem
from cake_ir.types import FragT


def cast_form(x: FragT, form: str, dtype: str, member_warps: int) -> tuple[str, str] | None:
    """None if `lm.cast(x, dtype, form=form)` exists in a member of `member_warps` warps, else (reason, the cheapest route that does)."""
    if why := _unlisted(x, form, dtype, member_warps):
        return why
    src, dst = _place(x, x.form, x.dtype, member_warps), _place(x, form, dtype, member_warps)
    if fragment_problem(src) or fragment_problem(dst):
        return None  # there is no such fragment, which is another fault
    found = conversion(src, dst)
    return None if found.legal else ("other threads hold the elements", found.route)


def depth(dtype: str) -> int:
    """Neighbouring columns that a thread has of an operand: 4 of 8-bit elements, 1 of tf32, else 2 as computed from 16-bit ones."""
    return 1 if dtype == "tf32" else 4 if DTYPES[dtype].bits == 8 and dtype != "bool" else 2


def _place(x: FragT, form: str, dtype: str, warps: int) -> Fragment:
    """Where the elements of `x` lie in a form; operands keep the order of the type that an MMA reads, whatever they are computed in."""
    bits = 32 // depth(dtype) if form in ("a", "b") else DTYPES[dtype].container_bits
    return Fragment(form, x.rows, x.cols, bits, warps, x.warps, x.chunk or 1, x.parent or "acc")  # type: ignore[arg-type]  # a form, by the list


def _unlisted(x: FragT, form: str, dtype: str, member_warps: int) -> tuple[str, str] | None:
    """Why a cast is not in the language's list."""
    bits = DTYPES[dtype].bits if dtype in DTYPES else 32
    row_warps = x.warps[0] if x.warps else member_warps
    if x.form == "acc" and form == "b" and row_warps > 1:
        return (f"{row_warps} warps each hold some of the rows, an MMA needs all of them in every warp",
                "go through shared memory: `view.store(..)`, `lm.sync`, `view.ldmatrix(form=\"b\", like=..)`")  # fmt: skip
    if form == "acc" and bits == 16 and (x.form == "a" or (x.form == "b" and row_warps == 1)):
        return None
    if x.form == "acc" and form in ("a", "b"):
        if bits == 16:
            return None
        if bits == 8 and form == "a":
            return None
        return (f"only 16-bit values keep their threads, `{dtype}` has {bits} bits", "cast to a 16-bit type, or go through shared memory")
    if x.form == "a" and form == "acc":
        return ("an operand fragment does not become an accumulator", "keep the accumulator it was made from")
    if {x.form, form} == {"acc", "rows"}:
        return ("different threads own the elements", "go through shared memory: `view.store(..)`, `lm.sync`, `view.load(form=..)`")
    if form == "vec":
        return ("different threads own the elements", "`view.store(..)`, `lm.sync`, then `view.load(form=\"vec\")`")
    return ("the conversion table has no such entry", "go through shared memory: `view.store(..)`, `lm.sync`, `view.load(form=..)`")
