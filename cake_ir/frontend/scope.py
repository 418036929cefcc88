"""The state of one elaboration: names, declarations, operations so far, faults, and the step budget."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cake_ir.fault import Fault, FaultError, Fix
from cake_ir.frontend.source import Source
from cake_ir.program import Assign, Const, Decl, Expr, Op, Operand, Param, Stmt
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import Type

MAX_STEPS = 200_000
MAX_FAULTS = 40
MAX_DEPTH = 200
MAX_ELEMENTS = 4_096
MAX_OPS = 20_000


class DTypeName(str):
    """A compile-time value that names a dtype (`lm.bf16`)."""

    __slots__ = ()


@record()
class Named:
    """A name bound to a declared thing: a record of `program` (View, Role, Barrier, ..) or a parameter."""

    record: Any


@record()
class Local:
    """A run-time name inside a role: its name in the program (unique a type) and its type; `literal` is the number that it was just bound to."""

    ir_name: str
    type: Type
    span: Span
    from_zero: bool = False
    literal: bool | int | float | None = None


@record()
class Lost:
    """A name whose value is unknown: `reason` empty after a fault that was already reported; `seen` is what it was on the path that bound it."""

    reason: str = ""
    span: Span | None = None
    seen: Any = None


class Poisoned(Exception):
    """An operand's fault has already been reported; what depends on it is skipped in silence."""


@dataclass(slots=True)
class Elaboration:
    """Mutable state shared by the elaborating functions; not seen outside `cake_ir.frontend`."""

    source: Source
    target: str
    receiver: str
    env: dict[str, Any] = field(default_factory=dict)
    decls: list[Decl] = field(default_factory=list)
    params: dict[str, Param] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    out: list[Stmt] | None = None
    role: Any = None
    loops: list[int | None] = field(default_factory=list)
    rounds: list[Any] = field(default_factory=list)  # of `carried.Round`, one an open loop
    block: ast.AST | None = None  # of the role
    steps: int = 0
    used: set[str] = field(default_factory=set)
    hoisted: set[str] = field(default_factory=set)
    other_arm: dict[str, Local] = field(default_factory=dict)
    exhausted: bool = False
    by_name: dict[str | None, Decl] = field(default_factory=dict)
    known: int = 0
    span: Callable[[ast.AST], Span] = field(init=False)

    def __post_init__(self) -> None:
        self.span = self.source.span

    # ------------------------------------------------------------ faults

    def fail(self, code: str, message: str, where: ast.AST | Span, *, help: str = "", related: tuple[tuple[Span, str], ...] = (),
             fixes: tuple[Fix, ...] = (), **facts: Any) -> NoReturn:  # fmt: skip
        span = where if isinstance(where, Span) else self.source.span(where)
        raise FaultError(Fault(code, message, span, related=related, help=help, fixes=fixes, facts=facts))

    def step(self, node: ast.AST) -> None:
        """Count one evaluated node; N020 past the budget, so that no text can keep the elaborator busy."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            self.past_budget(node)

    def past_budget(self, node: ast.AST) -> NoReturn:
        if self.exhausted:
            raise Poisoned
        self.exhausted = True
        self.fail("N020", f"compile-time evaluation takes more than {MAX_STEPS} steps", node, help="shorten the loops over compile-time values")

    @property
    def enough(self) -> bool:
        """Whether so much is wrong, or so much was evaluated, that going on would help nobody."""
        return self.exhausted or len(self.faults) >= MAX_FAULTS

    def shallow(self, e: Expr, span: Span) -> Expr:
        """`e`; N002 where it is nested more deeply than its readers recurse."""
        level: Sequence[Expr] = e.args
        depth = 0
        while level:
            depth += 1
            if depth > MAX_DEPTH:
                self.fail("N002", "the expression is nested too deeply", span, help="bind parts of it to names")
            level = level[0].args if len(level) == 1 else [a for x in level for a in x.args]
        return e

    # ------------------------------------------------------------ declared things

    def declared(self, name: str) -> Any:
        """The record of a declared thing or parameter (protocol of `ops.spec.Scope`)."""
        if name in self.params:
            return self.params[name]
        for d in self.decls[self.known :]:
            self.by_name.setdefault(getattr(d, "name", None), d)
        self.known = len(self.decls)
        return self.by_name[name]

    def of_kind(self, cls: type) -> list[str]:
        return [d.name for d in self.decls if isinstance(d, cls)]  # type: ignore[union-attr]  # callers ask for named kinds

    # ------------------------------------------------------------ operations

    def new_op(self, name: str, operands: dict[str, Operand], attrs: dict[str, Const], type_: Type, span: Span, spans: dict[str, Span]) -> Op:
        if len(self.ops) >= MAX_OPS:
            self.fail("N020", f"a schedule has more than {MAX_OPS} operations", span)
        for operand in operands.values():
            for e in operand if isinstance(operand, tuple) else (operand,):
                if e is not None and e.args:
                    self.shallow(e, span)
        op = Op(name, operands, attrs, type_, span, spans, len(self.ops))
        self.ops.append(op)
        return op

    def fresh(self, base: str) -> str:
        """A local name not used so far, like `base`."""
        name, n = base, 1
        while name in self.used:
            n += 1
            name = f"{base}_{n}"
        self.used.add(name)
        return name

    def hoist(self, base: str, value: Op | Expr, span: Span) -> Expr:
        """Bind a value to a name of its own in front of the present statement; the expression that reads it there."""
        assert self.out is not None
        name = self.fresh(base)
        self.hoisted.add(name)
        self.out.append(Assign((name,), value, span))
        return Expr("var", (), {"name": name}, value.type, span)

    def last_hoisted(self, e: Expr) -> Assign | None:
        """The statement that has just bound what `e` reads, if `e` is nothing but that."""
        last = self.out[-1] if self.out else None
        if e.op == "var" and isinstance(last, Assign) and last.targets == (e.attrs["name"],) and e.attrs["name"] in self.hoisted:
            return last
        return None
