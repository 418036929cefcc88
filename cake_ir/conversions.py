"""Which form changes exist in registers, what each costs, and the cheapest way round for the ones that do not.

Whether data must move is computed from the ownership maps of ``cake_ir.forms``, not asserted: a conversion is free when
every thread already holds what it needs. The language has the free ones, the packing of an accumulator into an 8-bit or
tf32 ``a`` operand by shuffles inside a quad, and ``lm.transpose``; everything else names a route through shared memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal

from cake_ir.forms import MOST_REGISTERS, Form, Fragment, element_table, fragment_problem, registers, registers_32
from cake_ir.record import record

Movement = Literal["none", "quad", "warp", "cta"]

_TILE_FORMS = ("acc", "a", "b")


@record()
class Conversion:
    """One form change. ``how`` is what lowering does, ``instructions`` how many instructions of that kind a thread issues
    besides the dtype conversions; when not ``legal``, ``route`` is the cheapest sequence that gives the same fragment."""

    legal: bool
    how: str
    instructions: int = 0
    route: str = ""

    @property
    def free(self) -> bool:
        """Legal and no data moves between threads."""
        return self.legal and self.instructions == 0


@lru_cache(maxsize=512)
def movement(src: Fragment, dst: Fragment, transposed: bool = False) -> Movement:
    """How far elements must travel from ``src`` to ``dst``: within the thread (``"none"``), the four lanes of a quad, the
    warp, or between warps. ``transposed`` reads element (r, c) of ``dst`` from (c, r) of ``src``."""
    have, need = _held(src, False), _held(dst, transposed)
    if all(n <= h for h, n in zip(have, need, strict=True)):
        return "none"
    for size, name in ((4, "quad"), (32, "warp")):
        if all(
            set().union(*need[i : i + size]) <= set().union(*have[i : i + size]) for i in range(0, len(have), size)
        ):  # fmt: skip
            return name  # type: ignore[return-value]  # one of the literals above
    return "cta"


@lru_cache(maxsize=128)
def _held(f: Fragment, transposed: bool) -> tuple[frozenset[int], ...]:
    """For every thread of the member, its elements as numbers; the numbering is that of a matrix read by rows."""
    table = element_table(f)
    threads, count = table.shape[0] * 32, table.shape[2]
    width = f.rows if transposed else f.cols
    keys = [
        (c * width + r if transposed else r * width + c) if r >= 0 else -1 for r, c in zip(table.rows, table.cols, strict=True)
    ]
    return tuple(frozenset(k for k in keys[i * count : (i + 1) * count] if k >= 0) for i in range(threads))


@lru_cache(maxsize=512)
def conversion(src: Fragment, dst: Fragment) -> Conversion:
    """The change of ``src`` into ``dst`` (same shape; ``bits`` may differ, the cast is counted elsewhere).

    This is what ``lm.cast(x, dtype, form=..)`` and mixing two fragments in one operation ask.
    """
    if (src.rows, src.cols) != (dst.rows, dst.cols):
        return Conversion(False, "", route=f"the shapes differ: {src.rows} x {src.cols} and {dst.rows} x {dst.cols}")
    fault = fragment_problem(dst)
    if fault:
        return Conversion(False, "", route=fault)
    if replace(src, bits=dst.bits, quad=dst.quad) == dst and (src.form not in ("a", "b") or (src.bits, src.quad) == (dst.bits, dst.quad)):
        return Conversion(True, "nothing moves")
    if src.form == "scalar":
        return Conversion(True, "every thread has it")
    if max(registers_32(src), registers_32(dst)) > MOST_REGISTERS:
        return Conversion(True, "no thread holds it")  # refused by its size (D026); where each of millions of elements lies is not worth knowing
    how_far = movement(src, dst)
    if how_far == "none":
        packed = "pack neighbouring elements" if dst.bits < 32 else "rename registers"
        return Conversion(True, packed if src.form != dst.form else "nothing moves")
    if how_far == "quad" and src.form == "acc" and dst.form == "a":
        # Two shuffles for every four values: each lane sends one half of a quad's row and receives the other.
        return Conversion(True, "shuffles within the quad", -(-registers(dst) // 2))
    return Conversion(False, "", route=_route(src, dst))


def _route(src: Fragment, dst: Fragment) -> str:
    """The cheapest legal way from ``src`` to ``dst``, as words of the language."""
    if src.form == "acc" and dst.form == "b" and src.warps == 1:
        return "use lm.transpose, or store to a view and load it with form=\"b\""
    if dst.form == "rows":
        return "store to a view and load it with form=\"rows\", or write tensor memory and read it with lm.tmem_load"
    if src.form == "rows" and dst.form == "acc":
        return 'read tensor memory with lm.tmem_load(t, form="acc"), or store to a view and load it with form="acc"'
    if src.form == "vec" and dst.form == "vec":
        return f"load both with the same chunk (like=), here vec[{src.chunk}] meets vec[{dst.chunk}]"
    if (src.form == "colvec" and dst.form == "rowvec") or (src.form == "rowvec" and dst.form == "colvec"):
        return f'store the {src.form} to a 1-D view, sync, and load it with form="{dst.form}"'
    if src.split != dst.split and src.form in _TILE_FORMS and dst.form in _TILE_FORMS:
        return f"the fragments are split over warps differently ({_split(src)} and {_split(dst)}); use one split, or go through a view"
    return f'store to a view, sync, and load it with form="{dst.form}"'


def _split(f: Fragment) -> str:
    return f"warps=({f.split[0]}, {f.split[1]})" if f.split else "rows over all warps"


def reachable(src: Fragment, bits: int) -> tuple[Form, ...]:
    """The forms that ``src`` can be cast to in registers at ``bits`` an element, for a refusal to offer."""
    out: list[Form] = []
    for form in ("acc", "a", "b", "rows", "vec"):
        dst = replace(src, form=form, bits=bits)  # type: ignore[arg-type]  # the literals of the loop
        if form != src.form and fragment_problem(dst) is None and conversion(src, dst).legal:
            out.append(form)  # type: ignore[arg-type]  # as above
    return tuple(out)


@lru_cache(maxsize=256)
def transpose(src: Fragment, to: Form = "b") -> Conversion:
    """``lm.transpose(x)``: the fragment of ``x.T`` in form ``to`` (``b`` uses x as a K x N operand; or ``acc``).

    Exists for 16-bit ``acc``, ``a`` and ``b`` whose transpose stays within the warp: one ``movmatrix`` an 8 x 8 tile.
    """
    if src.bits != 16:
        return Conversion(False, "", route="cast to a 16-bit type first, the hardware transposes 8 x 8 tiles of 16-bit elements")
    if src.form not in _TILE_FORMS:
        return Conversion(False, "", route=f'a `{src.form}` fragment is not made of 8 x 8 tiles; store it to a view and load view.T with form="{to}"')
    dst = replace(src, form=to, rows=src.cols, cols=src.rows)
    fault = fragment_problem(dst)
    if fault:
        return Conversion(False, "", route=fault)
    if movement(src, dst, transposed=True) == "cta":
        return Conversion(False, "", route=f'the rows lie on several warps; store to a view, sync, and load view.T with form="{to}"')
    return Conversion(True, "one movmatrix an 8 x 8 tile", registers(dst) // 2)
