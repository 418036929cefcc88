"""`lm.mma`: wgmma groups of a warpgroup, mma.sync of a warp, tcgen05 of one thread.

Products are exact. As the instructions do, the accumulator takes the K of one instruction (16, 8 or 32 elements) at a time; the sum of
those few products is formed in float32 in the order of the matrix library. The hardware aligns and truncates there, so the last bits
differ. Integer operands accumulate in int32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.access import ViewAccess
from cake_backend.simulate.elementwise import build, frag_type, grid
from cake_backend.simulate.engines import Group, MmaUnit
from cake_backend.simulate.faults import Abort, NotSimulated, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.scaled import RegionScales, RowScales, tensor_product
from cake_backend.simulate.scaled import multiplied as scaled
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.sync import enqueue, submit_group, tensor_unit
from cake_backend.simulate.tmem import TmemAccess, ends
from cake_ir.descriptors import operand_problem
from cake_ir.ops.mma import instruction_k
from cake_ir.program import Expr
from cake_ir.types import FragT, ViewT


def operand(x: Array, name: str) -> Array:
    """Operand values as the tensor core takes them."""
    return floats.truncated_tf32(x) if name in ("f32", "tf32") else x


MULTIPLIED_AT_ONCE = 1 << 18
"""Products in one call of the matrix library: more would wake its threads, which costs more than it brings at these sizes."""


def multiplied(acc: Array | None, a: Array, b: Array, k: int, name: str) -> Array:
    """acc[M,N] + a[M,K] b[N,K]^T (from zero without `acc`) in the type `name`, `k` elements of K at a time."""
    if not floats.is_float(name):
        p = a.astype(np.int32) @ b.astype(np.int32).T
        return p if acc is None else acc + p
    rows, cols = len(a), len(b)
    total = np.zeros((rows, cols), np.float32) if acc is None else acc.astype(np.float32)
    height = min(rows, 64)
    width = max(8, min(cols, MULTIPLIED_AT_ONCE // (height * k)))
    for r in range(0, rows, height):
        for c in range(0, cols, width):
            part = total[r : r + height, c : c + width]
            for i in range(0, a.shape[1], k):
                part += a[r : r + height, i : i + k] @ b[c : c + width, i : i + k].T
                if name != "f32":
                    part[...] = floats.rounded(part, name)
    return total


def check_operand(site: Site, warp: Warp, access: ViewAccess, vals: Vals, family: str) -> None:
    """Report a rectangle that no descriptor can give to the tensor core."""
    _, row, col = access.origin(vals)
    t = access.type
    layout = site.machine.placement.layouts[access.view]
    why = operand_problem(layout, row, t.rows, col, t.cols, t.transposed, family, t.dtype in ("f32", "tf32"))
    if why:
        raise Abort(site.machine.located("X016", f"`{access.view}` cannot be an operand here: {why}", site.op, warp=warp))


def _place(site: Site, e: Expr) -> Callable[[Vals], tuple[str, int]]:
    """(name, stage) of an accumulator."""
    if e.op == "var":
        key = (str(e.attrs["name"]), 0)
        return lambda vals: key
    if e.op == "frag_stage" and e.args[0].op == "var":
        name, stages, slot = str(e.args[0].attrs["name"]), frag_type(e.args[0]).stages, build(site, e.args[1])
        return lambda vals: (name, int(slot(None, vals)) % stages)  # type: ignore[arg-type]  # a slot reads no registers
    raise NotSimulated("an accumulator that is a slice of a fragment", e.span)


def _init(site: Site) -> Callable[[Vals], bool]:
    i = site.code.index.get("init")
    return (lambda vals: False) if i is None else (lambda vals: bool(vals[i]))


def mma(site: Site) -> Step:
    return {"wgmma": _wgmma, "mma_sync": _mma_sync, "tcgen05": _tcgen05}[str(site.op.attrs["kind"])](site)


def _mma_sync(site: Site) -> Step:
    m, op = site.machine, site.op
    trees = site.code.trees
    acc, a, b = trees["acc"], build(site, trees["a"]), build(site, trees["b"])
    t, ta, tb = frag_type(acc), frag_type(trees["a"]), frag_type(trees["b"])
    parts, rows_a, rows_b = grid(site, t), grid(site, ta), grid(site, tb)
    for w in range(site.width):
        if not np.array_equal(parts[w].rows, rows_a[w].rows) or not np.array_equal(parts[w].cols[0], rows_b[w].rows[:, 0]):
            raise NotSimulated("an mma whose fragments are split over the warps differently", op.span)
    place, init = _place(site, acc), _init(site)
    scales = [RowScales(site, n, rows, ta.cols) for n, rows in (("scale_a", rows_a), ("scale_b", rows_b))] if op.operands.get("scale_a") is not None else None

    def step(warp: Warp, vals: Vals) -> None:
        name, stage = place(vals)
        start = init(vals)
        old = None if start else m.read_place(warp, name, stage, op)
        left, right = a(warp, vals), b(warp, vals)
        if scales is not None:
            of_a, of_b = (s.read(warp, vals) for s in scales)
            value: Any = scaled(old, left, right, instruction_k(ta.dtype), of_a, of_b, scales[0].block)
        else:
            value = multiplied(old, operand(left, ta.dtype), operand(right, tb.dtype), instruction_k(ta.dtype), t.dtype)
        if t.stages > 1 and isinstance(warp.regs.get(name), list):
            value = [value if i == stage else x for i, x in enumerate(warp.regs[name])]
        m.write_place(warp, name, value, op, stage)

    return step


# ------------------------------------------------------------------ wgmma


def _wgmma(site: Site) -> Step:
    m, op = site.machine, site.op
    trees = site.code.trees
    place, init = _place(site, trees["acc"]), _init(site)
    t = frag_type(trees["acc"])
    b = ViewAccess(site, "b")
    a_view = ViewAccess(site, "a") if isinstance(op.operands["a"].type, ViewT) else None  # type: ignore[union-attr]  # operands are expressions
    a_tree = trees.get("a")
    a_name = (str(a_tree.attrs["name"]), 0) if a_tree is not None and a_tree.op == "var" else None
    a_value = build(site, a_tree) if a_tree is not None and a_name is None else None
    parts = grid(site, t)

    def execute(group: Group) -> None:
        order = sorted(group.warps)
        first = group.warps[order[0]]
        vals = group.vals[order[0]]
        bv = operand(floats.decode(b.read_async(first, b.whole(first, vals, as_read=True)), b.dtype), b.dtype)
        rows = np.concatenate([parts[w].rows[:, 0] for w in order])
        if a_view is not None:
            av = floats.decode(a_view.read_async(first, a_view.whole(first, vals, as_read=True)), a_view.dtype)[rows]
            dtype = a_view.dtype
        else:
            assert a_tree is not None
            dtype = frag_type(a_tree).dtype
            av = np.concatenate([group.warps[w].regs[a_name[0]] if a_name else group.values[w] for w in order])
        old = None if init(vals) else np.concatenate([group.warps[w].held_back[place(group.vals[w])] for w in order])
        total, at = multiplied(old, operand(av, dtype), bv, instruction_k(dtype), t.dtype), 0
        for w in order:
            count = len(parts[w].rows)
            group.warps[w].held_back[place(group.vals[w])] = total[at : at + count]
            at += count

    def step(warp: Warp, vals: Vals) -> None:
        unit = _unit(warp)
        if warp.issued == len(unit.groups):
            unit.groups.append(Group(op, unit, execute))
        group = unit.groups[warp.issued]
        if group.op is not op:
            raise Abort(m.located("X012", "the warps of a warpgroup issue different matrix multiplications", op, warp=warp, other=group.op))
        key = place(vals)
        uses = [(key, 0)]
        _hold_back(site, warp, key, init(vals))
        if a_name is not None:
            m.read_place(warp, a_name[0], 0, op)
            uses.append((a_name, 1))
        elif a_value is not None:
            group.values[warp.warp] = a_value(warp, vals)
        for k, mode in uses:
            warp.busy.setdefault(k, [0, 0])[mode] += 1
        group.uses[warp.warp] = uses
        group.vals[warp.warp], group.warps[warp.warp] = vals, warp
        warp.issued += 1
        if len(group.warps) == unit.size:
            work = submit_group(m, group, warp)
            for access in (a_view, b) if a_view is not None else (b,):
                check_operand(site, warp, access, vals, "wgmma")
                cells, pool = access.whole(warp, vals), access.pool(warp.cta)
                m.hazard(site, warp, pool, cells, "r", f"bytes of `{access.view}`")
                work.guard(pool, cells, "r")

    def _hold_back(site: Site, warp: Warp, key: tuple[str, int], start: bool) -> None:
        """Take the accumulator out of the registers: until the group retires its place shows nothing."""
        if key in warp.held_back:
            return
        name, stage = key
        if name in warp.unwritten and not start:
            m.note(op, f"`{name}` is accumulated into before anything was written to it")
        value = warp.regs[name]
        warp.held_back[key] = value[stage] if isinstance(value, list) else value
        hidden = floats.poison(parts[warp.warp].shape, t.dtype)
        if isinstance(value, list):
            warp.regs[name] = [hidden if i == stage else x for i, x in enumerate(value)]
        else:
            warp.regs[name] = hidden

    return step


def _unit(warp: Warp) -> MmaUnit:
    """The tensor-core queue of the warp's warpgroup."""
    if warp.unit is None:
        number = warp.warp // 4
        units = warp.cta.units
        key = (warp.role.name, warp.member, number)
        if key not in units:
            units[key] = MmaUnit(size=min(4, warp.width - 4 * number))
        warp.unit = units[key]
    return warp.unit


# ------------------------------------------------------------------ tcgen05


def _tcgen05(site: Site) -> Step:
    m, op = site.machine, site.op
    acc, b, init = TmemAccess(site, "acc"), ViewAccess(site, "b"), _init(site)
    kind = op.operands["a"].type  # type: ignore[union-attr]  # operands are expressions
    a: Any = ViewAccess(site, "a") if isinstance(kind, ViewT) else TmemAccess(site, "a") if not isinstance(kind, FragT) else None
    if a is None:
        raise NotSimulated("a tcgen05 operand in registers", op.span)

    paired = op.attrs.get("ctas") == 2
    if paired and m.program.launch.cluster[0] % 2:
        raise NotSimulated("an MMA of a pair in a cluster without pairs", op.span)

    rows, depth = acc.type.lanes, kind.shape[1] if isinstance(kind, ViewT) else a.type.cols
    scales = [RegionScales(site, n, count, depth) for n, count in (("scale_a", rows), ("scale_b", acc.type.cols))] if op.operands.get("scale_a") is not None else []
    inner = [x for x in (a, *scales) if not isinstance(x, ViewAccess)]

    def total(warp: Warp, vals: Vals, cta: Cta, old: Any, av: Array, bv: Array) -> Array:
        if not scales:
            return multiplied(old, operand(av, a.dtype), bv, instruction_k(a.dtype), acc.dtype)
        of_a, of_b = (s.read(warp, vals, cta) for s in scales)
        return tensor_product(old, av, bv, instruction_k(a.dtype), scales[0].own(of_a), of_b, scales[0].type.block)

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        if any(not set(acc.columns(vals)).isdisjoint(x.columns(vals)) for x in inner):
            raise Abort(m.located("X004", f"{label(op)} writes its result to columns of tensor memory that it reads as an operand", op, warp=warp))

        ctas = ends(warp, paired)  # each has its rows of A and of the result, and its share of B's rows

        def execute(group: Group) -> None:
            cells = b.whole(warp, vals, as_read=True)
            bv = operand(np.concatenate([floats.decode(b.read_async(warp, cells, cta), b.dtype) for cta in ctas]), b.dtype)
            for cta in ctas:
                if isinstance(a, ViewAccess):
                    av = floats.decode(a.read_async(warp, a.whole(warp, vals, as_read=True), cta), a.dtype)
                else:
                    av = a.read(warp, vals, cta)
                old = None if init(vals) else acc.read(warp, vals, cta)
                if old is not None and np.isnan(old).all():
                    m.note(op, f"`{acc.name}` is accumulated into before anything was written to it")
                acc.write(warp, vals, total(warp, vals, cta, old, av, bv), cta)
            work.release()

        work: Any = None
        group = enqueue(site, warp, tensor_unit(warp), execute, vals)
        group.columns = frozenset(c for x in inner for c in x.columns(vals))
        work = group.work
        for access in (a, b) if isinstance(a, ViewAccess) else (b,):
            check_operand(site, warp, access, vals, "tcgen05")
            for cta in ctas:
                cells, pool = access.whole(warp, vals), access.pool(cta)
                m.hazard(site, warp, pool, cells, "r", f"bytes of `{access.view}`")
                work.guard(pool, cells, "r")

    return step


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {"lm.mma": (mma,)}
