"""Which register form converts to which, and the cheapest legal route where it does not (ir-level view of `forms`)."""

from __future__ import annotations

from cake_ir.dtypes import DTYPES
from cake_ir.types import FragT


def cast_form(x: FragT, form: str, dtype: str, member_warps: int) -> tuple[str, str] | None:
    """None if `lm.cast(x, dtype, form=form)` exists in a member of `member_warps` warps, else (reason, the cheapest route that does)."""
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
