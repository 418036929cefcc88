"""Barrier hardware: mbarriers with pending count, transaction bytes and parity; named barriers; the cluster barrier; the register pool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_backend.simulate.state import Warp


class OverArrival(Exception):
    """An arrival reached a barrier whose pending count was already zero."""


@dataclass(slots=True, eq=False)
class Gate:
    """Something that warps wait for; a change wakes all of them, and each tests again."""

    waiters: list[Warp] = field(default_factory=list)

    def wake(self) -> None:
        """Let every waiter test its condition again."""
        for w in self.waiters:
            w.ready = True
            w.waits_for = None
        self.waiters.clear()


@dataclass(slots=True, eq=False)
class MBarrier(Gate):
    """One mbarrier object. The open phase ends, and the parity flips, when `pending` and `tx` are both zero."""

    name: str = ""
    stage: int = 0
    count: int = 1
    pending: int = 1
    tx: int = 0
    parity: int = 0
    flips: int = 0

    def passed(self, parity: int) -> bool:
        """What `try_wait.parity` answers: whether the phase of that parity is the one that completed last."""
        return self.parity != parity

    def arrive(self, n: int = 1) -> None:
        """`n` arrivals; raises `OverArrival` when the open phase does not expect that many more."""
        if n > self.pending:
            raise OverArrival
        self.pending -= n
        self._settle()

    def expect(self, nbytes: int) -> None:
        """One arrival that also adds transaction bytes."""
        if self.pending < 1:
            raise OverArrival
        self.tx += nbytes
        self.pending -= 1
        self._settle()

    def complete(self, nbytes: int) -> None:
        """Transaction bytes have landed; they may come before they are expected."""
        self.tx -= nbytes
        self._settle()

    def _settle(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.parity ^= 1
            self.flips += 1
            self.pending = self.count
            self.wake()

    @property
    def state(self) -> str:
        """Counts in words."""
        bytes_ = f", {self.tx} bytes outstanding" if self.tx else ""
        return f"{self.count - self.pending} of {self.count} arrivals{bytes_}, {self.flips} phases complete"


@dataclass(slots=True, eq=False)
class NamedBarrier(Gate):
    """A hardware barrier over a number of warps: `bar.sync` counts and waits, `bar.arrive` only counts."""

    name: str = ""
    expected: int = 1
    arrived: int = 0
    generation: int = 0

    def arrive(self) -> int:
        """Count one warp; the generation whose completion it belongs to."""
        mine = self.generation
        self.arrived += 1
        if self.arrived == self.expected:
            self.arrived = 0
            self.generation += 1
            self.wake()
        return mine

    def passed(self, generation: int) -> bool:
        """Whether the generation has completed."""
        return self.generation > generation

    @property
    def state(self) -> str:
        return f"{self.arrived} of {self.expected} warps"


@dataclass(slots=True, eq=False)
class RegisterPool(Gate):
    """Free registers of one sub-partition: warps whose number modulo 4 is the same share it."""

    free: int = 0

    @property
    def state(self) -> str:
        return f"{self.free} registers free"
