"""Small arithmetic over launch arguments, kept as text in a manifest and evaluated without `eval`.

Grammar (Python's syntax): integer and float literals, names, `extent(T, d)` and `stride(T, d)` of a tensor T, `+ - * / // %`,
unary `-`, comparisons (chained too), `and`, `or`, `not`, `a if c else b`, and the functions `cdiv`, `min`, `max`, `abs`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

Number = int | float | bool

MAX_LENGTH = 2000
MAX_NODES = 400
MAX_BITS = 96  # an intermediate product of three 32-bit extents still fits; nothing a launch needs is larger


class ExpressionError(ValueError):
    """The text is not in the grammar, names something unknown, or has no value (division by zero, overflow)."""


class Extents(Protocol):
    """What `extent` and `stride` need to know of a tensor (both in elements, outermost first)."""

    @property
    def shape(self) -> Sequence[int]: ...

    @property
    def strides(self) -> Sequence[int]: ...


def cdiv(a: int, b: int) -> int:
    """The quotient rounded up."""
    return -(-a // b)


def _magnitude(a: Number) -> Number:
    return abs(a)


_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Number], int, int]] = {
    "cdiv": (cdiv, 2, 2),
    "min": (min, 2, 8),
    "max": (max, 2, 8),
    "abs": (_magnitude, 1, 1),
}


def parse_expression(text: str) -> ast.expr:
    """The tree of an expression; raises ExpressionError for text outside the grammar, without looking at values."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expression of {len(text)} characters, at most {MAX_LENGTH} expected")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"`{text[:80]}` is not an expression: {error}") from None
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise ExpressionError(f"expression of more than {MAX_NODES} parts")
    for node in nodes:
        if not _in_grammar(node):
            shown = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise ExpressionError(f"`{shown[:80]}` in `{text[:80]}` is outside the grammar")
    return tree


def _in_grammar(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=bool() | int() | float()) | ast.Name() | ast.Load():
            return True
        case ast.BinOp() | ast.BoolOp() | ast.And() | ast.Or() | ast.UnaryOp() | ast.USub() | ast.Not() | ast.Compare() | ast.IfExp():
            return True
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name in ("extent", "stride"):
                return len(args) == 2 and isinstance(args[0], ast.Name)
            least, most = _FUNCTIONS[name][1:] if name in _FUNCTIONS else (1, 0)
            return least <= len(args) <= most
    return type(node) in _BINARY or type(node) in _COMPARE


def evaluate(
    text: str | int | float, names: Mapping[str, Number], tensors: Mapping[str, Extents] | None = None
) -> Number:
    """The value of an expression (or of a literal, which is returned as it is)."""
    if isinstance(text, int | float):
        return text
    tree = parse_expression(text)
    try:
        return _value(tree, names, tensors or {})
    except ExpressionError as error:
        raise ExpressionError(f"{error} in `{text}`") from None
    except ZeroDivisionError:
        raise ExpressionError(f"division by zero in `{text}`") from None
    except (RecursionError, OverflowError) as error:
        raise ExpressionError(f"{type(error).__name__} in `{text[:80]}`") from None


def evaluate_int(text: str | int, names: Mapping[str, Number], tensors: Mapping[str, Extents] | None = None) -> int:
    """Like `evaluate`, for a value that must be an integer."""
    value = evaluate(text, names, tensors)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExpressionError(f"expected an integer, found {value!r} in `{text}`")
    return value


def names_in(text: str | int | float) -> set[str]:
    """The scalar names that an expression reads (tensors inside `extent` and `stride` left out)."""
    if isinstance(text, int | float):
        return set()
    found: set[str] = set()
    work: list[ast.AST] = [parse_expression(text)]
    while work:
        node = work.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            work += node.args[1:] if node.func.id in ("extent", "stride") else node.args
        else:
            work += ast.iter_child_nodes(node)
    return found


def _value(node: ast.expr, names: Mapping[str, Number], tensors: Mapping[str, Extents]) -> Number:
    def value(child: ast.expr) -> Number:
        return _value(child, names, tensors)

    match node:
        case ast.Constant(value=bool() | int() | float() as literal):
            return _bounded(literal)
        case ast.Name(id=name):
            if name not in names:
                raise ExpressionError(f"unknown name `{name}`")
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(_BINARY[type(op)](value(left), value(right)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value(operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not value(operand)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(value(p) for p in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(value(p) for p in parts)
        case ast.Compare(left=left, ops=ops, comparators=rights) if all(type(op) in _COMPARE for op in ops):
            a = value(left)
            for op, right in zip(ops, rights, strict=True):
                b = value(right)
                if not _COMPARE[type(op)](a, b):
                    return False
                a = b
            return True
        case ast.IfExp(test=test, body=body, orelse=other):
            return value(body) if value(test) else value(other)
        case ast.Call(func=ast.Name(id=("extent" | "stride") as what), args=[ast.Name(id=tensor), dim], keywords=[]):
            return _of_tensor(what, tensor, value(dim), tensors)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _bounded(_FUNCTIONS[name][0](*(value(a) for a in args)))
    raise ExpressionError(f"`{ast.unparse(node)[:80]}` is outside the grammar")


def _of_tensor(what: str, tensor: str, dim: Number, tensors: Mapping[str, Extents]) -> int:
    if tensor not in tensors:
        raise ExpressionError(f"unknown tensor `{tensor}`")
    values = tensors[tensor].shape if what == "extent" else tensors[tensor].strides
    if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < len(values):
        raise ExpressionError(f"`{tensor}` has dimensions 0 to {len(values) - 1}, found {dim!r}")
    return values[dim]


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ExpressionError("a value of more than 96 bits")
    return value
