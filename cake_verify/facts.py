"""A program as tables: what a proposed check may query.

The schema is part of Cake's interface (`SCHEMA_VERSION`): a column is never renamed or given another meaning.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from cake_ir.ops import effects_of
from cake_ir.ops.effects import (
    Arrive,
    ClusterSync,
    Commit,
    Drain,
    Effect,
    FenceProxy,
    Flag,
    GridDependency,
    Issue,
    Sync,
    Touch,
    Turn,
    Wait,
)  # fmt: skip
from cake_ir.program import Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.span import Span
from cake_ir.types import ViewT

SCHEMA_VERSION = 1

TABLES: dict[str, tuple[str, str]] = {
    "schedule": (
        "name, target, grid, cluster_x, cluster_y, ctas_per_sm, threads, smem_bytes, line, column",
        "the schedule itself, one row",
    ),
    "param": ("name, kind, dtype, rank, const, line, column", "run-time parameters; kind is tma, gmem or scalar"),
    "tunable": ("name, value", "compile-time parameters with the values in force"),
    "role": ("name, warp_lo, warps, members, regs, line, column", "roles; regs is NULL where the role keeps the entry value"),
    "ring": ("name, stages, line, column", "pipelines"),
    "barrier": (
        "name, kind, ring, arrive, primed, scope, init_count, line, column",
        "kind is mbarrier, named, turns or cluster; the middle columns are NULL for all but mbarriers",
    ),
    "barrier_role": ("barrier, role, part", "who takes part in a barrier; part is prod, cons or member"),
    "view": (
        "name, pool, offset, rows, cols, dtype, stages, swizzle, line, column",
        "shared-memory views; rows is 1 for one-dimensional ones",
    ),
    "loop": (
        "id, role, parent, kind, trips, line, column",
        "loops; kind is range, static or tiles; trips is NULL where it is not constant",
    ),
    "op": (
        "id, role, seq, name, loop, depth, guarded, barrier, view, tensor, stage, line, column",
        "operations in text order; seq numbers them within their role, loop is the innermost loop, depth counts loops, guarded is 1 "
        "inside an `if`; barrier, view, tensor and stage name what it works on, NULL where it has none",
    ),
    "attr": ("op, name, value", "the other compile-time options of an operation"),
    "effect": (
        "op, n, kind, engine, mode, space, proxy, lanes, done, view, tensor, barrier, pending",
        "what an operation does, in order n; kind is touch, issue, wait, arrive, commit, drain, fence_proxy, sync, cluster_sync, turn, "
        "grid_dependency or flag; a touch inside an issue has the issue's engine and done",
    ),
}

SCHEMA_TEXT = (
    f"# Facts, version {SCHEMA_VERSION}\n\n"
    "A check is one `SELECT` that returns `line`, `column` and `detail` for every place where something is wrong. It sees one specialised "
    "schedule at a time, as these tables:\n\n"
    + "\n".join(f"- `{name}({columns})`: {meaning}." for name, (columns, meaning) in TABLES.items())
    + "\n\nProgram order within a role is `seq`; an operation `a` comes before `b` in the text of one role where "
    "`a.role = b.role AND a.seq < b.seq`. Lines and columns count from 1.\n\n"
    "Example: every TMA store follows a proxy fence of its role since the last generic write of shared memory.\n\n"
    "```sql\n"
    "SELECT s.line, s.column, s.view AS detail FROM op s\n"
    "WHERE s.name = 'tma_store' AND EXISTS (\n"
    "  SELECT 1 FROM op w JOIN effect e ON e.op = w.id\n"
    "  WHERE w.role = s.role AND w.seq < s.seq AND e.space = 'smem' AND e.proxy = 'generic' AND e.mode LIKE '%w%'\n"
    "    AND NOT EXISTS (SELECT 1 FROM op f WHERE f.role = s.role AND f.name = 'fence_proxy' AND f.seq BETWEEN w.seq AND s.seq))\n"
    "```\n"
)


def load(program: Program) -> sqlite3.Connection:
    """A new in-memory database that holds the facts of one program; still writable, see `sandbox.protect`."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for name, (columns, _) in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
    connection.execute("BEGIN")
    for table, rows in _tables(program).items():
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    connection.execute("CREATE INDEX op_role ON op(role, seq)")
    connection.execute("CREATE INDEX effect_op ON effect(op)")
    connection.execute("COMMIT")
    return connection


Row = Sequence[object]


def _tables(p: Program) -> dict[str, list[Row]]:
    smem = sum(pool.nbytes for pool in p.pools.values())
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    tables["schedule"] = [
        (p.name, p.target, p.launch.grid, *p.launch.cluster, p.launch.ctas_per_sm, p.threads, smem, *_at(p.span)),
    ]
    tables["param"] = [(q.name, q.kind, q.dtype, q.rank, int(q.const), *_at(q.span)) for q in p.params]
    tables["tunable"] = [(name, _scalar(value)) for name, value in p.tunables.items()]
    tables["role"] = [(r.name, r.warp_lo, r.warps, r.members, r.regs, *_at(r.span)) for r in p.roles.values()]
    tables["ring"] = [(r.name, r.stages, *_at(r.span)) for r in p.rings.values()]
    for v in p.views.values():
        rows, cols = v.shape if len(v.shape) == 2 else (1, v.shape[0])
        tables["view"].append((v.name, v.pool, v.offset, rows, cols, v.dtype, v.stages, v.swizzle, *_at(v.span)))
    for b in p.barriers.values():
        tables["barrier"].append((b.name, "mbarrier", b.pipeline, b.arrive, int(b.primed), b.scope, b.init_count, *_at(b.span)))
        tables["barrier_role"] += [(b.name, role, "prod") for role in b.prod] + [(b.name, role, "cons") for role in b.cons]
    for n in p.named.values():
        tables["barrier"].append((n.name, "named", None, None, None, None, None, *_at(n.span)))
        tables["barrier_role"] += [(n.name, role, "member") for role in n.roles]
    for t in p.turns.values():
        tables["barrier"].append((t.name, "turns", None, None, None, None, None, *_at(t.span)))
        tables["barrier_role"].append((t.name, t.role, "member"))
    _Body(p, tables).fill()
    return tables


class _Body:
    """Walks the role blocks once and writes loops, operations and their effects."""

    def __init__(self, program: Program, tables: dict[str, list[Row]]) -> None:
        self.program = program
        self.tables = tables
        self.loops = 0

    def fill(self) -> None:
        sequence: dict[str, int] = {}
        for block in self.program.body:
            for op, loop, depth, guarded in self._ops(block.body, block.role, None, 0, False):
                seq = sequence[block.role] = sequence.get(block.role, -1) + 1
                self._op(op, block.role, seq, loop, depth, guarded)

    def _ops(
        self, body: Sequence[Stmt], role: str, loop: int | None, depth: int, guarded: bool
    ) -> Iterator[tuple[Op, int | None, int, bool]]:
        for statement in body:
            if isinstance(statement, For):
                identifier = self.loops
                self.loops += 1
                self.tables["loop"].append((identifier, role, loop, statement.kind, _trips(statement), *_at(statement.head)))
                yield from self._ops(statement.body, role, identifier, depth + 1, guarded)
            elif isinstance(statement, If):
                yield from self._ops(statement.then, role, loop, depth, True)
                yield from self._ops(statement.orelse, role, loop, depth, True)
            elif (op := op_of(statement)) is not None:
                yield op, loop, depth, guarded

    def _op(self, op: Op, role: str, seq: int, loop: int | None, depth: int, guarded: bool) -> None:
        view = _view_of(op.operands.get("view"))
        stage = op.operands.get("stage")
        shown = _slot_text(stage) if isinstance(stage, Expr) else None
        self.tables["op"].append(
            (
                op.id,
                role,
                seq,
                op.name,
                loop,
                depth,
                int(guarded),
                op.attrs.get("barrier"),
                view,
                op.attrs.get("tensor"),
                shown,
                *_at(op.span),
            )
        )
        self.tables["attr"] += [(op.id, name, _scalar(value)) for name, value in op.attrs.items() if name not in ("barrier", "tensor")]
        for n, row in enumerate(row for effect in effects_of(op, self.program) for row in self._effect(op, effect)):
            self.tables["effect"].append((op.id, n, *row))

    def _effect(self, op: Op, effect: Effect) -> Iterator[Row]:
        barrier = op.attrs.get("barrier")
        match effect:
            case Touch():
                yield ("touch", None, effect.mode, effect.space, effect.proxy, effect.lanes, None, *self._place(op, effect), None, None)
            case Issue():
                yield ("issue", effect.engine, None, None, None, effect.lanes, effect.done, None, None, barrier, None)
                for touch in effect.touches:
                    place = self._place(op, touch)
                    yield ("touch", effect.engine, touch.mode, touch.space, touch.proxy, touch.lanes, effect.done, *place, None, None)
            case Drain():
                pending = op.attrs.get("pending", 0)
                yield ("drain", effect.engine, "r" if effect.read else None, None, None, None, None, None, None, None, pending)
            case Commit():
                yield ("commit", effect.engine, None, None, None, None, None, None, None, barrier, None)
            case Turn() | GridDependency() | Flag():
                kind = {Turn: "turn", GridDependency: "grid_dependency", Flag: "flag"}[type(effect)]
                yield (kind, None, effect.kind, None, None, None, None, None, None, barrier, None)
            case _:
                kind = {Wait: "wait", Arrive: "arrive", FenceProxy: "fence_proxy", Sync: "sync", ClusterSync: "cluster_sync"}[type(effect)]
                yield (kind, None, None, None, None, None, None, None, None, barrier, None)

    def _place(self, op: Op, touch: Touch) -> tuple[str | None, object]:
        """The view and the tensor that an access goes to."""
        operand = op.operands.get(touch.operand)
        return _view_of(operand), op.attrs.get(touch.operand) if touch.space == "gmem" else None


def _view_of(operand: object) -> str | None:
    """The declared view that an operand is a part of, also through a local name."""
    return operand.type.view if isinstance(operand, Expr) and isinstance(operand.type, ViewT) else None


def _slot_text(slot: Expr) -> str:
    """A slot as its author wrote it, as far as it has a name: `s`, `s.prev(1)`, `step(ab)`."""
    if slot.op == "var":
        return str(slot.attrs.get("name", slot.attrs.get("var", "?")))
    if slot.op == "const":
        return str(slot.attrs.get("value"))
    inner = ", ".join(_slot_text(argument) for argument in slot.args)
    named = ", ".join(str(value) for value in slot.attrs.values())
    return f"{slot.op}({', '.join(part for part in (inner, named) if part)})"


def _trips(loop: For) -> int | None:
    low, high = (bound.attrs.get("value") if bound is not None and bound.op == "const" else None for bound in (loop.lo, loop.hi))
    if loop.lo is None:
        low = 0
    return high - low if isinstance(low, int) and isinstance(high, int) else None


def _scalar(value: object) -> object:
    return value if isinstance(value, int | float | str) or value is None else repr(value)


def _at(span: Span) -> tuple[int, int]:
    return span.line, span.column
