"""Q003: what is declared is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cake_ir.derive.mentions import beside, mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_verify.analyses.dead_values import unused_numbers
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="Q003",
    title="declared and never used",
    statement="Every view, tensor memory, ring, barrier, named barrier, scheduler and tensor parameter is used by some role, and of the numbers that are read from a tensor one is.",
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
    yield from unused_numbers(program)


def _used(program: Program) -> set[str]:
    """Names that operations, expressions and declarations of what is used mention."""
    used = {v for op in program.ops for v in op.attrs.values() if isinstance(v, str)}
    for kind, found in mentions(program).items():
        if kind not in _PLAIN:
            _mentioned(found, used)
    _mentioned(beside(program), used)
    used.update([s.scheduler for loops in sites(program).loops.values() for s in loops if s.scheduler is not None])
    for s in program.schedulers.values():
        if s.name in used:
            used.update(x for x in (s.offsets, s.counter, s.fetch) if x is not None)
            for e in s.tiles:
                _mentioned(e.parts(), used)
    for b in program.barriers.values():
        if b.name in used:
            used.add(b.pipeline)
    for d in program.lets.values():
        _mentioned(d.value.parts(), used)
    return used


def _mentioned(found: Iterable[Expr], used: set[str]) -> None:
    for node in found:
        if node.attrs and node.op not in _PLAIN:
            for k, v in node.attrs.items():
                if k in _NAMING and isinstance(v, str):
                    used.add(v)


_PLAIN = frozenset({"const", "var", "param", "field"})
"""Expressions with attributes that name nothing declared here: most there are."""
_NAMING = frozenset({"view", "tmem", "ring", "tensor", "role"})
"""Attributes of expressions that name something declared."""
