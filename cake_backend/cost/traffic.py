"""What all SMs together ask of L2 and HBM in one wave: which boxes are asked for by several blocks at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cake_backend.cost.grid import Grid, own_tiles
from cake_backend.cost.loops import LoopStack
from cake_backend.cost.reading import Subject
from cake_ir.derive.transactions import transactions
from cake_ir.walk.code import Context

_MOST_BLOCKS = 1024


@dataclass(frozen=True, slots=True)
class Traffic:
    """Of one wave, by operation id of an asynchronous load: bytes asked of L2, bytes that are distinct, and the share of distinct ones.

    `miss` is the chance that a phase contains a box which no other block has brought into L2 in this step.
    """

    asked: dict[int, float]
    unique: dict[int, float]
    miss: dict[int, float]

    def hbm_bytes(self, runs: Mapping[int, int], blocks: int) -> float:
        """Bytes from HBM in the whole launch, for executions counted on one SM with `blocks` resident blocks."""
        return sum(u * runs.get(op, 0) / max(1, blocks) for op, u in self.unique.items())

    def l2_bytes(self, runs: Mapping[int, int], blocks: int, merge: float) -> float:
        """Bytes read from L2 in the whole launch; of boxes that several blocks ask for at once, the share `merge` reaches it."""
        return sum(max(self.unique[op], a * merge) * runs.get(op, 0) / max(1, blocks) for op, a in self.asked.items())


def one_wave(subject: Subject, grid: Grid, args: Mapping[str, Any], extents: Mapping[tuple[str, int], int]) -> Traffic:
    """The loads of the first iteration of every block of the first wave; loads whose addresses are data are taken as distinct."""
    program = subject.program
    loads = {i: p for i, d in subject.demands.items() for p in d.pieces if p.kind == "tma"}
    boxes: dict[int, set[Any]] = {i: set() for i in loads}
    asked = dict.fromkeys(loads, 0.0)
    if loads:
        _collect(subject, grid, args, extents, loads, boxes, asked)
    unique = {i: len(boxes[i]) * p.size * p.times for i, p in loads.items()}
    share = {i: min(1.0, unique[i] / asked[i]) if asked[i] else 1.0 for i in loads}
    miss: dict[int, float] = {}
    for group in transactions(program)[0]:
        hit = 1.0
        for site in group.loads:
            hit *= (1.0 - share.get(site.op.id, 1.0)) ** loads[site.op.id].times
        miss.update({site.op.id: 1.0 - hit for site in group.loads})
    return Traffic(asked, unique, miss)


def _collect(subject: Subject, grid: Grid, args: Mapping[str, Any], extents: Mapping[tuple[str, int], int], loads: Mapping[int, Any],
             boxes: dict[int, set[Any]], asked: dict[int, float]) -> None:  # fmt: skip
    program, maker = subject.program, subject.maker
    roles = dict.fromkeys(subject.role_of[i] for i in loads)
    cx, _ = program.launch.cluster
    running = min(grid.clusters, grid.slots, max(1, _MOST_BLOCKS // grid.size))
    maker.first_only = True
    try:
        for cluster in range(running):
            for rank in range(grid.size):
                first = {name: own_tiles(grid, program, name, cluster, rank)[:1] for name in grid.orders}
                for role in roles:
                    maker.current = LoopStack()
                    context = Context(dict(args), 0, (rank % cx, rank // cx), program.launch.cluster, cluster * grid.size + rank, dict(extents),
                                      lambda name, first=first: maker.over(first.get(name, [])))  # fmt: skip
                    _follow(subject, role, context, loads, boxes, asked)
    finally:
        maker.first_only = False


def _follow(subject: Subject, role: str, context: Context, loads: Mapping[int, Any], boxes: dict[int, set[Any]], asked: dict[int, float]) -> None:
    body, reply = subject.code.roles[role](context), None
    while True:
        try:
            event = body.send(reply)
        except (StopIteration, ZeroDivisionError):
            return
        op = event[0]
        reply = 0 if op >= 0 and subject.demands[op].replies else None
        if op in loads:
            code = subject.code.ops[op]
            where = tuple(event[code.index[name]] for name in ("coords", "offset", "rows", "col") if name in code.index)
            boxes[op].add((where, str(code.op.attrs.get("tensor"))))
            asked[op] += loads[op].size
