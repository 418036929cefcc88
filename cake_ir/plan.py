"""A plan: the only host-side part of a candidate, several launches with the workspaces between them, as data."""

from __future__ import annotations

from cake_ir.program import Const, Expr, Let, Param
from cake_ir.record import record
from cake_ir.span import Span


@record(eq=False)
class Workspace:
    """Device memory that lives as long as the plan: extents outermost first; undefined until a launch or `zero` writes it."""

    name: str
    shape: tuple[Expr, ...]
    dtype: str
    span: Span


@record(eq=False)
class Zero:
    """Clear a tensor or workspace."""

    tensor: str
    span: Span


@record(eq=False)
class Run:
    """Launch `schedule`: tensor arguments by name of what is bound, scalar arguments as expressions, tunables as constants.

    `after` is `stream` (the default) or `pdl`.
    """

    schedule: str
    tensors: dict[str, str]
    scalars: dict[str, Expr]
    tunables: dict[str, Const]
    after: str
    span: Span
    spans: dict[str, Span]


Step = Workspace | Zero | Let | Run


@record(eq=False)
class Plan:
    """Steps in order; parameters and tunables as of a schedule."""

    name: str
    params: tuple[Param, ...]
    tunables: dict[str, Const]
    steps: tuple[Step, ...]
    span: Span
    doc: str = ""
