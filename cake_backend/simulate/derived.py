"""What lowering derives and the schedule does not say, as the simulator needs it, on top of `cake_ir.derive`.

Transaction bytes are worked out here once more, because here a copy may have a length known only at run time; a test holds them equal to
`cake_ir.derive.transactions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cake_backend.simulate.faults import NotSimulated
from cake_backend.simulate.floats import numpy_dtype
from cake_ir.derive import registers
from cake_ir.derive.arrivals import arrivals
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Assign, Barrier, Expr, For, If, Op, Program, Stmt, op_of, statements
from cake_ir.targets import TARGETS
from cake_ir.types import SlotT, ViewT


def expected_arrivals(program: Program, b: Barrier) -> int:
    """Arrivals that complete a phase: the author's claim where there is one, so that a wrong claim shows."""
    return b.init_count if b.init_count is not None else arrivals(program)[b.name].count


def entry_registers(program: Program) -> int:
    """Registers a thread holds when the kernel starts."""
    if program.target not in TARGETS:
        return 65536 // (program.threads * max(1, program.launch.ctas_per_sm)) // 8 * 8
    return registers.entry_registers(program)


def touches_slots(program: Program, rings: dict[str, str | None], role: str, b: Barrier) -> bool:
    """Whether a role's threads themselves load from or store to views in the slots that `b` guards (or views without slots), or to tensor memory."""
    for block in program.body:
        for s in statements(block.body) if block.role == role else ():
            op = op_of(s)
            for e in effects_of(op, program) if op is not None else ():
                if isinstance(e, Issue) and e.engine in ("tmem_ld", "tmem_st"):
                    return True
                touches = (e,) if isinstance(e, Touch) else e.touches if isinstance(e, Issue) and e.engine == "cp_async" else ()
                for t in touches:
                    view = op.operands.get(t.operand) if op is not None else None
                    if t.space == "smem" and t.proxy == "generic" and isinstance(view, Expr) and ring_of(view, rings) in (None, b.pipeline):
                        return True
    return False


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


@dataclass(frozen=True, slots=True)
class Phase:
    """The copies of one role that fill one slot: `total` bytes are expected in front of the first of them.

    `total` is None where a single copy's length is known only at run time. Where such a copy shares its slot with others, its whole view
    counts here, and what it leaves out is taken back when it is issued.
    """

    number: int
    total: int | None


@dataclass(slots=True)
class _Open:
    depth: int
    ops: list[int]
    fixed: int
    lone: bool = False  # one copy of run-time length, and no other


def phases(program: Program) -> dict[int, Phase]:
    """The phase that each copy completing by bytes belongs to, by operation id.

    A copy in a loop that does not choose the slot counts once an iteration. Raises `NotSimulated` where the bytes differ between paths.
    """
    out: dict[int, Phase] = {}
    for block in program.body:
        groups: dict[str, _Open] = {}
        _scan(program, block.body, (), {}, groups, out)
        for g in groups.values():
            _close(g, out)
    return out


def _close(g: _Open, out: dict[int, Phase]) -> None:
    phase = Phase(g.ops[0], None if g.lone else g.fixed)
    for i in g.ops:
        out[i] = phase


def _scan(
    program: Program,
    body: tuple[Stmt, ...],
    trips: tuple[int | None, ...],
    bound: dict[str, int],
    groups: dict[str, _Open],
    out: dict[int, Phase],
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
        if op is not None and any(isinstance(e, Issue) and e.done == "tx" and e.engine != "st_async" for e in effects_of(op, program)):
            _add(program, op, trips, bound, groups, out)


def _branches(
    program: Program, s: If, trips: tuple[int | None, ...], bound: dict[str, int], groups: dict[str, _Open], out: dict[int, Phase]
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


def _add(
    program: Program, op: Op, trips: tuple[int | None, ...], bound: dict[str, int], groups: dict[str, _Open], out: dict[int, Phase]
) -> None:
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
    g.lone = size is None and len(g.ops) == 1 and not times
    g.fixed += (view_bytes(op) if size is None else size) * prod(n for n in times if n is not None)


def _end(groups: dict[str, _Open], prefix: str, out: dict[int, Phase]) -> None:
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
    if "n" in op.operands:
        n, view = op.operands["n"], op.operands["view"]
        if not isinstance(n, Expr) or n.op != "const":
            return None
        assert isinstance(view, Expr) and isinstance(view.type, ViewT)
        return int(n.attrs["value"]) * numpy_dtype(view.type.dtype).itemsize  # type: ignore[arg-type]  # a count of elements
    return view_bytes(op)


def view_bytes(op: Op) -> int:
    """Bytes of the whole view that a copy fills."""
    view = op.operands["view"]
    assert isinstance(view, Expr) and isinstance(view.type, ViewT)
    return view.type.rows * view.type.cols * numpy_dtype(view.type.dtype).itemsize
