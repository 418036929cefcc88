"""The spec of an operation: signature, result type, effects, feature needed.

Every operation of the language is one `OpSpec`, found by its name. The frontend binds and types calls with it, the printer prints
with it, and every gate reads its effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

from cake_ir.fault import Fault, FaultError, Fix
from cake_ir.program import Const, Op, Operand, Program
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import NONE, Type

if TYPE_CHECKING:
    from cake_ir.ops.effects import Effect


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()

Kind = Literal[
    "view", "tmem", "value", "place", "scalar", "coords", "slot", "scales",  # operands
    "tma", "gmem", "tensor", "barrier", "named", "turns", "role", "ring",  # names of declared things: attributes
    "int", "float", "bool", "str", "dtype", "shape", "axis", "raw",  # compile-time options: attributes
]  # fmt: skip
OPERAND_KINDS = frozenset({"view", "tmem", "value", "place", "scalar", "coords", "slot", "scales"})


@record()
class P:
    """One parameter: `kind` says what it accepts; several kinds are separated by `|`.

    `is_operand`: it takes an expression, otherwise it is an attribute.
    """

    name: str
    kind: str
    default: Any = REQUIRED
    kinds: tuple[str, ...] = field(init=False)
    is_operand: bool = field(init=False)
    required: bool = field(init=False)

    def __post_init__(self) -> None:
        kinds = tuple(self.kind.split("|"))
        for name, value in (("kinds", kinds), ("is_operand", not OPERAND_KINDS.isdisjoint(kinds)), ("required", self.default is REQUIRED)):
            object.__setattr__(self, name, value)  # the frozen class's own initialiser


class Scope(Protocol):
    """What a spec may ask of the schedule under elaboration: declared things by name, the target."""

    target: str
    role: Any

    def declared(self, name: str) -> Any: ...


@dataclass(slots=True)
class Call:
    """A bound call, handed to `OpSpec.infer`, which may add attributes and raises faults through `fault`."""

    name: str
    operands: dict[str, Operand]
    attrs: dict[str, Const]
    span: Span
    spans: dict[str, Span]
    scope: Scope

    def type_of(self, name: str) -> Type:
        """The type of an operand; `NONE` if it was left out."""
        e = self.operands.get(name)
        return NONE if e is None or isinstance(e, tuple) else e.type

    def fault(self, code: str, message: str, param: str | None = None, *, help: str = "", fixes: tuple[Fix, ...] = (),
              related: tuple[tuple[Span, str], ...] = (), **facts: Any) -> NoReturn:  # fmt: skip
        """Refuse the call, pointing at parameter `param` (or the whole call)."""
        span = self.spans.get(param, self.span) if param else self.span
        raise FaultError(Fault(code, message, span, related=related, help=help, fixes=fixes, facts=facts))


@record()
class OpSpec:
    """One operation.

    `on` is `lm` for `lm.name(..)` or the kind of the receiver for `receiver.name(..)` (the receiver is the first parameter).
    `pure` operations become expressions. `needs` names a feature of `cake_ir.targets` that the target must have.
    """

    name: str
    family: str
    params: tuple[P, ...]
    infer: Callable[[Call], Type] = field(default=lambda call: NONE)
    effects: Callable[[Op, Program], tuple[Effect, ...]] = field(default=lambda op, program: ())
    on: Literal["lm", "view", "frag", "tmem"] = "lm"
    pure: bool = False
    needs: str | None = None
    doc: str = ""
    order: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Parameters in their order."""
    views: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Parameters that take a view."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple([p.name for p in self.params]))  # the frozen class's own initialiser
        object.__setattr__(self, "views", tuple([p.name for p in self.params if "view" in p.kinds]))

    @property
    def spelling(self) -> str:
        """How the operation is written: `lm.wait`, `view.tma_load`."""
        return f"{self.on}.{self.name}"


def always(*effects: Effect) -> Callable[[Op, Program], tuple[Effect, ...]]:
    """Effects that do not depend on the operands."""
    return lambda op, program: effects
