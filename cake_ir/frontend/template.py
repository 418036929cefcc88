"""A parsed file: its schedules as templates, with tunables still symbolic."""

from __future__ import annotations

import ast

from cake_ir.fault import Fault
from cake_ir.frontend.source import Source
from cake_ir.program import Const, Param
from cake_ir.record import record
from cake_ir.span import Span


@record(eq=False)
class Template:
    """One `@cake.schedule` (or `@cake.plan`) function before `specialise` gives its tunables values.

    `tunables` are the keyword-only parameters with their defaults (None where there is none); `targets` is what the decorator names.
    """

    name: str
    targets: tuple[str, ...]
    params: tuple[Param, ...]
    tunables: dict[str, Const]
    tunable_spans: dict[str, Span]
    body: tuple[ast.stmt, ...]
    doc: str
    span: Span
    receiver: str
    source: Source
    target_span: Span
    plan: bool = False


@record(eq=False)
class Module:
    """A file: its schedules, at most one plan, and what was wrong with it."""

    schedules: tuple[Template, ...]
    plan: Template | None
    faults: tuple[Fault, ...]
    source: Source

    def schedule(self, name: str | None = None) -> Template | None:
        """The schedule called `name`; the first one if no name is given."""
        if name is None:
            return self.schedules[0] if self.schedules else None
        return next((s for s in self.schedules if s.name == name), None)
