"""Every operation's semantics in one place: what the families define."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.simulate import atomics, elementwise, fragments, lists, mma, move, reduce, scan, send, sync, tmem
from cake_backend.simulate.elementwise import Builder
from cake_backend.simulate.machine import Site, Step

SYNC = sync.STEPS

VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {
    "lm.compute": (elementwise.compute,), **move.VALUES, **mma.VALUES, **tmem.VALUES, **reduce.VALUES, **atomics.VALUES, **send.VALUES,
}  # fmt: skip

PURE: dict[str, Builder] = {**elementwise.PURE, **fragments.PURE, **reduce.PURE, **scan.PURE, **lists.PURE}


def values_of(key: str) -> tuple[Callable[[Site], Step], ...]:
    """The value parts of an operation, one for each run of touches and issues between its synchronisation effects."""
    return VALUES.get(key, ())
