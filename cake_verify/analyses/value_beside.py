"""What products are combined with along an axis of its own, as scales are: by every member at one distance, and at no whole tile's.

A product knows the axes of its operands. A vector that is loaded along another axis and multiplied with it row by row, or column by column,
starts where the product's rows do, counted along its own axis: what that makes the distance of one member it makes that of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cake_ir.program import Expr, Op
from cake_ir.types import FragT
from cake_verify.analyses.report_labels import form_of
from cake_verify.analyses.value_state import Beside

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk


def misplaced(walk: ValueWalk) -> Iterator[tuple[Op, int, Beside]]:
    """The combinations of one run that lie elsewhere than their partners."""
    for (number, axis, _, _), by_member in walk.beside.items():
        op = walk.plan.program.ops[number]
        ranks = {rank for rank, _ in by_member}
        for rank in ranks:
            mine = [events for (r, _), events in sorted(by_member.items(), key=lambda x: x[0]) if r == rank]
            odd = next((e for events in mine[1:] for e, first in zip(events, mine[0], strict=False) if _apart(e) != _apart(first)), None)
            if odd is not None:
                yield op, axis, odd
                break
        else:
            first = next(iter(by_member.values()))[0]
            if _whole_tiles(walk, op, axis, first):
                yield op, axis, first


def _apart(at: Beside) -> int:
    return at[1][1] - at[0][1]


def _whole_tiles(walk: ValueWalk, op: Op, axis: int, at: Beside) -> bool:
    """Whether the two step alike and their constants are a tile or more apart."""
    a, b = form_of(walk.plan, at[0]), form_of(walk.plan, at[1])
    value = op.operands.get("value")
    t = value.type if isinstance(value, Expr) else None
    n = (t.cols if axis else t.rows) if isinstance(t, FragT) else 0
    return a is not None and b is not None and bool(a.terms) and a.terms == b.terms and n > 1 and abs(a.constant - b.constant) >= n


__all__ = ["misplaced"]
