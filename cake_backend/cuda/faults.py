"""The answer for what the language knows and this lowering does not emit yet."""

from __future__ import annotations

from typing import NoReturn

from cake_ir.fault import Fault, FaultError
from cake_ir.span import Span

NOT_LOWERED = "H091"
"""The code of an operation that is known, verified and simulated, but that this build does not lower."""


class NotLowered(FaultError):
    """An operation that has no lowering in this build; `fault.span` is the operation's."""


def not_lowered(what: str, span: Span, help: str = "") -> NoReturn:
    """Refuse to lower: `what` names the operation and the operand form that is missing."""
    raise NotLowered(Fault(NOT_LOWERED, f"{what} is known, not lowered in this build", span, help=help, facts={"what": what}))
