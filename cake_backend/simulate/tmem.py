"""Tensor memory: 128 lanes x 512 columns of 32 bits a CTA, and the moves between it, registers and shared memory.

Loads and stores of tensor memory are asynchronous until `tmem_wait`; a warp reaches only the 32 lanes of its number modulo 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.access import ViewAccess
from cake_backend.simulate.elementwise import build, frag_type, grid
from cake_backend.simulate.engines import Group, Work
from cake_backend.simulate.faults import Abort, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Machine, Site, Step, Vals
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.sync import enqueue, tensor_unit
from cake_ir.derive.pairs import of_pair
from cake_ir.descriptors import copy_problem
from cake_ir.program import Expr, Program
from cake_ir.types import FragT, TmemT

LANES, COLUMNS = 128, 512


def memory(cta: Cta) -> Array:
    """The CTA's tensor memory, all bits set before anything was written."""
    if cta.tmem is None:
        cta.tmem = np.full((LANES, COLUMNS), 0xFFFFFFFF, np.uint32)
    return cta.tmem


def ends(warp: Warp, paired: bool) -> tuple[Cta, ...]:
    """The CTAs that a tensor-core operation of a warp is of: its own one, and where it is `paired` the peer of the pair."""
    return (warp.cta, warp.cta.cluster.by_rank[warp.cta.rank ^ 1]) if paired else (warp.cta,)


def allocated(program: Program) -> int:
    """Columns of a CTA's one allocation: the power of two at or above the highest that its regions use, all there are at most."""
    return min(COLUMNS, max(32, 1 << (max(d.col + d.width for d in program.tmems.values()) - 1).bit_length()))


class TmemAccess:
    """A tensor-memory operand: lanes x columns of a declared region, 32-bit elements one a column, narrower ones packed."""

    def __init__(self, site: Site, name: str) -> None:
        e = site.op.operands[name]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT)
        self.site, self.type, self.dtype, self.name = site, e.type, e.type.dtype, e.type.tmem
        self.position = site.code.index[name]
        self.first = site.machine.program.tmems[e.type.tmem].col
        self.allocated = allocated(site.machine.program)
        self.per = 4 // floats.numpy_dtype(self.dtype).itemsize

    def columns(self, vals: Vals) -> range:
        """The 32-bit columns of the operand."""
        lo = self.first + int(vals[self.position]) // self.per
        return range(lo, lo + self.type.cols // self.per)

    def region(self, warp: Warp, vals: Vals, cta: Cta | None = None) -> Array:
        """The 32-bit words of the operand, in the warp's CTA or another one."""
        at = self.columns(vals)
        if at.start < 0 or at.stop > self.allocated or self.type.lanes > LANES:
            raise Abort(
                self.site.machine.located(
                    "X006", f"{label(self.site.op)} reaches columns {at.start}..{at.stop} of tensor memory, {self.allocated} are allocated", self.site.op, warp=warp
                )
            )
        return memory(cta or warp.cta)[: self.type.lanes, at.start : at.stop]

    def read(self, warp: Warp, vals: Vals, cta: Cta | None = None) -> Array:
        """Values of the whole operand."""
        words = np.ascontiguousarray(self.region(warp, vals, cta))
        return floats.decode(words.view(floats.raw_dtype(self.dtype)), self.dtype)

    def write(self, warp: Warp, vals: Vals, values: Array, cta: Cta | None = None) -> None:
        """Overwrite the whole operand."""
        self.region(warp, vals, cta)[...] = floats.encode(values, self.dtype).view(np.uint32)


def _check_lanes(site: Site, warp: Warp) -> None:
    if warp.number % 4 != warp.warp % 4:
        raise Abort(
            site.machine.located(
                "X006", f"{label(site.op)}: warp {warp.number} of the CTA reaches lanes {32 * (warp.number % 4)} to {32 * (warp.number % 4) + 31} of tensor "
                f"memory, its rows are in lanes {32 * (warp.warp % 4)} to {32 * (warp.warp % 4) + 31}", site.op, warp=warp,
            )
        )  # fmt: skip


def _tmem_load(site: Site) -> Step:
    m, op = site.machine, site.op
    access, t, name = TmemAccess(site, "t"), op.type, site.result
    assert isinstance(t, FragT) and name is not None
    parts = grid(site, t)

    def step(warp: Warp, vals: Vals) -> None:
        _check_lanes(site, warp)
        h, key = parts[warp.warp], (name, 0)
        m.write_place(warp, name, floats.poison(h.shape, t.dtype), op)
        warp.busy.setdefault(key, [0, 0])[0] += 1

        def land(work: Work) -> None:
            warp.held_back[key] = access.read(warp, vals)[h.rows, h.cols]

        work = Work("tmem", op, warp, land)
        warp.tensor_moves.setdefault("tmem_ld", []).append((work, key))
        m.submit(work)

    return step


def _tmem_store(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tree = TmemAccess(site, "t"), site.code.trees["x"]
    t, x = frag_type(tree), build(site, tree)
    parts = grid(site, t)

    def step(warp: Warp, vals: Vals) -> None:
        _check_lanes(site, warp)
        h, value = parts[warp.warp], x(warp, vals)

        def land(work: Work) -> None:
            elements = access.region(warp, vals).view(floats.raw_dtype(t.dtype))  # narrow ones lie side by side in a column
            elements[h.rows, h.cols] = floats.encode(value, t.dtype)

        work = Work("tmem", op, warp, land)
        warp.tensor_moves.setdefault("tmem_st", []).append((work, None))
        m.submit(work)

    return step


def _tmem_copy(site: Site) -> Step:
    """A copy from shared memory: later products of its thread come behind it, earlier ones that read what it overwrites in front. Beside
    products of pairs each CTA's own bytes go to its own columns."""
    m, op = site.machine, site.op
    access, source = TmemAccess(site, "t"), ViewAccess(site, "view")
    t, layout = source.type, m.placement.layouts[source.view]
    times = access.type.lanes // t.rows
    paired = of_pair(m.program, op)

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        ctas = ends(warp, paired)
        _, row, col = source.origin(vals)
        why = copy_problem(layout, row, t.rows, col, t.cols, t.transposed)
        if why:
            raise Abort(m.located("X016", f"`{source.view}` cannot be copied to tensor memory: {why}", op, warp=warp))
        cells = source.whole(warp, vals)

        def execute(group: Group) -> None:
            for cta in ctas:
                raw = source.read_async(warp, cells, cta)
                access.region(warp, vals, cta)[...] = np.ascontiguousarray(np.tile(raw, (times, 1))).view(np.uint32)
            work.release()

        work: Any = None
        work = enqueue(site, warp, tensor_unit(warp), execute, vals, frozenset(access.columns(vals))).work
        for cta in ctas:
            pool = source.pool(cta)
            m.hazard(site, warp, pool, cells, "r", f"bytes of `{source.view}`")
            work.guard(pool, cells, "r")

    return step


def drain_moves(m: Machine, warp: Warp, engine: str) -> Any:
    """`tmem_wait`: all loads (or stores) of this warp have completed; loaded registers show their values."""
    moves = warp.tensor_moves.get(engine, [])
    for work, _ in moves:
        if not work.complete:
            return m.block(warp, work.gate, "its tensor-memory moves")
    for _, key in moves:
        if key is not None:
            warp.busy[key][0] -= 1
            if key in warp.held_back:  # loads of one place that were never waited for come to an end together: the last one stands
                warp.regs[key[0]] = warp.held_back.pop(key)
    moves.clear()
    return None


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {"lm.tmem_load": (_tmem_load,), "lm.tmem_store": (_tmem_store,), "lm.tmem_copy": (_tmem_copy,)}
