"""Counts as Python: texts of resolved scalar expressions over an environment `e`, compiled together.

A name's definition is one expression wherever it stands, so that a text of nothing but operators would repeat it for every reader, and
readers of readers again. What several read is worked out where it is met first, and has a name from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from cake_ir.program import Expr, Program
from cake_ir.walk.code import BINDING, BOUNDED, CALLS, INFIX, TIGHT
from cake_verify.analyses.scalar_operations import LARGE

Env = dict[str, Any]


_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_BINDING = {**BINDING, "select": 0, "cdiv": BINDING["neg"], "shl": TIGHT}
"""How tightly the text of an operation binds as it is written here."""


class NotKnown(Exception):
    """An expression that needs something the environment does not give."""


def texts(program: Program, groups: Sequence[Sequence[Expr]]) -> list[list[str] | None]:
    """Resolved scalar expressions of each group as Python over `e`, None where one of them is not known.

    `e` gives parameters by name, `tile` (fields by name) and `ld` (a function of tensor and index). Loop variables and places in the cluster
    count as 0. The texts are meant for one function, where they are evaluated in order.
    """
    writer = _Writer(program)
    writer.count(e for group in groups for e in group)
    out: list[list[str] | None] = []
    for group in groups:
        before = dict(writer.names)
        out.append(None)
        with suppress(NotKnown):
            out[-1] = [writer.text(e) for e in group]
        if out[-1] is None:
            writer.names, writer.level = before, 0  # what it would have named is never worked out
    return out


_DEEPEST = 60
"""Levels of a text: Python reads 200 parentheses within each other, and a level has up to three."""


class _Writer:
    """Writes expressions. `readers` counts who reads a part, by identity; `names` has the parts that were worked out in front of here."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.readers: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.named = 0
        self.level = 0

    def count(self, exprs: Iterable[Expr]) -> None:
        """Note who reads what in expressions that will be written, and that live until then."""
        readers = self.readers
        for e in exprs:
            if e.args:
                seen = readers.get(id(e), 0)
                readers[id(e)] = seen + 1
                if not seen:
                    self.count(e.args)

    def text(self, e: Expr, binding: int = 0) -> str:
        """An expression where something binds as tightly as `binding` around it."""
        if not e.args and self.level < _DEEPEST:
            return self._written(e)
        shared = self.readers.get(id(e), 0) > 1
        if shared and (name := self.names.get(id(e))) is not None:
            return name
        self.level += 1
        if self.level > _DEEPEST:
            raise NotKnown("deep")
        text = self._bound(e, 0 if shared else binding)
        self.level -= 1
        if not shared:
            return text
        self.named += 1
        name = self.names[id(e)] = f"v{self.named}"
        return f"({name} := {text})"

    def _bound(self, e: Expr, binding: int) -> str:
        text = self._written(e)
        return f"({text})" if _BINDING.get(e.op, TIGHT) < binding else text

    def _perhaps(self, e: Expr, binding: int = 0) -> str:
        """The text of what is not always evaluated: the names that it gives hold in it alone."""
        before = dict(self.names)
        text = self.text(e, binding)
        self.names = before
        return text

    def _written(self, e: Expr) -> str:
        op, args = e.op, e.args
        if op == "const":
            v = e.attrs["value"]
            return repr(v) if not isinstance(v, float) or math.isfinite(v) else f"float({str(v)!r})"
        if op == "param":
            return f"e[{str(e.attrs['name'])!r}]"
        if op == "shl" or (op == "mul" and args[0].op != "const" != args[1].op):
            return f"{op}({self.text(args[0])}, {self.text(args[1])})"
        if op in INFIX:
            own = BINDING[op]
            left = self.text(args[0], own + (op in _COMPARISONS))  # a comparison of comparisons is no chain
            return f"{left} {INFIX[op]} {self._perhaps(args[1], own + 1) if op in ('and', 'or') else self.text(args[1], own + 1)}"
        if op == "not":
            return f"(not {self.text(args[0])})"
        if op == "neg":
            return f"-{self.text(args[0], TIGHT)}"
        if op in ("min", "max"):
            return f"{op}({self.text(args[0])}, {self.text(args[1])})"
        if op == "cdiv":
            return f"-(-{self.text(args[0], TIGHT)} // {self.text(args[1], TIGHT)})"
        if op == "select":
            c = self.text(args[0], 1)  # evaluated in front of what stands before it
            return f"{self._perhaps(args[1], 1)} if {c} else {self._perhaps(args[2], 1)}"
        if op == "field":
            return f"e['tile'].get({str(e.attrs['name'])!r}, 0)"
        if op == "ld":
            return f"e['ld']({str(e.attrs['tensor'])!r}, {self.text(args[0])})"
        if op in ("var", "role_index", "cta_rank", "cta_id"):
            if "defined" in e.attrs:
                raise NotKnown(op)
            return "0"
        if op == "cluster_size":
            return str(self.program.launch.cluster[0] * self.program.launch.cluster[1])
        if op == "extent":
            declared = self.program.tensors[str(e.attrs["tensor"])].extents
            dim = int(e.attrs["dim"])  # type: ignore[call-overload]  # dimensions are integers
            found = declared[dim] if dim < len(declared) else 1
            return str(found) if isinstance(found, int) else f"e.get({found!r}, 1)"
        if op == "cast":
            return f"{'float' if getattr(e.type, 'dtype', 'i32')[0] in 'fbt' else 'int'}({self.text(args[0])})"
        if op in CALLS:
            return f"f_{op}({', '.join(self.text(a) for a in args)})"
        raise NotKnown(op)


def _times(a: Any, b: Any) -> Any:
    """The product, and beyond anything that a launch could mean a number as large: squares of squares double their digits each."""
    c = a * b
    return max(-LARGE, min(c, LARGE)) if isinstance(c, int) else c


_SCOPE: dict[str, Any] = {"nothing": lambda e: (), "min": min, "max": max, "int": int, "float": float, "bool": bool, **BOUNDED, "mul": _times}
_FUNCTIONS = {f"f_{k}": v for k, v in CALLS.items()}


def compiled(*groups: list[str]) -> tuple[Callable[[Env], tuple[Any, ...]], ...]:
    """For each group of texts a function of the environment that gives their values; texts come from here, never from an author."""
    functions = [f"lambda e: ({', '.join(texts)},)" if texts else "nothing" for texts in groups]
    return eval(compile(f"{', '.join(functions)},", "<trips>", "eval"), {"__builtins__": _SCOPE, **_FUNCTIONS})
