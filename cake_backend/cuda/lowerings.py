"""Every operation that this build lowers, by name; methods of a view carry the prefix `view.`."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.cuda import atomics, global_memory, mma, move, reduce_across, send, shared_memory, sync
from cake_backend.cuda.context import Context, Place
from cake_ir.program import Op


def _across(ctx: Context, op: Op, place: Place | None) -> str:
    assert place is not None
    reduce_across.reduce_across(ctx, op, place)
    return ""


EFFECTS: dict[str, Callable[[Context, Op], None]] = {
    **sync.HANDLERS,
    **mma.HANDLERS,
    **move.HANDLERS,
    **shared_memory.EFFECTS,
    **global_memory.EFFECTS,
    **atomics.EFFECTS,
    **send.EFFECTS,
}
"""Operations without a result."""

RESULTS: dict[str, Callable[[Context, Op, Place | None], str]] = {**shared_memory.RESULTS, **global_memory.RESULTS, "reduce_across": _across}
"""Operations with a result: they write a place, or return the C text of a uniform value."""
