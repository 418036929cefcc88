"""Which registers an operation reads and writes: fragment names numbered by role, arrays of fragments by element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cake_ir.derive.structure import sites
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue
from cake_ir.program import Assign, Expr, Program
from cake_ir.types import FragT, ListT, PairT
from cake_ir.walk.code import RoleCode

MODELS = frozenset({"frag", "rowvec", "colvec", "iota", "in_bounds", "topk_list"})
"""Operations whose first argument only lends its shape."""

Mask = int | Callable[[tuple[Any, ...]], int]


@dataclass(slots=True)
class Touches:
    """Register masks of one operation; a callable takes the event's values where an array element is chosen at run time."""

    reads: Mask = 0
    writes: Mask = 0
    acc: Mask = 0
    held: Mask = 0
    clears: int = 0

    @property
    def any(self) -> bool:
        return bool(self.reads or self.writes or self.acc or self.held or self.clears)


@dataclass(slots=True)
class Places:
    """The places of one role: `names[i]` is bit i."""

    role: str
    bits: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def bit(self, name: str, stages: int = 1) -> int:
        if name not in self.bits:
            self.bits[name] = len(self.names)
            self.names += [name] if stages == 1 else [f"{name}[{i}]" for i in range(stages)]
        return self.bits[name]


def _is_place(e: Expr) -> bool:
    return isinstance(e.type, (FragT, PairT, ListT))


class _Reader:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.dynamic: list[tuple[int, int, int]] = []
        self.mask = 0

    def visit(self, e: Expr) -> None:
        if e.op == "var" and _is_place(e):
            stages = e.type.stages if isinstance(e.type, FragT) else 1
            first = self.places.bit(str(e.attrs["name"]), stages)
            self.mask |= ((1 << stages) - 1) << first
            return
        if e.op == "frag_stage" and e.args[0].op == "var" and isinstance(e.args[0].type, FragT):
            stages = e.args[0].type.stages
            first = self.places.bit(str(e.args[0].attrs["name"]), stages)
            slot = e.args[1]
            if slot.op == "dyn":
                self.dynamic.append((first, stages, int(slot.attrs["i"])))  # type: ignore[arg-type]  # positions are integers
            else:
                self.mask |= 1 << (first + int(slot.attrs["value"]) % stages)  # type: ignore[arg-type]  # a constant slot is an int
            return
        for i, a in enumerate(e.args):
            if i == 0 and e.op in MODELS and _is_place(a):
                continue
            self.visit(a)

    def result(self) -> Mask:
        if not self.dynamic:
            return self.mask
        fixed, dynamic = self.mask, tuple(self.dynamic)

        def at(values: tuple[Any, ...]) -> int:
            mask = fixed
            for first, stages, i in dynamic:
                mask |= 1 << (first + values[i] % stages)
            return mask

        return at


def _mask(places: Places, *trees: Expr) -> Mask:
    reader = _Reader(places)
    for tree in trees:
        reader.visit(tree)
    return reader.result()


def _whole(e: Expr) -> bool:
    """Whether the expression names registers as they are, with no conversion into others."""
    return e.op == "var" or (e.op in ("frag_stage", "frag_cols", "frag_rows", "item") and _whole(e.args[0]))


def register_touches(program: Program, code: RoleCode) -> tuple[dict[str, Places], dict[int, Touches]]:
    """The places of every role, and what each operation does to them."""
    places = {block.role: Places(block.role) for block in program.body}
    out: dict[int, Touches] = {}
    for site in sites(program):
        op, mine = site.op, places[site.role]
        trees = code.ops[op.id].trees
        touch = out[op.id] = Touches()
        if not trees and not isinstance(site.stmt, Assign):
            continue
        effects = effects_of(op, program)
        issue = next((e for e in effects if isinstance(e, Issue) and any(t.space == "reg" for t in e.touches)), None) if effects else None
        if issue is not None and issue.engine == "wgmma":
            touch.acc = _mask(mine, trees["acc"])
            if "a" in trees:
                touch.reads = _mask(mine, trees["a"])
                touch.held = touch.reads if _whole(trees["a"]) else 0
        elif op.name == "mma" and "acc" in trees:
            touch.acc = _mask(mine, trees["acc"])
            touch.reads = _mask(mine, *(t for n, t in trees.items() if n != "acc"))
        else:
            touch.reads = _mask(mine, *[t for n, t in trees.items() if n != "like"]) if trees else 0
        if isinstance(site.stmt, Assign) and _is_result(op.type):
            bare = op.name == "compute" and _undefined(trees.get("value"))
            mask = 0
            for name in site.stmt.targets:
                stages = op.type.stages if isinstance(op.type, FragT) else 1
                mask |= ((1 << stages) - 1) << mine.bit(name, stages)
            if bare:
                touch.clears = mask
            else:
                touch.writes = mask
    return places, out


def _is_result(t: object) -> bool:
    return isinstance(t, (FragT, PairT, ListT))


def _undefined(e: Expr | None) -> bool:
    """Whether the expression declares registers without giving them a value."""
    return e is not None and e.op == "frag" and e.attrs.get("init") is None and not any(a for a in e.args if not _is_place(a))
