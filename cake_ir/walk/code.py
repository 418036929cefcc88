"""Role programs as Python generators: each yields the operations that one agent executes, with their operands evaluated.

The generated code comes from a typed program, never from the author's text: names were restricted to plain identifiers, and only
arithmetic, loops, branches and `yield` are printed. A generator yields events: the operation's number and behind it its values, as one
tuple. An operation whose result is a uniform scalar (`lm.ld`) receives it through `send`. A loop iteration that executes no operation
yields `(-1,)`, so that whoever drives the walk can bound it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.program import Assign, Do, Expr, For, Op, Program, Stmt, statements
from cake_ir.record import record
from cake_ir.types import FragT, ListT, PairT, ScalarT, ScalesT, SlotT, ViewT

Event = tuple[Any, ...]
"""The number of an operation, and behind it the values of its operands."""
Body = Generator[Event, Any, None]


@record(eq=False)
class OpCode:
    """How the values of an event relate to its operation.

    `index[name]` is the position of operand `name` in the event: an int or float for a scalar, the running count n for a slot
    (or a plain stage number), (n or stage, row, column) for a view, the first column for tensor memory (of scales there: with the first one's number), a tuple for coordinates (None
    where an entry is a fragment). `trees[name]` is a fragment operand's expression in which every uniform scalar below a fragment
    node is `Expr("dyn", attrs={"i": position})`; fragment coordinates appear as `coords.<k>`.
    """

    op: Op
    index: dict[str, int]
    trees: dict[str, Expr]


@dataclass(slots=True)
class Context:
    """What one agent knows: arguments and extents by name, its member index, its place in the cluster, and its tiles."""

    args: dict[str, Any]
    index: int = 0
    rank: tuple[int, int] = (0, 0)
    cluster: tuple[int, int] = (1, 1)
    cta: int = 0
    extents: dict[tuple[str, int], int] = field(default_factory=dict)
    tiles: Callable[[str], Iterable[tuple[int, ...]]] = lambda scheduler: ()


@record(eq=False)
class RoleCode:
    """The compiled programs of one schedule: a generator factory for each role that has a block."""

    program: Program
    roles: dict[str, Callable[[Context], Body]]
    ops: tuple[OpCode, ...]
    source: str


INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
         "ne": "!=", "and": "and", "or": "or", "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>"}  # fmt: skip
BINDING = {"or": 1, "and": 2, "lt": 4, "le": 4, "gt": 4, "ge": 4, "eq": 4, "ne": 4, "bitor": 5, "bitxor": 6, "bitand": 7, "shl": 8, "shr": 8,
           "add": 9, "sub": 9, "mul": 10, "div": 10, "floordiv": 10, "mod": 10, "neg": 11}  # fmt: skip
"""How tightly Python's operators bind: what binds less tightly than its place asks for needs parentheses, which take Python longer to read than what is in them."""
TIGHT = 12
"""How tightly a name, a number or a call holds together."""
_AS = {"cdiv": "neg", "slot_index": "mod", "at": "sub", "prev": "sub", "tmem_cols": "add", "fma": "add"}
"""Expressions that are written with operators, and the one of them that binds least."""


def _wrapped(v: Any) -> Any:
    """A number as 64 bits hold it: what a loop multiplies up would otherwise grow without end."""
    if isinstance(v, float) or -(1 << 63) <= v < 1 << 63:
        return v
    return ((v + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _quotient(a: float, b: float) -> float:
    """The quotient of IEEE 754, where dividing by zero gives an infinity or no number."""
    if b:
        return a / b
    return math.nan if not a or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


BOUNDED: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda a, b: _wrapped(a * b),
    "shl": lambda a, b: _wrapped(a << b) if 0 <= b < 64 else 0,
    "div": _quotient,
}
"""Operations that Python has with another range: they double the length of a number at once, or end where IEEE arithmetic goes on."""


def _real(f: Callable[[float], float], at_zero: float, beyond: float) -> Callable[[float], float]:
    """A function with the values of IEEE arithmetic: `at_zero` at zero, `beyond` where it overflows, no number outside its domain."""

    def value(x: float) -> float:
        try:
            return f(x)
        except ZeroDivisionError:
            return at_zero
        except OverflowError:
            return beyond
        except ValueError:
            return at_zero if x == 0 else math.nan

    return value


CALLS: dict[str, Callable[..., Any]] = {
    "exp2": _real(lambda x: 2.0**x, 1.0, math.inf), "exp2_fma": _real(lambda x: 2.0**x, 1.0, math.inf), "log2": _real(math.log2, -math.inf, math.inf),
    "exp": _real(math.exp, 1.0, math.inf), "log": _real(math.log, -math.inf, math.inf), "sqrt": _real(math.sqrt, 0.0, math.inf),
    "rsqrt": _real(lambda x: 1 / math.sqrt(x), math.inf, 0.0), "rcp": lambda x: _quotient(1.0, x), "abs": abs, "tanh": math.tanh,
}  # fmt: skip


def compile_roles(program: Program, loop: Callable[[int, int], Iterable[int]] = range) -> RoleCode:
    """Compile every role block of `program`; a few milliseconds, to be done once a program.

    `loop` is what `for` loops over: `range`, or an iterable of a reading that can move its loops forward.
    """
    return _Compiler(program, loop).run()


class _Compiler:
    def __init__(self, program: Program, loop: Callable[[int, int], Iterable[int]]) -> None:
        self.program = program
        self.loop = loop
        self.lines: list[str] = []
        self.mentioned: dict[str, str] = {}
        self.assigned: set[str] = set()
        self.ops: list[OpCode | None] = [None] * len(program.ops)
        self.fields = {d.name: {n: i for i, n in enumerate(d.fields)} for d in program.schedulers.values()}

    def run(self) -> RoleCode:
        names: dict[str, list[str]] = {}
        for i, block in enumerate(self.program.body):
            name = f"role_{i}"
            names.setdefault(block.role, []).append(name)
            self._function(name, block.body)
        source = "\n".join(self.lines)
        scope: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "__builtins__": {"range": self.loop, "min": min, "max": max, "int": int, "float": float, **BOUNDED},
                                 **{f"f_{k}": v for k, v in CALLS.items()}}  # fmt: skip
        exec(compile(source, f"<walk of {self.program.name}>", "exec"), scope)
        roles = {role: _chain([scope.pop(n) for n in ns]) for role, ns in names.items()}  # popped, lest functions and their globals hold each other
        return RoleCode(self.program, roles, tuple([c or OpCode(op, {}, {}) for c, op in zip(self.ops, self.program.ops, strict=True)]), source)

    def _function(self, name: str, body: tuple[Stmt, ...]) -> None:
        """Print one role block: what it mentions of arguments and rings is set up in front, since each line takes time to compile."""
        outer, self.lines, self.mentioned = self.lines, [], {}
        self.assigned = {t for s in statements(body) if isinstance(s, Assign) for t in s.targets}
        lets = [f"    v_{d.name} = {self.bare(d.value)}" for d in self.program.lets.values()]
        yields = self._body(body, 1)
        outer += [f"def {name}(c):", *self.mentioned.values(), *lets, *self.lines]
        if not yields:
            outer += ["    return", "    yield"]
        self.lines = outer

    def _body(self, body: tuple[Stmt, ...], depth: int) -> bool:
        """Print statements; whether every run through them yields at least once."""
        pad, put, yields = "    " * depth, self.lines.append, False
        for s in body:
            if isinstance(s, Do):
                put(f"{pad}yield {self._event(s.op)}")
                yields = True
            elif isinstance(s, Assign):
                yields |= self._assign(s, pad)
            elif isinstance(s, For):
                if s.kind == "tiles":
                    put(f"{pad}for v_{s.var} in c.tiles({s.scheduler!r}):")
                else:
                    assert s.lo is not None and s.hi is not None
                    put(f"{pad}for v_{s.var} in range({self.bare(s.lo)}, {self.bare(s.hi)}):")
                if not self._body(s.body, depth + 1):
                    put(f"{pad}    yield -1,")
            else:
                put(f"{pad}if {self.bare(s.cond)}:")
                a = self._body(s.then, depth + 1)
                if not s.then:
                    put(f"{pad}    pass")
                b = False
                if s.orelse:
                    put(f"{pad}else:")
                    b = self._body(s.orelse, depth + 1)
                yields |= a and b
        return yields

    def _assign(self, s: Assign, pad: str) -> bool:
        put = self.lines.append
        if isinstance(s.value, Op):
            event = self._event(s.value)
            if isinstance(s.value.type, ScalarT):
                put(f"{pad}v_{s.targets[0]} = yield {event}")
            else:
                put(f"{pad}yield {event}")
            return True
        t = s.value.type
        if isinstance(t, ViewT):
            put(f"{pad}v_{s.targets[0]} = {self.view(s.value)}")
        elif s.value.op == "step":
            n = self._mention(f"n_{s.value.attrs['ring']}", "0")
            put(f"{pad}v_{s.targets[0]} = {n}; {n} += 1")
        elif self._may_grow(s.value):
            put(f"{pad}v_{s.targets[0]} = ({self.bare(s.value)}) + {1 << 63} & {(1 << 64) - 1}")
            put(f"{pad}v_{s.targets[0]} -= {1 << 63}")
        else:
            put(f"{pad}v_{s.targets[0]} = {self.bare(s.value)}")
        return False

    def _may_grow(self, e: Expr) -> bool:
        """Whether a whole number is a product of one that the role works out: in a loop it would have as many digits as rounds, where registers wrap."""
        if not isinstance(e.type, ScalarT) or not e.args or not DTYPES[e.type.dtype].is_integer:
            return False
        return any([n.op == "mul" and any([a.op == "var" and str(a.attrs["name"]) in self.assigned for a in n.args]) for n in e.parts()])

    # ------------------------------------------------------------ operands

    def _event(self, op: Op) -> str:
        values = [str(op.id)]
        index: dict[str, int] = {}
        trees: dict[str, Expr] = {}
        for name, operand in op.operands.items():
            if operand is None:
                continue
            if isinstance(operand, tuple):
                parts = []
                for k, e in enumerate(operand):
                    if isinstance(e.type, FragT):
                        trees[f"{name}.{k}"] = self._tree(e, values)
                        parts.append("None")
                    else:
                        parts.append(self.bare(e))
                index[name] = len(values)
                values.append(f"({', '.join(parts)}{',' if len(parts) == 1 else ''})")
            elif isinstance(operand.type, ViewT):
                index[name] = len(values)
                values.append(self.view(operand))
            elif isinstance(operand.type, (FragT, PairT, ListT)) or (isinstance(operand.type, ScalesT) and isinstance(operand.type.source, FragT)):
                trees[name] = self._tree(operand, values)
            else:
                index[name] = len(values)
                values.append(self.bare(operand))
        self.ops[op.id] = OpCode(op, index, trees)
        return f"{', '.join(values)}{',' if len(values) == 1 else ''}"

    def _tree(self, e: Expr, values: list[str]) -> Expr:
        if isinstance(e.type, (ScalarT, SlotT)):
            if e.op == "const":
                return e
            values.append(self.bare(e))
            return Expr("dyn", (), {"i": len(values) - 1}, e.type, e.span)
        if not e.args:
            return e
        args = tuple([self._tree(a, values) for a in e.args])
        return e if all(map(is_, args, e.args)) else Expr(e.op, args, e.attrs, e.type, e.span)  # itself where nothing in it is uniform: its readers know its parts

    def view(self, e: Expr) -> str:
        while e.op == "T":
            e = e.args[0]
        if e.op == "var":
            return f"v_{e.attrs['name']}"
        stage, row, col = self._origin(e)
        return f"({stage}, {row}, {col})"

    def _origin(self, e: Expr) -> tuple[str, str, str]:
        if e.op == "view":
            return "0", "0", "0"
        if e.op == "var":
            v = f"v_{e.attrs['name']}"
            return f"{v}[0]", f"{v}[1]", f"{v}[2]"
        stage, row, col = self._origin(e.args[0])
        if e.op == "stage":
            return self.bare(e.args[1]), row, col
        if e.op == "rows":
            return stage, self._from(row, e.args[1]), col
        if e.op == "cols":
            return stage, row, self._from(col, e.args[1])
        return stage, row, col

    def _from(self, start: str, lo: Expr) -> str:
        """Where a part of a part begins."""
        return self.bare(lo) if start == "0" else f"({start}) + {self.scalar(lo)}"

    def scalar(self, e: Expr, binding: int = TIGHT) -> str:
        """The same where something binds as tightly as `binding` around it."""
        text = self.bare(e)
        if e.op == "var" or e.op == "const":
            return text
        own = TIGHT if _called(e) else BINDING.get(_AS.get(e.op, e.op), TIGHT)
        return f"({text})" if own < binding else text

    def bare(self, e: Expr) -> str:
        """A uniform scalar, slot or tensor-memory expression as Python where nothing binds around it."""
        op, args = e.op, e.args
        if op == "const":
            return repr(e.attrs["value"]) if not isinstance(e.attrs["value"], int) or e.attrs["value"] >= 0 else f"({e.attrs['value']})"  # type: ignore[operator]  # an int, by the test before
        if op == "param":
            return self._mention(f"p_{e.attrs['name']}", f"c.args[{e.attrs['name']!r}]")
        if op == "var":
            return f"v_{e.attrs['name']}"
        if op == "field":
            t = args[0].type
            return f"{self.scalar(args[0])}[{self.fields[t.scheduler][str(e.attrs['name'])]}]"  # type: ignore[union-attr]  # fields come from tiles
        if _called(e):
            return f"{op}({self.bare(args[0])}, {self.bare(args[1])})"
        if op in INFIX:
            own = BINDING[op]
            left = own if own != BINDING["lt"] else own + 1  # a comparison of comparisons is no chain
            return f"{self.scalar(args[0], left)} {INFIX[op]} {self.scalar(args[1], own + 1)}"
        if op == "neg":
            return f"-{self.scalar(args[0])}"
        if op == "not":
            return f"(not {self.scalar(args[0])})"
        if op in ("min", "max"):
            return f"{op}({self.bare(args[0])}, {self.bare(args[1])})"
        if op == "cdiv":
            return f"-(-{self.scalar(args[0])} // {self.scalar(args[1])})"
        if op == "select":
            c, a, b = (self.scalar(x, 1) for x in args)
            return f"({a} if {c} else {b})"
        if op == "role_index":
            return self._mention("index", "c.index")
        if op == "slot_index":
            return f"{self.scalar(args[0], BINDING['mod'])} % {self.program.rings[str(e.attrs['ring'])].stages}"
        if op == "step":
            n = self._mention(f"n_{e.attrs['ring']}", "0")
            return f"(({n} := {n} + 1) - 1)"
        if op == "at":
            return f"{self._mention('n_' + str(e.attrs['ring']), '0')} - 1"
        if op == "prev":
            return f"{self.scalar(args[0], BINDING['sub'])} - {e.attrs['back']}"
        if op == "extent":
            return f"c.extents[({e.attrs['tensor']!r}, {e.attrs['dim']})]"
        if op in ("cta_rank", "cluster_size", "cta_id"):
            return self._place(op, e)
        if op == "tmem":
            return "0"
        if op == "scales":
            return f"({self.bare(args[0])}, {self.bare(args[1])})"
        if op == "tmem_cols":
            return f"{self.scalar(args[0], BINDING['add'])} + {self.scalar(args[1])}"
        if op == "cast":
            return f"{'float' if e.type.dtype[0] in 'fbte' and e.type.dtype != 'bool' else 'int'}({self.bare(args[0])})"  # type: ignore[union-attr]  # a cast of a scalar
        if op in CALLS:
            return f"f_{op}({self.bare(args[0])})"
        if op == "fma":
            a, b, c = (self.scalar(x) for x in args)
            return f"{a} * {b} + {c}"
        raise KeyError(f"{op} is not a uniform scalar")

    def _mention(self, name: str, start: str) -> str:
        """A variable of the function that is set up where it begins."""
        self.mentioned[name] = f"    {name} = {start}"
        return name

    def _place(self, op: str, e: Expr) -> str:
        axis = e.attrs.get("axis")
        if op == "cta_id":
            return "c.cta"
        names = next((d.names for d in self.program.schedulers.values()), ("m", "n"))
        k = 1 if axis in ("y", 1) or (len(names) > 1 and axis == names[1]) else 0
        if op == "cta_rank":
            return f"c.rank[{k}]" if axis is not None else "(c.rank[0] + c.cluster[0] * c.rank[1])"
        return f"c.cluster[{k}]" if axis is not None else "(c.cluster[0] * c.cluster[1])"


def _called(e: Expr) -> bool:
    """Whether an operation of `BOUNDED` is called by name: a product with a constant does not double the length of a number."""
    return e.op in BOUNDED and (e.op != "mul" or e.args[0].op != "const" != e.args[1].op)


def _chain(parts: list[Callable[[Context], Body]]) -> Callable[[Context], Body]:
    if len(parts) == 1:
        return parts[0]

    def run(c: Context) -> Body:
        for part in parts:
            yield from part(c)

    return run
