"""Products and reductions that run over an axis and leave a part of it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, For, If
from cake_verify.analyses import edits, trips
from cake_verify.analyses.labels import boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.value_walk import ValueWalk
from cake_verify.analyses.words import call


def left_out(plan: Plan, walk: ValueWalk, setting: Setting) -> list[Fault]:
    """At most one fault: an axis whose length alone decides the loops, and of which some elements are never multiplied."""
    for (axis, one, other), stretches in walk.covered.items():
        extent = setting.args.get(axis, plan.program.tunables.get(axis))
        workers = walk.workers[axis, one, other]
        if not isinstance(extent, int) or extent <= 0:
            continue
        gap = next(gaps(stretches, extent), None)
        if gap is not None and _decided(plan, workers, axis):
            return [_fault(plan, workers, axis, one, other, gap, extent, stretches, setting)]
    return []


def gaps(stretches: set[tuple[int, int]], extent: int) -> Iterator[tuple[int, int]]:
    """The stretches of 0 .. extent that none of (start, length) covers."""
    at = 0
    for start, length in sorted(stretches):
        if start > at:
            yield at, min(start, extent)
        at = max(at, start + length)
        if at >= extent:
            return
    yield at, extent


def _decided(plan: Plan, workers: set[int], axis: str) -> bool:
    """Whether nothing but the axis's length decides which products are made: no tile, no table, no other argument, no condition."""
    program = plan.program
    mentioned = axis in program.tunables
    for number in workers:
        site = plan.sites[number]
        resolve = trips.resolver_of(program, site.role)
        product = site.op.name == "mma"
        exprs = [e for s, _ in site.around if isinstance(s, For) and s.lo is not None and s.hi is not None for e in (s.lo, s.hi)]
        if product and any(isinstance(s, If) and not _by_member(resolve(s.cond)) for s in _inside([s for s, _ in site.around])):
            return False
        if not product:
            exprs += _coordinates(plan, number, axis)
        for e in exprs:
            for n in resolve(e).parts():
                if n.op in ("field", "ld", "cta_rank", "cta_id", "frag_stage") or (n.op == "param" and n.attrs["name"] != axis):
                    return False
                mentioned |= product and n.op == "param"
    return mentioned


def _inside(around: Sequence[For | If]) -> Sequence[For | If]:
    """What stands in the first counted loop: a condition around that decides for a whole tile, which covers the axis or does nothing."""
    first = next((i for i, s in enumerate(around) if isinstance(s, For) and s.kind != "tiles"), len(around))
    return around[first:]


def _by_memory(cond: Expr) -> bool:
    """Whether memory decides, for all members of a tile alike."""
    found = {n.op for n in outside_reads(cond)}
    return "ld" in found and found.isdisjoint(("role_index", "cta_rank", "cta_id"))


def _by_member(cond: Expr) -> bool:
    return all(n.op not in ("param", "var", "field", "ld", "cta_rank", "cta_id", "at", "step") for n in cond.parts())


def _coordinates(plan: Plan, number: int, axis: str) -> list[Expr]:
    op = plan.program.ops[number]
    coords, box = op.operands.get("coords"), boxed(plan, op)
    if not isinstance(coords, tuple) or box is None:
        return []
    return [coords[k] for k, name in ((box.row, box.row_axis), (box.col, box.col_axis)) if k is not None and name == axis]


def _fault(plan: Plan, workers: set[int], axis: str, one: str, other: str, gap: tuple[int, int], extent: int, stretches: set[tuple[int, int]],
           setting: Setting) -> Fault:  # fmt: skip
    product = max((n for n in workers if plan.sites[n].op.name == "mma"), key=lambda n: len(plan.sites[n].loops))
    site = plan.sites[product]
    loops = [s for s in site.loops if s.kind != "tiles"]
    hole = any(start > gap[0] for start, _ in stretches)
    loop = (loops[-1] if hole else loops[0]) if loops else None
    message = f"the products of `{one}` and `{other}` leave out `{axis}` = {gap[0]} .. {gap[1]} of {extent}"
    related = [(site.op.span, f"{call(site.op)} is executed here")]
    related += [(loop.head, "and loaded in this loop") for n in workers for loop in plan.sites[n].loops[-1:] if plan.sites[n].op.name != "mma" and plan.sites[n].role != site.role][:1]
    facts = {"axis": axis, "expected": extent, "found": gap[0], "role": site.role, "setting": str(setting)}
    return Fault("S035", message, loop.head if loop is not None else site.op.span, tuple(related), f"let the loop reach all of `{axis}`",
                 fixes(loop, gap, min(n for _, n in stretches)), facts)  # fmt: skip


def fixes(loop: For | None, gap: tuple[int, int], step: int) -> tuple[Fix, ...]:
    """The bound that the loop would need, where it is a number."""
    if loop is None or loop.hi is None or loop.lo is None or not loop.hi.span.line:
        return ()
    missing = -(-(gap[1] - gap[0]) // max(step, 1))
    if loop.hi.op == "const" and loop.lo.op == "const" and isinstance(loop.hi.attrs["value"], int):
        if gap[0] == 0 and loop.lo.span.line and isinstance(loop.lo.attrs["value"], int) and loop.lo.attrs["value"]:
            return (edits.replace(loop.lo.span, str(max(0, loop.lo.attrs["value"] - missing))),)
        return (edits.replace(loop.hi.span, str(loop.hi.attrs["value"] + missing)),)
    hi = loop.hi
    if hi.op == "sub" and hi.args[1].op == "const" and hi.args[0].op == "var" and hi.span.line:
        return (edits.replace(hi.span, trips.spoken(hi.args[0])),)
    return ()


# ------------------------------------------------------------------ reductions


def part_left_out(plan: Plan, walk: ValueWalk, setting: Setting) -> list[Fault]:
    """At most one fault: a reduction that has not seen all of an axis whose length alone decides what is loaded."""
    for (role, kind, axis, tensor), parts in walk.reduced.items():
        extent = setting.args.get(axis, plan.program.tunables.get(axis))
        loads = {p[3] for p in parts}
        if not isinstance(extent, int) or extent <= 0 or not _loads_decided(plan, loads, axis):
            continue
        stretches = {(p[1], p[2]) for p in parts}
        gap = next(gaps(stretches, extent), None)
        if gap is None:
            continue
        load = max(loads)
        loop = next((s for s in reversed(plan.sites[load].loops) if s.kind != "tiles"), None)
        what = {"max": "maximum", "min": "minimum"}.get(kind, "sum")
        message = f"the {what} over `{axis}` of `{tensor}` leaves out `{axis}` = {gap[0]} .. {gap[1]} of {extent}"
        op = plan.program.ops[load]
        first = _coordinate(plan, load)
        if gap[0] == 0 and (back := without_offset(first)):
            return [Fault("S034", message, first.span, ((loop.head, "in this loop"),) if loop is not None else (), f"start at the first element of `{axis}`", back,
                          {"role": role, "axis": axis, "expected": 0, "found": gap[1], "setting": str(setting)})]  # fmt: skip
        related = ((op.span, f"{call(op)} brings what it runs over"),)
        return [Fault("S035", message, loop.head if loop is not None else op.span, related, f"let the loop reach all of `{axis}`",
                      fixes(loop, gap, min(n for _, n in stretches)), {"role": role, "axis": axis, "expected": extent, "found": gap[0], "setting": str(setting)})]  # fmt: skip
    return []


def _coordinate(plan: Plan, load: int) -> Expr:
    """The coordinate of a load along the columns of what it fills."""
    op = plan.program.ops[load]
    coords, box = op.operands["coords"], boxed(plan, op)
    assert isinstance(coords, tuple) and box is not None and box.col is not None  # as for all loads that give columns a place
    return coords[box.col]


def without_offset(e: Expr) -> tuple[Fix, ...]:
    """A coordinate without the number that is added in it, where there is one such."""
    sums = [n for n in e.parts() if n.op == "add" and n.span.line and (n.args[0].op == "const") != (n.args[1].op == "const")]
    if len(sums) != 1:
        return ()
    other = next(a for a in sums[0].args if a.op != "const")
    return (edits.replace(sums[0].span, trips.spoken(other)),)


def _loads_decided(plan: Plan, loads: set[int], axis: str) -> bool:
    """Whether nothing but the axis's length decides what is loaded: no tile, member, table, other argument or condition, but for what memory says of a whole tile."""
    program = plan.program
    mentioned = axis in program.tunables
    for number in loads:
        site = plan.sites[number]
        resolve = trips.resolver_of(program, site.role)
        coords, box = site.op.operands.get("coords"), boxed(plan, site.op)
        around = [s for s, _ in site.around]
        whole = {id(s) for s in around[: len(around) - len(_inside(around))]}
        if any(isinstance(s, If) and not (id(s) in whole and _by_memory(resolve(s.cond))) for s in around) or not isinstance(coords, tuple) or box is None or box.col is None:
            return False
        bounds = [resolve(e) for s, _ in site.around if isinstance(s, For) and s.lo is not None and s.hi is not None for e in (s.lo, s.hi)]
        for e in (*bounds, resolve(coords[box.col])):
            if any(n.op in ("field", "ld", "cta_rank", "cta_id", "role_index", "slot_index") or (n.op == "param" and n.attrs["name"] != axis) for n in e.parts()):
                return False
        mentioned |= any(n.op == "param" for e in bounds for n in e.parts())
    return mentioned


__all__ = ["left_out", "part_left_out", "without_offset"]
