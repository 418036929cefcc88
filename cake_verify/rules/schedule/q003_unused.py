"""Q003: what is declared is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cake_ir.derive.structure import listed, nodes
from cake_ir.fault import Fault
from cake_ir.program import Assign as AssignStmt
from cake_ir.program import Expr, Program, Stmt
from cake_ir.program import For as ForStmt
from cake_ir.program import If as IfStmt
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="Q003",
    title="declared and never used",
    statement="Every view, tensor memory, ring, barrier, named barrier, scheduler and tensor parameter is used by some role.",
    why="An unused resource costs shared memory or an id, and usually means that an operation is missing.",
    failing=edit(COPY, ("    with work:", "    spare = lm.pipeline(stages=4)\n    with work:")),
    passing=COPY,
    severity="warning",
)


def check(program: Program) -> Iterator[Fault]:
    used = _used(program)
    kinds = (
        (program.views, "view"), (program.tmems, "tensor memory"), (program.rings, "ring"), (program.barriers, "barrier"), (program.named, "named barrier"),
        (program.turns, "turn"), (program.schedulers, "scheduler"), (program.tensors, "tensor"),
    )  # fmt: skip
    for declared, what in kinds:
        for name, d in declared.items():
            if name not in used:
                yield Fault("Q003", f"{what} `{name}` is never used", d.span, (), "remove it, or use it", (), {"name": name, "kind": what}, severity="warning")


def _used(program: Program) -> set[str]:
    """Names that operations, expressions and declarations of what is used mention."""
    used: set[str] = set()
    for op, found in zip(program.ops, nodes(program), strict=True):
        used.update([v for v in op.attrs.values() if isinstance(v, str)])
        _mentioned(found, used)
    for _, body in listed(program):
        for s in body:
            _statement(s, used)
    for s in program.schedulers.values():
        if s.name in used:
            used.update(x for x in (s.offsets, s.counter, s.fetch) if x is not None)
            for e in s.tiles:
                _mention(e, used)
    for b in program.barriers.values():
        if b.name in used:
            used.add(b.pipeline)
    for d in program.lets.values():
        _mention(d.value, used)
    return used


def _statement(s: Stmt, used: set[str]) -> None:
    if isinstance(s, ForStmt):
        used.update(x for x in (s.scheduler,) if x is not None)
        _mention(s.lo, used)
        _mention(s.hi, used)
    elif isinstance(s, IfStmt):
        _mention(s.cond, used)
    elif isinstance(s, AssignStmt) and isinstance(s.value, Expr):
        _mention(s.value, used)


def _mention(e: Expr | None, used: set[str]) -> None:
    if e is not None:
        _mentioned(e.parts(), used)


def _mentioned(found: Iterable[Expr], used: set[str]) -> None:
    for node in found:
        if node.op not in _PLAIN:
            for k, v in node.attrs.items():
                if k in _NAMING and isinstance(v, str):
                    used.add(v)


_PLAIN = frozenset({"const", "var", "param", "field"})
"""Expressions with attributes that name nothing declared here: most there are."""
_NAMING = frozenset({"view", "tmem", "ring", "tensor", "role"})
"""Attributes of expressions that name something declared."""
