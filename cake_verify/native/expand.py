"""A module's text as the compiler takes it best: records as plain classes, cached properties as properties, and what it cannot follow put otherwise.

The text is compiled and thrown away; nobody reads or runs it as Python. Every rewriting keeps the meaning, line by line where it can.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

Offset = Callable[[int | None, int | None], int]
COPIED = frozenset({"Machine", "Member"})
"""Classes whose objects are copied: the compiler makes that possible where it is told to, but Python can then make one only with the second word."""
EXTENDED = frozenset({"Clash"})
"""Records that other records extend: those stay as they are."""
UNMADE = frozenset({"Program"})
"""Records that are made without their initialiser."""
BUILT_IN = frozenset({"Exception", "ValueError", "KeyError", "str", "dict", "tuple", "int", "list", "set", "frozenset", "float"})
HEAD = """import builtins as _native_builtins
from typing import TYPE_CHECKING as _native_checking, Any as _native_any
from cake_ir.native_support import backwards as _native_backwards, fielded as _native_fielded, interpreted as _native_interpreted, shown as _native_shown
if _native_checking:
    from mypy_extensions import mypyc_attr as _native_mypyc_attr
"""


@dataclass(frozen=True)
class _Field:
    """One field of a record, as its class states it."""

    name: str
    type: str
    default: str | None
    factory: str | None
    init: bool = True
    shown: bool = True
    compared: bool = True


def expanded(text: str) -> str:
    """The text of a module, rewritten."""
    edits: list[tuple[int, int, str]] = []
    offset = _offsets(text)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, ast.Call) and isinstance(called := node.iter.func, ast.Name) and called.id == "reversed":
            edits.append((offset(called.lineno, called.col_offset), offset(called.end_lineno, called.end_col_offset), "_native_backwards"))
        if isinstance(node, ast.Compare):
            for among in node.comparators:
                if isinstance(among, ast.Tuple) and any(isinstance(e, ast.Starred) for e in among.elts):
                    begin, end = offset(among.lineno, among.col_offset), offset(among.end_lineno, among.end_col_offset)
                    edits += [(begin, begin + 1, "tuple(["), (end - 1, end, "])")]
        if isinstance(node, ast.ClassDef):
            edits += _class(node, offset, node in tree.body)
    data = text.encode()
    for begin, end, new in sorted(edits, reverse=True):
        data = data[:begin] + new.encode() + data[end:]
    future = "from __future__ import annotations\n"
    return data.decode().replace(future, future + HEAD, 1) if future in text else text


def _offsets(text: str) -> Offset:
    """Where a line and a column of the syntax tree lie among the bytes of a text."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    return offset


def _class(node: ast.ClassDef, offset: Offset, top: bool) -> list[tuple[int, int, str]]:
    bases = {ast.unparse(b).split("[")[0] for b in node.bases}
    begin = offset(node.lineno, 0)
    if bases & BUILT_IN:
        return [(begin, begin, "@_native_interpreted\n" + " " * node.col_offset)] if top else []
    edits = _shadowed(node, offset)
    for b in node.body:
        if isinstance(b, ast.Assign) and ast.unparse(b.targets[0]) == "__slots__":
            edits.append((offset(b.lineno, b.col_offset), offset(b.end_lineno, b.end_col_offset), "pass"))
        if isinstance(b, ast.FunctionDef) and [ast.unparse(d) for d in b.decorator_list] == ["cached_property"]:
            kept, first = f"_kept_{b.name}", b.decorator_list[0]
            edits.append((offset(first.lineno, 0), offset(b.lineno, 0), _CACHED.format(kept=kept, name=b.name)))
            at = offset(b.lineno, b.col_offset) + len("def ")
            edits.append((at, at + len(b.name), f"_work_out_{b.name}"))
    if not node.decorator_list:
        return edits + ([(begin, begin, "@_native_mypyc_attr(serializable=True, allow_interpreted_subclasses=True)\n")] if node.name in COPIED else [])
    how = node.decorator_list[0]
    if not top or node.bases or node.name in EXTENDED or len(node.decorator_list) != 1 or not isinstance(how, ast.Call) or ast.unparse(how.func) not in ("record", "dataclass"):
        return edits
    said = {k.arg: bool(ast.literal_eval(k.value)) for k in how.keywords}
    if ast.unparse(how.func) == "dataclass" and not said.get("slots"):
        return edits
    fields = []
    for b in node.body:
        if isinstance(b, ast.AnnAssign):
            fields.append(_field(b))
            if b.value is not None:
                edits.append((offset(b.annotation.end_lineno, b.annotation.end_col_offset), offset(b.value.end_lineno, b.value.end_col_offset), ""))
    own = {b.name for b in node.body if isinstance(b, ast.FunctionDef)}
    hashed = ast.unparse(how.func) == "record" or said.get("frozen", False)
    end = offset(node.end_lineno, node.end_col_offset)
    specs = tuple((f.name, f.init, f.shown, f.compared) for f in fields)
    methods = indent("\n".join(_methods(node.name, fields, own, said.get("eq", True), said.get("order", False), hashed)), "    ")
    mark = "@_native_mypyc_attr(allow_interpreted_subclasses=True)" if node.name in UNMADE else "@_native_mypyc_attr(serializable=True, allow_interpreted_subclasses=True)" if node.name in COPIED else ""
    edits.append((offset(how.lineno, 0), offset(how.end_lineno, how.end_col_offset), mark))
    edits.append((end, end, f"\n\n{methods}\n\n\n_native_fielded({node.name}, {specs!r})\n"))
    return edits


def _shadowed(node: ast.ClassDef, offset: Offset) -> list[tuple[int, int, str]]:
    """A class with a method called `int` says `int` of the built-in type too: the compiler takes that for the method."""
    own = {b.name for b in node.body if isinstance(b, ast.FunctionDef)} & {"int", "bool", "str", "list", "dict"}
    kinds = [k for b in node.body if own and isinstance(b, ast.FunctionDef) for k in (b.returns, *(a.annotation for a in (*b.args.args, *b.args.kwonlyargs)))]
    names = [n for k in kinds if k is not None for n in ast.walk(k) if isinstance(n, ast.Name) and n.id in own]
    return [(offset(n.lineno, n.col_offset), offset(n.end_lineno, n.end_col_offset), f"_native_builtins.{n.id}") for n in names]


_CACHED = """    {kept}: _native_any = None

    @property
    def {name}(self) -> _native_any:
        if self.{kept} is None:
            self.{kept} = self._work_out_{name}()
        return self.{kept}

"""


def _field(b: ast.AnnAssign) -> _Field:
    name, kind = ast.unparse(b.target), ast.unparse(b.annotation)
    if not isinstance(b.value, ast.Call) or ast.unparse(b.value.func) != "field":
        return _Field(name, kind, None if b.value is None else ast.unparse(b.value), None)
    said = {str(k.arg): k.value for k in b.value.keywords}
    init, shown, compared = (bool(ast.literal_eval(said[k])) if k in said else True for k in ("init", "repr", "compare"))
    default, factory = (ast.unparse(said[k]) if k in said else None for k in ("default", "default_factory"))
    return _Field(name, kind, default, factory, init, shown, compared)


def _methods(name: str, fields: list[_Field], own: set[str], eq: bool, order: bool, hashed: bool) -> list[str]:
    """What `record` and `dataclass` give a class, written out."""
    takes, puts = [], []
    for f in fields:
        if f.init:
            takes.append(f"{f.name}: _native_any = None" if f.factory else f"{f.name}: {f.type}" + ("" if f.default is None else f" = {f.default}"))
        if f.factory:
            puts.append(f"self.{f.name} = {f.factory}()" + (f" if {f.name} is None else {f.name}" if f.init else ""))
        elif f.init or f.default is not None:
            puts.append(f"self.{f.name} = {f.name if f.init else f.default}")
    if "__post_init__" in own:
        puts.append("self.__post_init__()")
    out = [f"def __init__(self{''.join(f', {t}' for t in takes)}) -> None:", *[f"    {p}" for p in puts or ["pass"]]]
    compared = [f.name for f in fields if f.compared]

    def values(of: str) -> str:
        return f"{of}.{compared[0]}" if len(compared) == 1 else f"({', '.join(f'{of}.{c}' for c in compared)})"

    if eq and "__eq__" not in own:
        out += ["def __eq__(self, other: object) -> bool:", f"    return isinstance(other, {name})" + "".join(f" and self.{c} == other.{c}" for c in compared)]
    if eq and hashed and "__hash__" not in own:
        out += ["def __hash__(self) -> int:", f"    return hash({values('self')})"]
    for word, sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")) if order else ():
        out += [f"def __{word}__(self, other: '{name}') -> bool:", f"    return {values('self')} {sign} {values('other')}"]
    return out if "__repr__" in own else [*out, "def __repr__(self) -> str:", "    return str(_native_shown(self))"]
