"""From a program to its text: one statement a line, names as the author gave them, compile-time values folded.

The text parses back to an equal program (`canonical.equal`). Reads nested in an expression come out on lines of their own, since
that is where the program executes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.ops import SPECS, spec_of
from cake_ir.ops.elementwise import UNARY
from cake_ir.ops.spec import OPERAND_KINDS, OpSpec, P
from cake_ir.program import (
    Assign,
    Assume,
    AssumeValues,
    Barrier,
    ClusterBarrier,
    Do,
    Expr,
    For,
    Launch,
    Let,
    NamedBarrier,
    Op,
    Param,
    Pipeline,
    Program,
    Role,
    Scheduler,
    SmemPool,
    Stmt,
    Tmem,
    Turns,
    View,
    op_of,
)  # fmt: skip
from cake_ir.types import ViewT

RECEIVER = "lm"
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "and", "or": "or", "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
_NAMED = frozenset({"coords", "shape", "form", "axis", "stage", "base", "into", "pending", "rows", "offset", "box", "cta", "block", "k"})
"""Parameters that are always given by name; the required ones before them are given by place."""

_RESERVED = {RECEIVER, "LM", "cake", "min", "max", "sum", "len", "abs", "range"}


def print_program(program: Program) -> str:
    """The program as the text of one schedule."""
    return _Printer(program).text()


def print_expr(program: Program, e: Expr) -> str:
    """One expression as text, for messages."""
    return _Printer(program).expr(e)


class _Printer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []

    def text(self) -> str:
        p, put = self.program, self.lines.append
        put(f'@cake.schedule(target="{p.target}")' if p.target else "@cake.schedule()")
        put(f"def {p.name}({', '.join([RECEIVER, *(f'{q.name}: {self.annotation(q)}' for q in p.params)])}):")
        for d in p.decls:
            put(f"    {self.declaration(d)}")
        for block in p.body:
            put(f"    with {self.name(block.role)}:")
            self.body(block.body, 2)
        return "\n".join(self.lines) + "\n"

    def name(self, name: object) -> str:
        """A name of the program, moved aside where it would hide a word of the language."""
        return f"{name}_" if name in _RESERVED else str(name)

    # -------------------------------------------------------- declarations

    def annotation(self, p: Param) -> str:
        if p.kind == "scalar":
            return f"LM.{p.dtype}"
        items = ([f"LM.{p.dtype}"] if p.dtype else []) + [f'"{e}"' if isinstance(e, str) else str(e) for e in p.extents]
        marks = (".const" if p.const else "") + (".zeroed" if p.zeroed else "") + (".inout" if p.inout else "")
        return f"LM.{p.kind}{p.rank}d" + (f"[{', '.join(items)}]" if items else "") + marks

    def declaration(self, d: Any) -> str:
        given = list(_ARGUMENTS[type(d)](self, d))
        alone = isinstance(d, Assume | SmemPool | NamedBarrier | Turns) and len(given) == 1
        args = given[0][1] if alone else ", ".join(f"{k}={v}" for k, v in given)
        if isinstance(d, Let):
            return f"{self.name(d.name)} = {self.expr(d.value)}"
        call = {
            Launch: "lm.launch", Assume: "lm.assume", AssumeValues: "lm.assume_values", SmemPool: "lm.smem", Tmem: "lm.tmem", Role: "lm.role",
            Pipeline: "lm.pipeline", Barrier: "lm.barrier", NamedBarrier: "lm.named_barrier", Turns: "lm.turns",
            ClusterBarrier: "lm.cluster_barrier", Scheduler: "lm.scheduler",
        }.get(type(d))  # fmt: skip
        call = f"{self.name(d.pool)}.view" if isinstance(d, View) else call
        bound = "" if isinstance(d, Launch | Assume | AssumeValues) else f"{self.name(d.name)} = "
        return f"{bound}{call}({args})"

    # -------------------------------------------------------- statements

    def body(self, body: tuple[Stmt, ...], depth: int) -> None:
        pad, put = "    " * depth, self.lines.append
        if not body:
            put(f"{pad}pass")
        position = 0
        while position < len(body):
            group = _group(body[position])
            end = max((i + 1 for i in range(position, len(body)) if group is not None and _group(body[i]) == group), default=position + 1)
            if group is not None:
                put(f"{pad}with lm.mma_group():")
            self.statements(body[position:end], depth + (group is not None))
            position = end

    def statements(self, body: tuple[Stmt, ...], depth: int) -> None:
        pad, put = "    " * depth, self.lines.append
        for s in body:
            if isinstance(s, Do):
                put(f"{pad}{self.op(s.op)}")
            elif isinstance(s, Assign):
                value = self.op(s.value) if isinstance(s.value, Op) else self.expr(s.value)
                put(f"{pad}{', '.join(self.name(t) for t in s.targets)} = {value}")
            elif isinstance(s, For):
                put(f"{pad}for {self.name(s.var)} in {self.iterable(s)}:")
                self.body(s.body, depth + 1)
            else:
                put(f"{pad}if {self.expr(s.cond)}:")
                self.body(s.then, depth + 1)
                if s.orelse:
                    put(f"{pad}else:")
                    self.body(s.orelse, depth + 1)

    def iterable(self, s: For) -> str:
        if s.kind == "tiles":
            return f"lm.tiles({self.name(s.scheduler)})"
        assert s.lo is not None and s.hi is not None
        first = "" if s.lo.op == "const" and s.lo.attrs["value"] == 0 else f"{self.expr(s.lo)}, "
        return f"lm.{'static_range' if s.kind == 'static' else 'range'}({first}{self.expr(s.hi)})"

    def op(self, op: Op) -> str:
        if op.name == "compute":
            value = op.operands["value"]
            assert isinstance(value, Expr)
            return self.expr(value)
        return self.call(spec_of(op), op.operands, op.attrs)

    def call(self, spec: OpSpec, operands: dict[str, Any], attrs: dict[str, Any]) -> str:
        params = list(spec.params)
        receiver = RECEIVER
        if spec.on == "view":
            receiver = self.expr(operands[params.pop(0).name])
        args, leading = [], True
        for p in params:
            text = self.argument(p, operands, attrs)
            leading = leading and text is not None and p.required and p.name not in _NAMED
            if text is not None:
                args.append(text if leading else f"{p.name}={text}")
        name = "reduce" if spec.name == "reduce_across" else spec.name
        return f"{receiver}.{name}({', '.join(args)})"

    def argument(self, p: P, operands: dict[str, Any], attrs: dict[str, Any]) -> str | None:
        """The text of one argument, None where it has its default."""
        if p.name in operands or set(p.kinds) <= OPERAND_KINDS:
            e = operands.get(p.name)
            if e is None:
                return None
            if isinstance(e, tuple):
                return f"({', '.join(self.expr(x) for x in e)}{',' if len(e) == 1 else ''})"
            if not p.required and e.op == "const" and e.attrs["value"] == p.default and type(e.attrs["value"]) is type(p.default):
                return None
            return self.expr(e)
        value = attrs.get(p.name)
        if not p.required and value == p.default and type(value) is type(p.default):
            return None
        return self.option(p, value)

    def option(self, p: P, value: Any) -> str:
        if isinstance(value, str):
            if "dtype" in p.kinds and value in DTYPES:
                return f"lm.{value}"
            return f'"{value}"' if "str" in p.kinds else self.name(value)
        return literal(value)

    # -------------------------------------------------------- expressions

    def expr(self, e: Expr) -> str:
        op, args, attrs = e.op, e.args, e.attrs
        if op == "const":
            return literal(attrs["value"])
        if op in ("param", "var"):
            return self.name(attrs["name"])
        if op in _INFIX and len(args) == 2 and not attrs.get("exact"):
            return f"({self.expr(args[0])} {_INFIX[op]} {self.expr(args[1])})"
        if op in _ATOMS:
            return _ATOMS[op](self, e)
        if op in ("rows", "cols"):
            base = args[0]
            assert isinstance(base.type, ViewT)
            shown = op if not base.type.transposed else {"rows": "cols", "cols": "rows"}[op]
            return f"{self.expr(base)}.{shown}({self.expr(args[1])}, {attrs['n']})"
        if op in ("frag_rows", "frag_cols", "tmem_cols"):
            return f"{self.expr(args[0])}.{op.rpartition('_')[2]}({self.expr(args[1])}, {attrs['n']})"
        if op in ("cta_rank", "cluster_size", "cta_id"):
            axis = attrs.get("axis")
            return f"lm.{op}({'' if axis is None else literal(axis)})"
        if op in UNARY or op in ("min", "max", "where", "fma", "cdiv", "div", "select"):
            return f"lm.{'where' if op == 'select' else op}({', '.join(self.expr(a) for a in args)})"
        spec = SPECS[("lm", op)]
        return self.call(spec, dict(zip(attrs["operands"], args, strict=True)), attrs)  # type: ignore[arg-type]  # names, by construction


def _group(s: Stmt) -> int | None:
    """The group of the MMA that a statement is, if it was written in an `lm.mma_group` block; such blocks hold no loops or branches."""
    op = op_of(s)
    group = op.attrs.get("group") if op is not None and op.name == "mma" else None
    return group if isinstance(group, int) else None


def literal(value: Any) -> str:
    """A compile-time value as the language writes it."""
    if isinstance(value, float) and math.isinf(value):
        return "lm.inf" if value > 0 else "-lm.inf"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"({', '.join(literal(v) for v in value)}{',' if len(value) == 1 else ''})"
    return repr(value)


_ATOMS: dict[str, Callable[[_Printer, Expr], str]] = {
    "neg": lambda p, e: f"(-{p.expr(e.args[0])})",
    "not": lambda p, e: f"(not {p.expr(e.args[0])})",
    "field": lambda p, e: f"{p.expr(e.args[0])}.{e.attrs['name']}",
    "role_index": lambda p, e: f"{p.name(e.attrs['role'])}.index",
    "slot_index": lambda p, e: f"{p.expr(e.args[0])}.index",
    "extent": lambda p, e: f"{e.attrs['tensor']}.extent({e.attrs['dim']})",
    "step": lambda p, e: f"lm.step({p.name(e.attrs['ring'])})",
    "at": lambda p, e: f"lm.at({p.name(e.attrs['ring'])})",
    "prev": lambda p, e: f"{p.expr(e.args[0])}.prev({e.attrs['back']})",
    "view": lambda p, e: p.name(e.attrs["view"]),
    "tmem": lambda p, e: p.name(e.attrs["tmem"]),
    "stage": lambda p, e: f"{p.expr(e.args[0])}[{p.expr(e.args[1])}]",
    "frag_stage": lambda p, e: f"{p.expr(e.args[0])}[{p.expr(e.args[1])}]",
    "T": lambda p, e: f"{p.expr(e.args[0])}.T",
    "pair": lambda p, e: f"({p.expr(e.args[0])}, {p.expr(e.args[1])})",
    "item": lambda p, e: f"{p.expr(e.args[0])}[{e.attrs['k']}]",
    "list_item": lambda p, e: f"{p.expr(e.args[0])}[{p.expr(e.args[1])}]",
    "worst": lambda p, e: f"{p.expr(e.args[0])}.worst",
}  # fmt: skip

Arguments = Iterator[tuple[str, str]]


def _names(p: _Printer, names: tuple[str, ...]) -> str:
    return f"[{', '.join(p.name(n) for n in names)}]"


def _launch(p: _Printer, d: Launch) -> Arguments:
    yield "grid", f'"{d.grid}"'
    if d.cluster != (1, 1):
        yield "cluster", literal(d.cluster)
    if d.ctas_per_sm != 1:
        yield "ctas_per_sm", str(d.ctas_per_sm)


def _assume_values(p: _Printer, d: AssumeValues) -> Arguments:
    yield from (("tensor", d.tensor), ("lo", p.expr(d.lo)), ("hi", p.expr(d.hi)))
    if d.sorted:
        yield "sorted", "True"


def _view(p: _Printer, d: View) -> Arguments:
    yield from (("offset", str(d.offset)), ("shape", literal(d.shape)), ("dtype", f"lm.{d.dtype}"))
    if d.stages != 1:
        yield "stage", str(d.stages)
    if d.swizzle:
        yield "swizzle", f'"{d.swizzle}"'
    if d.stage_bytes is not None:
        yield "stage_bytes", str(d.stage_bytes)


def _role(p: _Printer, d: Role) -> Arguments:
    yield "warps", f"range({d.warp_lo}, {d.warp_hi})"
    if d.regs is not None:
        yield "regs", str(d.regs)
    if d.members != 1:
        yield "members", str(d.members)


def _barrier(p: _Printer, d: Barrier) -> Arguments:
    yield from (("pipeline", p.name(d.pipeline)), ("prod", _names(p, d.prod)), ("cons", _names(p, d.cons)), ("arrive", f'"{d.arrive}"'))
    if d.primed:
        yield "primed", "True"
    if d.scope != "cta":
        yield "scope", f'"{d.scope}"'
    for key in ("count", "init_count"):
        if getattr(d, key) is not None:
            yield key, str(getattr(d, key))


def _named(p: _Printer, d: NamedBarrier) -> Arguments:
    yield "roles", _names(p, d.roles)
    if d.per_member:
        yield "per_member", "True"


def _scheduler(p: _Printer, d: Scheduler) -> Arguments:
    yield "kind", f'"{d.kind}"'
    yield "tiles", f"({', '.join(p.expr(e) for e in d.tiles)}{',' if len(d.tiles) == 1 else ''})"
    yield "names", literal(d.names)
    if d.raster:
        yield "raster", f'"{d.raster}"'
    if d.swizzle != 1:
        yield "swizzle", str(d.swizzle)
    if d.deal:
        yield "deal", f'"{d.deal}"'
    yield "cluster", literal(d.cluster)
    for key in ("offsets", "counter", "fetch", "block"):
        if getattr(d, key) is not None:
            yield key, p.name(getattr(d, key))


_ARGUMENTS: dict[type, Callable[[_Printer, Any], Arguments]] = {
    Launch: _launch, AssumeValues: _assume_values, View: _view, Role: _role, Barrier: _barrier, NamedBarrier: _named, Scheduler: _scheduler,
    Assume: lambda p, d: iter((("cond", p.expr(d.cond)),)),
    SmemPool: lambda p, d: iter((("nbytes", str(d.nbytes)),)),
    Tmem: lambda p, d: iter((("cols", str(d.col)), ("width", str(d.width)), ("shape", literal(d.shape)), ("dtype", f"lm.{d.dtype}"))),
    Pipeline: lambda p, d: iter((("stages", str(d.stages)),)),
    Turns: lambda p, d: iter((("role", p.name(d.role)),)),
    ClusterBarrier: lambda p, d: iter(()),
    Let: lambda p, d: iter(()),
}  # fmt: skip
