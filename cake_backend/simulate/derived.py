"""What lowering derives and the schedule does not say: arrival counts, transaction bytes, who signals whom, which warps run a role.

Worked out here from the program alone, so that a mistake in the gates' derivation shows as a disagreement.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Iterator

from cake_backend.simulate.faults import NotSimulated
from cake_backend.simulate.floats import numpy_dtype
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, Commit, Drain, GridDependency, Issue, Touch, Wait
from cake_ir.program import Assign, Barrier, Expr, For, If, Op, Program, Role, Stmt, op_of, statements
from cake_ir.types import ScalarT, SlotT, ViewT


def threads_arrive(program: Program, b: Barrier, role: Role) -> int:
    """Arrivals that one role contributes to a phase of `b` at one CTA."""
    return {"tx": role.members, "member": role.members, "mma": role.members, "warp": role.warps, "thread": 32 * role.warps, "cp_async": 32 * role.warps}[
        b.arrive
    ]


def arrivals(program: Program, b: Barrier) -> int:
    """Arrivals that complete a phase: the author's claim, or the producers' shares times the CTAs that signal this one."""
    if b.init_count is not None:
        return b.init_count
    own = sum(threads_arrive(program, b, program.roles[r]) for r in b.prod)
    return own * (len(signalled(program, b, (0, 0))) if b.scope == "cluster" else 1)


# ------------------------------------------------------------------ clusters


def cluster_axis(program: Program, name: str) -> int:
    """0 or 1: the cluster axis that a scheduler's axis name (or `x`, `y`) means."""
    names = next((d.names for d in program.schedulers.values()), ("m", "n"))
    if name in names[:2]:
        return names.index(name)
    return {"x": 0, "y": 1}.get(name, 0)


def along(program: Program, axis: int, rank: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The CTAs of the cluster that differ from `rank` along one axis only, itself included."""
    cx, cy = program.launch.cluster
    return tuple((i, rank[1]) for i in range(cx)) if axis == 0 else tuple((rank[0], i) for i in range(cy))


def signalled(program: Program, b: Barrier, rank: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The CTAs at which an arrival of scope cluster lands: those that multicast into the slots that the barrier guards.

    A wait on the barrier guards the loads after it up to the next wait on a barrier of the same ring. Without multicast loads behind
    it, every CTA of the cluster.
    """
    axes: set[int] = set()
    for block in program.body:
        if block.role in b.cons:
            axes |= {cluster_axis(program, m) for m in _guarded(program, b, block.body)}
    if axes:
        return tuple(sorted({c for a in axes for c in along(program, a, rank)}))
    cx, cy = program.launch.cluster
    return tuple((x, y) for y in range(cy) for x in range(cx))


def _guarded(program: Program, b: Barrier, body: tuple[Stmt, ...]) -> Iterator[str]:
    inside = False
    for s in statements(body):
        op = op_of(s)
        if op is None:
            continue
        effects = effects_of(op, program)
        if any(isinstance(e, Wait) for e in effects):
            other = program.barriers.get(str(op.attrs["barrier"]))
            if other is not None and other.pipeline == b.pipeline:
                inside = other.name == b.name
        if inside and op.attrs.get("multicast") and any(isinstance(e, Issue) for e in effects):
            yield str(op.attrs["multicast"])


# ------------------------------------------------------------------ roles


def issue_only(program: Program, role: str) -> bool:
    """Whether a role does nothing that needs more than one thread: one elected warp a member runs it."""
    for block in program.body:
        if block.role != role:
            continue
        for s in statements(block.body):
            op = op_of(s)
            if op is not None and not all(_single(op, e, program) for e in effects_of(op, program)):
                return False
            if op is not None and op.name == "compute":
                return False
    return True


def _single(op: Op, e: object, program: Program) -> bool:
    if isinstance(e, (Wait, GridDependency)):
        return True
    if isinstance(e, Issue):
        return e.lanes == "one"
    if isinstance(e, Commit):
        return e.engine == "tcgen05"
    if isinstance(e, Drain):
        return e.engine == "bulk"
    if isinstance(e, Touch):
        return e.space == "gmem" and e.mode == "r" and isinstance(op.type, ScalarT)
    if isinstance(e, Arrive):
        return program.barriers[str(op.attrs["barrier"])].arrive in ("tx", "member", "mma")
    return False


def touches_slots(program: Program, rings: dict[str, str | None], role: str, b: Barrier) -> bool:
    """Whether a role's threads themselves load from or store to views in the slots that `b` guards (or views without slots)."""
    for block in program.body:
        for s in statements(block.body) if block.role == role else ():
            op = op_of(s)
            for e in effects_of(op, program) if op is not None else ():
                touches = (e,) if isinstance(e, Touch) else e.touches if isinstance(e, Issue) and e.engine == "cp_async" else ()
                for t in touches:
                    view = op.operands.get(t.operand) if op is not None else None
                    if t.space == "smem" and t.proxy == "generic" and isinstance(view, Expr) and ring_of(view, rings) in (None, b.pipeline):
                        return True
    return False


def entry_registers(program: Program) -> int:
    """Registers a thread holds when the kernel starts: what the launch bounds leave, a multiple of 8, at most 255."""
    per_thread = 65536 // (program.threads * max(1, program.launch.ctas_per_sm))
    return max(24, min(255, per_thread // 8 * 8))


# ------------------------------------------------------------------ names


def result_places(program: Program) -> dict[int, str]:
    """The place that each operation with a result writes, by operation id."""
    out: dict[int, str] = {}
    for block in program.body:
        for s in statements(block.body):
            if isinstance(s, Assign) and isinstance(s.value, Op):
                out[s.value.id] = s.targets[0]
    return out


def view_rings(program: Program) -> dict[str, str | None]:
    """The ring whose count a bound view name carries; None for views that an integer (or nothing) indexes."""
    out: dict[str, str | None] = {}
    for block in program.body:
        for s in statements(block.body):
            if isinstance(s, Assign) and isinstance(s.value, Expr) and isinstance(s.value.type, ViewT):
                out[s.targets[0]] = ring_of(s.value, out)
    return out


def ring_of(e: Expr, names: dict[str, str | None]) -> str | None:
    """The ring that indexes a view expression, looking through bound names."""
    if e.op == "var":
        return names.get(str(e.attrs["name"]))
    if e.op == "stage":
        t = e.args[1].type
        return t.ring if isinstance(t, SlotT) else None
    return ring_of(e.args[0], names) if e.args and isinstance(e.args[0].type, ViewT) else None


# ------------------------------------------------------------------ transaction bytes


@dataclass(slots=True)
class _Open:
    depth: int
    ops: list[int]
    fixed: int


def transaction_bytes(program: Program) -> dict[int, int | None]:
    """For each copy that completes by bytes: the bytes that its barrier expects for this slot, all copies of the slot together.

    None where the copy is alone on its slot and its length is known only at run time. A copy in a loop that does not choose the slot
    counts once an iteration. Raises `NotSimulated` where the bytes differ between paths.
    """
    out: dict[int, int | None] = {}
    for block in program.body:
        groups: dict[str, _Open] = {}
        _scan(program, block.body, (), {}, groups, out)
        for g in groups.values():
            _close(g, out)
    return out


def _close(g: _Open, out: dict[int, int | None]) -> None:
    for i in g.ops:
        if out.get(i, 0) is not None or len(g.ops) > 1:
            out[i] = g.fixed


def _scan(
    program: Program, body: tuple[Stmt, ...], trips: tuple[int | None, ...], bound: dict[str, int], groups: dict[str, _Open], out: dict[int, int | None]
) -> None:
    for s in body:
        if isinstance(s, Assign) and not isinstance(s.value, Op):
            for t in s.targets:
                bound[t] = len(trips)
                _end(groups, f"{t} ", out)
        elif isinstance(s, For):
            n = _trips(program, s)
            inner = {**bound, s.var: len(trips) + 1}
            before = set(groups)
            _scan(program, s.body, (*trips, n), inner, groups, out)
            for key in [k for k in groups if k not in before and groups[k].depth > len(trips)]:
                _close(groups.pop(key), out)
        elif isinstance(s, If):
            _branches(program, s, trips, bound, groups, out)
        op = op_of(s)
        if op is not None and any(isinstance(e, Issue) and e.done == "tx" for e in effects_of(op, program)):
            _add(program, op, trips, bound, groups, out)


def _branches(
    program: Program, s: If, trips: tuple[int | None, ...], bound: dict[str, int], groups: dict[str, _Open], out: dict[int, int | None]
) -> None:
    start = {k: g.fixed for k, g in groups.items()}
    added: list[dict[str, int]] = []
    for arm in (s.then, s.orelse):
        for k, g in groups.items():
            g.fixed = start.get(k, 0)
        _scan(program, arm, trips, dict(bound), groups, out)
        added.append({k: g.fixed - start.get(k, 0) for k, g in groups.items()})
    for k, g in groups.items():
        one, two = added[0].get(k, 0), added[1].get(k, 0)
        if one != two:
            if k in start or (one and two):
                raise NotSimulated("a slot whose bytes differ between the branches of an `if`", s.head)
            g.fixed = max(one, two)  # the slot belongs to one branch alone: all of its loads are there
        else:
            g.fixed = start.get(k, 0) + one


def _add(program: Program, op: Op, trips: tuple[int | None, ...], bound: dict[str, int], groups: dict[str, _Open], out: dict[int, int | None]) -> None:
    stage = op.operands.get("stage")
    name = slot_key(stage) if isinstance(stage, Expr) else "0"
    # A constant stage is filled once by all the loops around it, unless one of them runs for as long as there are tiles.
    depth = bound.get(name, 0 if name.isdigit() and None not in trips else len(trips))
    times = trips[depth:]
    if any(n is None for n in times):
        raise NotSimulated("a slot filled by a loop whose trip count is known only at run time", op.span)
    size = own_bytes(program, op)
    key = f"{name} {op.attrs['barrier']}"
    g = groups.setdefault(key, _Open(depth, [], 0))
    g.ops.append(op.id)
    if size is None:
        if len(g.ops) > 1:
            raise NotSimulated("a copy of run-time length that shares its slot with others", op.span)
        out[op.id] = None
        return
    if any(out.get(i, 0) is None for i in g.ops[:-1]):
        raise NotSimulated("a copy of run-time length that shares its slot with others", op.span)
    g.fixed += size * prod(n for n in times if n is not None)


def _end(groups: dict[str, _Open], prefix: str, out: dict[int, int | None]) -> None:
    for key in [k for k in groups if k.startswith(prefix)]:
        _close(groups.pop(key), out)


def _trips(program: Program, s: For) -> int | None:
    if s.kind == "tiles" and program.schedulers[str(s.scheduler)].kind == "grid":
        return 1
    if s.lo is None or s.hi is None or s.lo.op != "const" or s.hi.op != "const":
        return None
    return max(0, int(s.hi.attrs["value"]) - int(s.lo.attrs["value"]))  # type: ignore[arg-type]  # loop bounds are integers


def slot_key(e: Expr) -> str:
    """A slot expression as text: equal texts between two bindings of their names are the same slot."""
    if e.op == "var":
        return f"{e.attrs['name']}"
    if e.op == "const":
        return f"{e.attrs['value']}"
    inner = ",".join(slot_key(a) for a in e.args)
    extra = ",".join(f"{v}" for v in e.attrs.values())
    return f"{inner or 'ring'}.{e.op}.{extra}"


def own_bytes(program: Program, op: Op) -> int | None:
    """Bytes that one copy adds to its barrier in the issuing CTA: the whole view, whoever sends its parts; None if known at run time."""
    view = op.operands["view"]
    assert isinstance(view, Expr) and isinstance(view.type, ViewT)
    t = view.type
    if "n" in op.operands:
        n = op.operands["n"]
        if not isinstance(n, Expr) or n.op != "const":
            return None
        return int(n.attrs["value"]) * numpy_dtype(t.dtype).itemsize  # type: ignore[arg-type]  # a count of elements
    return t.rows * t.cols * numpy_dtype(t.dtype).itemsize
