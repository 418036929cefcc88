"""Runs as the search for unread parts looks at them: kept from the first one on that has left a write in doubt, the earlier ones walked again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cake_verify.analyses.machine import Machine
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.replay import start
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.state import Member
from cake_verify.analyses.unread_parts import Parts, candidates, nearby

Log = list[tuple[Member, tuple[Any, ...]]]
"""The events of a run, in order."""


class Doubts:
    """The writes that no run so far has been seen to use up, and the events of the runs since there were any.

    `heard` are the operations whose events the next run has to keep.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.heard: frozenset[int] = frozenset()
        self._logs: dict[int, tuple[Log, frozenset[int]]] = {}

    def note(self, run: int, log: Log, of: frozenset[int], doubted: Iterable[int]) -> None:
        """Run number `run` has ended, with the events of the operations `of` in `log`, and leaves these writes in doubt."""
        if of:
            self._logs[run] = log, of
        if not self.heard and (found := candidates(self.plan, doubted)):
            self.heard = frozenset(nearby(self.plan, found))

    def parts(self, machine: Machine, settings: list[Setting], prefix: frozenset[str], doubted: frozenset[int]) -> Parts:
        """Who reads which part of the writes of `doubted`, over all runs."""
        parts = Parts(self.plan, doubted)
        for i, setting in enumerate(settings):
            log, of = self._logs.get(i, ([], frozenset()))
            if not of.issuperset(parts.handlers):
                log = []
                world = start(machine, setting, prefix)
                machine.run(world, log.append, logged=parts.handlers)
                world.members.clear()
            parts.look(setting.args, log)
        parts.handlers.clear()  # they hold what would hold them
        return parts


__all__ = ["Doubts"]
