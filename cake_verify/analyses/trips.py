"""Trip counts as expressions: names resolved to what they stand for, canonical text to compare, and values for given arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cake_ir.derive.structure import sites
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, statements
from cake_ir.types import I32

Env = dict[str, Any]


class NotKnown(Exception):
    """An expression that needs something the environment does not give."""


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """One loop of a role with its bounds resolved: parameters, tile fields, memory reads and outer loop variables only."""

    role: str
    stmt: For
    lo: Expr
    hi: Expr

    @property
    def constant(self) -> bool:
        return self.lo.op == "const" and self.hi.op == "const"


def resolver(program: Program, role: str) -> Callable[[Expr], Expr]:
    """A function that replaces the role's scalar names by their definitions. Names assigned twice stay as they are."""
    values: dict[str, Expr] = {d.name: d.value for d in program.lets.values()}
    twice: set[str] = set()
    for block in program.body:
        if block.role != role:
            continue
        for s in statements(block.body):
            if not isinstance(s, Assign):
                continue
            for name in s.targets:
                if name in values and name not in program.lets:
                    twice.add(name)
            if isinstance(s.value, Op):
                if s.value.name == "ld" and "tensor" in s.value.attrs:
                    values[s.targets[0]] = Expr("ld", (s.value.operands["i"],), {"tensor": s.value.attrs["tensor"], "op": s.value.id}, I32, s.value.span)  # type: ignore[arg-type]
            elif len(s.targets) == 1:
                values[s.targets[0]] = s.value
    for name in twice:
        values.pop(name, None)

    def resolve(e: Expr, depth: int = 0) -> Expr:
        if e.op == "var" and depth < 40:
            found = values.get(str(e.attrs["name"]))
            return e if found is None else resolve(found, depth + 1)
        if not e.args:
            return e
        return Expr(e.op, tuple(resolve(a, depth) for a in e.args), e.attrs, e.type, e.span)

    return resolve


@lru_cache(maxsize=64)
def loops(program: Program) -> tuple[Loop, ...]:
    """Every counted loop of every role, in text order, bounds resolved."""
    out = []
    for block in program.body:
        resolve = resolver(program, block.role)
        for s in statements(block.body):
            if isinstance(s, For) and s.kind != "tiles" and s.lo is not None and s.hi is not None:
                out.append(Loop(block.role, s, resolve(s.lo), resolve(s.hi)))
    return tuple(out)


@lru_cache(maxsize=64)
def conditions(program: Program) -> tuple[tuple[str, If, Expr], ...]:
    """Every branch with its condition resolved, by role."""
    out = []
    for block in program.body:
        resolve = resolver(program, block.role)
        out += [(block.role, s, resolve(s.cond)) for s in statements(block.body) if isinstance(s, If)]
    return tuple(out)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b, "min": min, "max": max, "cdiv": lambda a, b: -(-a // b), "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b, "bitxor": lambda a, b: a ^ b, "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b,
}  # fmt: skip


def evaluate(e: Expr, env: Env, program: Program) -> Any:
    """The value of a resolved scalar expression. `env` gives parameters by name, `tile` the tile fields by name, `ld` a function of
    (tensor, index); loop variables count as 0 unless given. Raises `NotKnown`."""
    op, args = e.op, e.args
    if op == "const":
        return e.attrs["value"]
    if op == "param":
        return env[str(e.attrs["name"])]
    if op in _BINARY:
        return _BINARY[op](evaluate(args[0], env, program), evaluate(args[1], env, program))
    if op == "and":
        return evaluate(args[0], env, program) and evaluate(args[1], env, program)
    if op == "or":
        return evaluate(args[0], env, program) or evaluate(args[1], env, program)
    if op == "not":
        return not evaluate(args[0], env, program)
    if op == "neg":
        return -evaluate(args[0], env, program)
    if op == "select":
        return evaluate(args[1] if evaluate(args[0], env, program) else args[2], env, program)
    if op == "field":
        return env["tile"].get(str(e.attrs["name"]), 0)
    if op == "ld":
        return env["ld"](str(e.attrs["tensor"]), evaluate(args[0], env, program))
    if op == "role_index":
        return env.get("index", 0)
    if op == "var":
        return env.get("#" + str(e.attrs["name"]), 0)
    if op == "extent":
        return extent(program, str(e.attrs["tensor"]), int(e.attrs["dim"]), env)  # type: ignore[arg-type]  # dimensions are integers
    if op == "cast":
        value = evaluate(args[0], env, program)
        return float(value) if getattr(e.type, "dtype", "i32")[0] in "fbt" else int(value)
    if op in ("cta_rank", "cta_id"):
        return 0
    if op == "cluster_size":
        return program.launch.cluster[0] * program.launch.cluster[1]
    if op in ("exp2", "sqrt", "abs", "rcp", "log2"):
        x = evaluate(args[0], env, program)
        return {"exp2": lambda: 2.0**x, "sqrt": lambda: math.sqrt(x), "abs": lambda: abs(x), "rcp": lambda: 1 / x, "log2": lambda: math.log2(x)}[op]()
    raise NotKnown(op)


def extent(program: Program, tensor: str, dim: int, env: Env) -> int:
    """A declared extent's value; 1 where it is not declared."""
    declared = program.tensors[tensor].extents
    if dim >= len(declared):
        return 1
    e = declared[dim]
    return e if isinstance(e, int) else int(env.get(e, 1))


def nodes(e: Expr) -> Iterator[Expr]:
    """The expression and all below it."""
    return e.walk()


def canonical(e: Expr) -> str:
    """Text that is equal for expressions that are the same up to the order of sums and the spelling of rounding up."""
    op, args = e.op, e.args
    if op == "const":
        return repr(e.attrs["value"])
    if op in ("param", "var"):
        return str(e.attrs["name"]) if op == "param" else f"?{e.attrs['name']}"
    if op == "field":
        return f"tile.{e.attrs['name']}"
    if op == "ld":
        return f"{e.attrs['tensor']}[{canonical(args[0])}]"
    if op in ("add", "sub"):
        constant, terms = _terms(e, 1)
        parts = sorted(f"{n}*{t}" if n != 1 else t for t, n in terms.items() if n)
        return "(" + "+".join([*parts, str(constant)] if constant or not parts else parts) + ")"
    if op == "cdiv":
        a, b = canonical(args[0]), canonical(args[1])
        return f"ceil({a}/{b})"
    if op == "floordiv" and args[1].op == "const" and isinstance(args[1].attrs["value"], int):
        c = int(args[1].attrs["value"])
        constant, terms = _terms(args[0], 1)
        if constant == c - 1:
            return f"ceil({_sum(terms, 0)}/{c})"
    if op in ("min", "max", "mul"):
        return f"{op}({','.join(sorted(canonical(a) for a in args))})"
    extra = "" if not e.attrs else str(sorted((k, str(v)) for k, v in e.attrs.items()))
    return f"{op}{extra}({','.join(canonical(a) for a in args)})"


def _sum(terms: dict[str, int], constant: int) -> str:
    live = {t: n for t, n in terms.items() if n}
    if not constant and len(live) == 1 and next(iter(live.values())) == 1:
        return next(iter(live))
    parts = sorted(f"{n}*{t}" if n != 1 else t for t, n in live.items())
    return "(" + "+".join([*parts, str(constant)] if constant or not parts else parts) + ")"


def _terms(e: Expr, sign: int) -> tuple[int, dict[str, int]]:
    """A sum as a constant and multiples of canonical terms."""
    if e.op == "const" and isinstance(e.attrs["value"], int):
        return sign * int(e.attrs["value"]), {}
    if e.op in ("add", "sub"):
        c, terms = _terms(e.args[0], sign)
        d, more = _terms(e.args[1], sign if e.op == "add" else -sign)
        for t, n in more.items():
            terms[t] = terms.get(t, 0) + n
        return c + d, terms
    if e.op == "neg":
        return _terms(e.args[0], -sign)
    return 0, {canonical(e): sign}


def spoken(e: Expr) -> str:
    """An expression as its author would write it, for messages."""
    op, args = e.op, e.args
    infix = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    if op == "const":
        return str(e.attrs["value"])
    if op in ("param", "var"):
        return str(e.attrs["name"])
    if op == "field":
        return f"{spoken(args[0])}.{e.attrs['name']}"
    if op == "ld":
        return f"lm.ld({e.attrs['tensor']}, {spoken(args[0])})"
    if op in infix:
        return f"({spoken(args[0])} {infix[op]} {spoken(args[1])})"
    if op in ("cdiv", "min", "max"):
        return f"lm.{op}({', '.join(spoken(a) for a in args)})"
    return f"{op}({', '.join(spoken(a) for a in args)})"


def prefix_tensors(program: Program) -> frozenset[str]:
    """Tensors of running offsets: somewhere both element i and element i + 1 are read."""
    seen: dict[str, set[str]] = {}
    for site in sites(program):
        if site.op.name == "ld" and "tensor" in site.op.attrs:
            i = site.op.operands["i"]
            assert isinstance(i, Expr)
            seen.setdefault(str(site.op.attrs["tensor"]), set()).add(canonical(resolver_of(program, site.role)(i)))
    out = set()
    for tensor, texts in seen.items():
        for t in texts:
            if f"({t}+1)" in texts or (t.startswith("(") and any(_plus_one(t) == u for u in texts)):
                out.add(tensor)
    return frozenset(out)


def _plus_one(text: str) -> str:
    inner = text[1:-1].split("+")
    if inner[-1].lstrip("-").isdigit():
        n = int(inner[-1]) + 1
        return "(" + "+".join([*inner[:-1], str(n)] if n else inner[:-1]) + ")"
    return f"({text[1:-1]}+1)"


@lru_cache(maxsize=256)
def resolver_of(program: Program, role: str) -> Callable[[Expr], Expr]:
    """`resolver`, kept for each role."""
    return resolver(program, role)


def body_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements inside a loop or both arms of a branch."""
    return stmt.body if isinstance(stmt, For) else (*stmt.then, *stmt.orelse) if isinstance(stmt, If) else ()
