"""A program as JSON and back: every record by its class name, spans included, so that nothing is lost on the way.

Names of classes and fields are the schema; `SCHEMA` counts its versions. Tuples become lists and come back as tuples; infinities and
NaN, which JSON lacks, become `{"float": ".."}`. A reader of JSON from outside catches `ProgramFormatError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from cake_ir import program as ir
from cake_ir import types
from cake_ir.program import Op, Program
from cake_ir.span import Span

SCHEMA = 1

_RECORDS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        ir.Assign, ir.Do, ir.For, ir.If, ir.RoleBlock, ir.Param, ir.Launch, ir.Assume, ir.AssumeValues, ir.SmemPool, ir.View, ir.Tmem, ir.Role,
        ir.Pipeline, ir.Barrier, ir.NamedBarrier, ir.Turns, ir.ClusterBarrier, ir.Scheduler, ir.Let, ir.Expr, ir.Op,
        types.NoneT, types.ScalarT, types.SlotT, types.TileT, types.ViewT, types.TmemT, types.FragT, types.PairT, types.ListT, types.ScalesT,
    )
}  # fmt: skip
_FIELDS: dict[type, tuple[str, ...]] = {cls: tuple(f.name for f in fields(cls) if f.init) for cls in _RECORDS.values()}
_PROGRAM = tuple(f.name for f in fields(Program) if f.init)


class ProgramFormatError(ValueError):
    """JSON that is not a program of this schema; the message says where."""


def to_json(program: Program) -> dict[str, Any]:
    """The program as plain dictionaries, lists, strings and numbers."""
    out: dict[str, Any] = {"schema": SCHEMA}
    for name in _PROGRAM:
        if name != "ops":  # they stand in the body; their ids put them in order again
            out[name] = _encode(getattr(program, name))
    return out


def from_json(data: Any) -> Program:
    """The program that `to_json` wrote. Raises `ProgramFormatError` for anything else."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ProgramFormatError(f"not a program of schema {SCHEMA}")
    reader = _Reader()
    try:
        values = {name: reader.decode(data[name], name) for name in _PROGRAM if name != "ops"}
        ops = tuple(sorted(reader.ops, key=lambda op: op.id))
        program = Program(**values, ops=ops)
    except (KeyError, TypeError, AttributeError) as error:
        raise ProgramFormatError(f"a record is incomplete: {error}") from error
    if [op.id for op in program.ops] != list(range(len(program.ops))):
        raise ProgramFormatError("operation ids do not count from 0 without gaps")
    return program


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else {"float": repr(value)}
    if isinstance(value, tuple):
        return [_encode(v) for v in value]
    if isinstance(value, Span):
        return {"is": "Span", "at": [value.line, value.column, value.end_line, value.end_column]}
    if isinstance(value, dict):
        return {"map": {k: _encode(v) for k, v in value.items()}}
    names = _FIELDS[type(value)]
    return {"is": type(value).__name__, **{name: _encode(getattr(value, name)) for name in names}}


class _Reader:
    def __init__(self) -> None:
        self.ops: list[Op] = []

    def decode(self, data: Any, where: str) -> Any:
        if data is None or isinstance(data, bool | int | float | str):
            return data
        if isinstance(data, list):
            return tuple(self.decode(v, where) for v in data)
        if not isinstance(data, dict):
            raise ProgramFormatError(f"`{where}` holds a {type(data).__name__}")
        if "float" in data:
            return _float(data["float"], where)
        if "map" in data:
            return {str(k): self.decode(v, k) for k, v in data["map"].items()}
        kind = data.get("is")
        if kind == "Span":
            return Span(*(_int(v, where) for v in data["at"]))
        cls = _RECORDS.get(str(kind))
        if cls is None:
            raise ProgramFormatError(f"`{where}` holds a record of unknown kind")
        build: Callable[..., Any] = cls
        record = build(**{name: self.decode(data[name], name) for name in _FIELDS[cls]})
        if isinstance(record, Op):
            self.ops.append(record)
        return record


def _float(text: Any, where: str) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise ProgramFormatError(f"`{where}` holds a number that is none")
    return float(text)


def _int(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProgramFormatError(f"`{where}` has a span that is not four integers")
    return value
