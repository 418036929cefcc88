"""Register forms: which thread holds which element of a fragment, for the closed list that the language has.

A fragment is spread over the warps of the role member that executes the operation. ``warp`` counts from the member's
first warp, ``lane`` from 0 to 31 with ``g = lane // 4`` and ``t = lane % 4``, ``register`` counts *elements* a thread
holds (two 16-bit elements share a 32-bit register: ``registers_32`` counts those).

========  ==============================================================================================================
form      ownership
========  ==============================================================================================================
acc       blocks of 16 rows a warp; element i of a block: row ``g + 8*((i>>1)&1)``, column ``8*(i>>2) + 2*t + (i&1)``.
          Without a split, warps take turns at 16 rows (``16*W*block + 16*warp``: four warps make wgmma's 64 rows).
          With ``split=(wm, wn)`` warp w owns the contiguous sub-tile ``(w % wm, w // wm)`` of rows/wm x columns/wn.
          Registers run through the columns of a block, then to the next block.
a         as acc along the rows; with ``p = 32/bits`` elements a register, element i: register ``i//p`` = q of 4 a tile,
          row ``g + 8*(q&1)``, column ``p*t + i%p + 4*p*(q>>1)``. The same on every warp that shares the rows.
b         stored (N, K): n8 tiles, then K tiles of ``8*p``: row ``g``, column ``p*t + i%p + 4*p*q``, q = 0 or 1. With a
          split, N is cut over wn; without, every warp holds all of it.
rows      row ``32*W*block + 32*warp + lane``, register = column.
vec       runs of ``chunk`` consecutive elements (row-major), dealt to the member's threads in turn.
rowvec    one element for each row the thread has in the parent form, the same on the lanes that share the row. Where the parent
          is ``vec``, a row is ``chunk`` consecutive runs (1, 2, 4, .. 32) on as many lanes, and there is one element a run. Where it
          is ``b``, element i is row ``8*i + g``.
colvec    one element for each column the thread has in the parent form, the same on the lanes that share the column.
scalar    one element, the same on every thread.
========  ==============================================================================================================
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Literal

from cake_ir.record import record

Form = Literal["acc", "a", "b", "rows", "vec", "rowvec", "colvec", "scalar"]

FORMS: tuple[Form, ...] = ("acc", "a", "b", "rows", "vec", "rowvec", "colvec", "scalar")


@record()
class Fragment:
    """The place of a fragment's elements: form, shape, element width and the warps it is spread over.

    1-D ``vec`` fragments have ``rows=1``; a ``rowvec`` has ``cols=1``, a ``colvec`` ``rows=1``. ``warps`` is the number of
    warps of the member, ``split`` the ``warps=(wm, wn)`` of an mma.sync tile (None: warps along the rows in turn),
    ``chunk`` the run length of ``vec``, ``parent`` the form that a vector follows. ``quad`` selects the K order that lets
    an 8-bit ``a`` or ``b`` be packed from an ``acc`` without moving data.
    """

    form: Form
    rows: int
    cols: int
    bits: int
    warps: int = 4
    split: tuple[int, int] | None = None
    chunk: int = 1
    parent: Form = "acc"
    quad: bool = False

    @property
    def per_register(self) -> int:
        """Elements that share one 32-bit register; a mask lies as the 16-bit operand that it is of."""
        return 2 if self.bits == 1 else max(1, 32 // self.bits)


def fragment_problem(f: Fragment) -> str | None:
    """Why no such fragment exists, as one lower-case sentence; ``None`` when it does."""
    if f.split is not None and f.split[0] * f.split[1] != f.warps:
        return f"warps=({f.split[0]}, {f.split[1]}) is {f.split[0] * f.split[1]} warps, the member has {f.warps}"
    wm, wn = f.split or (f.warps, 1)
    like = f.parent if f.form in ("rowvec", "colvec") else f.form
    if like in ("acc", "a") and f.form != "colvec" and f.rows % (16 * wm):
        return f"an `{like}` fragment on {wm} warps along the rows needs a multiple of {16 * wm} rows, not {f.rows}"
    if like == "acc" and f.form != "rowvec" and f.cols % (8 * wn):
        return f"an `acc` fragment on {wn} warps along the columns needs a multiple of {8 * wn} columns, not {f.cols}"
    if f.form in ("a", "b") and f.bits not in (1, 4, 8, 16, 32):
        return f"`{f.form}` holds 4-, 8-, 16- or 32-bit elements, not {f.bits}-bit ones"
    if f.form in ("a", "b") and f.cols % (8 * f.per_register):
        return f"an `{f.form}` of {f.bits}-bit elements needs a K that is a multiple of {8 * f.per_register}, not {f.cols}"
    if like == "b" and f.form != "colvec" and f.rows % (8 * (wn if f.split else 1)):
        return f"a `b` fragment needs an N that is a multiple of {8 * (wn if f.split else 1)}, not {f.rows}"
    if like == "rows" and f.form != "colvec" and f.rows % (32 * f.warps):
        return f"a `rows` fragment on {f.warps} warps needs a multiple of {32 * f.warps} rows, not {f.rows}"
    if f.form == "rowvec" and like == "vec" and f.chunk not in (1, 2, 4, 8, 16, 32):
        return f"a row of {f.chunk} runs does not lie on 1, 2, 4, .. 32 neighbouring lanes"
    if f.form == "vec" and (f.chunk < 1 or f.rows * f.cols % f.chunk):
        return f"vec[{f.chunk}] cannot hold {f.rows * f.cols} elements in whole runs"
    return None


def registers(f: Fragment) -> int:
    """Elements a thread holds."""
    wm, wn = f.split or (f.warps, 1)
    if f.form == "acc":
        return f.rows // wm * f.cols // wn // 32
    if f.form == "a":
        return f.rows // wm * f.cols // 32
    if f.form == "b":
        return f.rows // (wn if f.split else 1) * f.cols // 32
    if f.form == "rows":
        return f.rows // (32 * f.warps) * f.cols
    if f.form == "vec":
        return -(-f.rows * f.cols // (32 * f.warps * f.chunk)) * f.chunk
    if f.form == "rowvec" and f.parent == "vec":
        return -(-f.rows * f.chunk // (32 * f.warps))
    if f.form == "rowvec" and f.parent == "b":
        return f.rows // (wn if f.split else 1) // 8
    if f.form == "rowvec":
        return f.rows // (32 * f.warps) if f.parent == "rows" else f.rows // wm // 8
    if f.form == "colvec":
        return f.cols if f.parent == "rows" else f.cols // wn // 4
    return 1


MOST_REGISTERS = 512
"""Registers a thread beyond which a fragment is refused (D026): twice what a thread has. Less may spill, which the compiler's report says."""


def registers_32(f: Fragment) -> int:
    """32-bit registers a thread needs. Tile forms pack narrow elements; vectors and scalars take one each; ``bool`` masks
    (1-bit fragments) take none, they are evaluated where they are used."""
    if f.bits == 1:
        return 0
    count = registers(f)
    if f.bits >= 32 or f.form in ("rowvec", "colvec", "scalar"):
        return count * max(1, f.bits // 32)
    return -(-count // f.per_register)


def element(f: Fragment, warp: int, lane: int, register: int) -> tuple[int, int] | None:
    """The (row, column) that ``register`` of ``lane`` of ``warp`` holds; ``None`` past the end of a ragged ``vec``."""
    g, t = lane >> 2, lane & 3
    wm, wn = f.split or (f.warps, 1)
    if f.form == "vec":
        run, within = divmod(register, f.chunk)
        flat = (run * 32 * f.warps + warp * 32 + lane) * f.chunk + within
        return divmod(flat, f.cols) if flat < f.rows * f.cols else None
    if f.form == "rowvec" and f.parent == "vec":
        run = register * 32 * f.warps + warp * 32 + lane
        return (run // f.chunk, 0) if run < f.rows * f.chunk else None
    if f.form == "scalar":
        return (0, 0)
    if f.form == "b":
        p = f.per_register
        tiles = f.cols // (8 * p)
        tile, within = divmod(register, 2 * p)
        n8, k = divmod(tile, tiles)
        q, j = divmod(within, p)
        base = f.rows // wn * (warp // wm) if f.split else 0
        return base + 8 * n8 + g, 8 * p * k + _k(f, t, q, j)
    if "rows" in (f.form, f.parent if f.form in ("rowvec", "colvec") else ""):
        if f.form == "colvec":
            return 0, register
        block, col = divmod(register, f.cols if f.form == "rows" else 1)
        return 32 * f.warps * block + 32 * warp + lane, col
    if f.form == "rowvec" and f.parent == "b":
        return (f.rows // wn * (warp // wm) if f.split else 0) + 8 * register + g, 0
    if f.form == "rowvec":
        return _row(f, warp, register >> 1, wm) + 8 * (register & 1) + g, 0
    if f.form == "colvec":
        return 0, f.cols // wn * (warp // wm) + 8 * (register >> 1) + 2 * t + (register & 1)
    if f.form == "a":
        p = f.per_register
        block, within = divmod(register, f.cols // 2)
        k, rest = divmod(within, 4 * p)
        q, j = divmod(rest, p)
        return _row(f, warp, block, wm) + 8 * (q & 1) + g, 8 * p * k + _k(f, t, q >> 1, j)
    width = f.cols // wn
    block, i = divmod(register, width // 2)
    row = _row(f, warp, block, wm) + 8 * (i >> 1 & 1) + g
    return row, width * (warp // wm) + 8 * (i >> 2) + 2 * t + (i & 1)


def _row(f: Fragment, warp: int, block: int, wm: int) -> int:
    """First row of the warp's ``block``-th group of 16 rows."""
    if f.split:
        return f.rows // wm * (warp % wm) + 16 * block
    return 16 * f.warps * block + 16 * warp


def _k(f: Fragment, t: int, half: int, j: int) -> int:
    """Column inside a K tile of element j of the lower or upper half for thread t of a quad."""
    p = f.per_register
    if f.quad and p == 4:  # the columns that an accumulator's thread has in two neighbouring n8 blocks
        return 16 * half + 8 * (j >> 1) + 2 * t + (j & 1)
    return 4 * p * half + p * t + j


@record()
class ElementTable:
    """Every thread's elements as flat arrays in the order warp, lane, register.

    ``rows`` and ``cols`` are 32-bit (``i``) and hold -1 where a thread has nothing; ``shape`` is (warps, 32, registers),
    so ``numpy.frombuffer(table.rows, dtype="int32").reshape(table.shape)`` wraps them without a copy.
    """

    shape: tuple[int, int, int]
    rows: array[int]
    cols: array[int]


@lru_cache(maxsize=256)
def element_table(f: Fragment) -> ElementTable:
    """The whole ownership map of ``f``; shared between callers, do not write to it."""
    count = registers(f)
    rows: array[int] = array("i")
    cols: array[int] = array("i")
    if "vec" in (f.form, f.parent if f.form == "rowvec" else ""):
        for warp in range(f.warps):
            for lane in range(32):
                for register in range(count):
                    at = element(f, warp, lane, register) or (-1, -1)
                    rows.append(at[0])
                    cols.append(at[1])
        return ElementTable((f.warps, 32, count), rows, cols)
    # Every other form is (warp's origin) + (lane's origin) + (register's offset): three short tables instead of one long.
    origin = element(f, 0, 0, 0)
    assert origin is not None
    by_register = [element(f, 0, 0, r) or origin for r in range(count)]
    by_lane = [element(f, 0, lane, 0) or origin for lane in range(32)]
    for warp in range(f.warps):
        first = element(f, warp, 0, 0) or origin
        for lane_row, lane_col in by_lane:
            dr, dc = first[0] + lane_row - 2 * origin[0], first[1] + lane_col - 2 * origin[1]
            rows.extend([r + dr for r, _ in by_register])
            cols.extend([c + dc for _, c in by_register])
    return ElementTable((f.warps, 32, count), rows, cols)


@lru_cache(maxsize=256)
def _owner_table(f: Fragment) -> dict[tuple[int, int], tuple[tuple[int, int, int], ...]]:
    """(row, column) to every (warp, lane, register) that holds it."""
    table = element_table(f)
    out: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    index = 0
    for warp in range(f.warps):
        for lane in range(32):
            for register in range(table.shape[2]):
                if table.rows[index] >= 0:
                    out.setdefault((table.rows[index], table.cols[index]), []).append((warp, lane, register))
                index += 1
    return {at: tuple(who) for at, who in out.items()}


def owners(f: Fragment, row: int, col: int) -> tuple[tuple[int, int, int], ...]:
    """Every (warp, lane, register) that holds element (row, column): one for ``acc``, four or more for vectors."""
    return _owner_table(f).get((row, col), ())


@lru_cache(maxsize=1024)
def warp_rectangles(f: Fragment, warp: int) -> tuple[tuple[int, int, int, int], ...]:
    """What one warp holds, as disjoint rectangles (row, rows, column, columns): what it touches in a view it loads or stores."""
    wm, wn = f.split or (f.warps, 1)
    if f.form == "scalar":
        return ((0, 1, 0, 1),)
    if f.form == "vec":
        out = []
        for run in range(registers(f) // f.chunk):
            flat = (run * f.warps + warp) * 32 * f.chunk
            end = min(flat + 32 * f.chunk, f.rows * f.cols)
            while flat < end:
                row, col = divmod(flat, f.cols)
                if col == 0 and end - flat >= f.cols:
                    whole = (end - flat) // f.cols
                    out.append((row, whole, 0, f.cols))
                    flat += whole * f.cols
                    continue
                width = min(f.cols - col, end - flat)
                out.append((row, 1, col, width))
                flat += width
        return tuple(out)
    if f.form == "rowvec" and f.parent == "vec":
        firsts = [32 * (i * f.warps + warp) for i in range(registers(f))]
        ends = [min(first + 32, f.rows * f.chunk) for first in firsts]
        return tuple((a // f.chunk, -(-b // f.chunk) - a // f.chunk, 0, 1) for a, b in zip(firsts, ends, strict=True) if a < b)
    if f.form == "b" or (f.form == "rowvec" and f.parent == "b"):
        n = f.rows // (wn if f.split else 1)
        return ((n * (warp // wm) if f.split else 0, n, 0, f.cols),)
    like = f.parent if f.form in ("rowvec", "colvec") else f.form
    width = 1 if f.form == "rowvec" else f.cols // wn if like == "acc" else f.cols
    first = 0 if f.form == "rowvec" else width * (warp // wm) if like == "acc" else 0
    if f.form == "colvec":
        return ((0, 1, first, width),)
    if f.split and like != "rows":
        height = f.rows // wm
        return ((height * (warp % wm), height, first, width),)
    step = 32 if like == "rows" else 16
    return tuple((top + step * warp, step, first, width) for top in range(0, f.rows, step * f.warps))


# --- matrix loads and stores ------------------------------------------------------------------------------------------


def matrix_lanes(form: Literal["acc", "a", "b"], bits: int = 16) -> tuple[tuple[int, int], ...]:
    """(row, column) of the 16-byte row that each lane addresses in one ``.x4`` matrix load or store.

    ``acc`` and ``a`` cover 16 rows x 32 bytes: matrices (upper rows, left), (lower, left), (upper, right), (lower, right),
    which are registers 0 to 3. ``b`` covers two n8 tiles: (tile 0, left), (tile 0, right), (tile 1, left), (tile 1,
    right). Columns are elements; a transposed load (``.T`` view) addresses the same places of the transposed matrix.
    """
    step = 128 // bits
    if form == "b":
        return tuple(((i & 7) + 8 * (i >> 4), step * (i >> 3 & 1)) for i in range(32))
    return tuple(((i & 7) + 8 * (i >> 3 & 1), step * (i >> 4)) for i in range(32))
