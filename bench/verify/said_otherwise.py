"""Rewrites of a schedule that keep its meaning: a verdict that depends on the spelling is wrong.

    python -m bench.verify.said_otherwise

rewrites every schedule of the corpus in every way and prints what does not pass any more.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable

from bench.verify.cases import CASES
from bench.verify.cases.case import Case
from cake_verify import Verdict, verify_text
from cake_verify.proposals.placed import called

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}
_DENIED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


class _Turned(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        return ast.Compare(node.comparators[0], [_TURNED[type(node.ops[0])]()], [node.left]) if len(node.ops) == 1 and type(node.ops[0]) in _TURNED else node


class _Denied(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1 or type(node.ops[0]) not in _DENIED:
            return node
        return ast.UnaryOp(ast.Not(), ast.Compare(node.left, [_DENIED[type(node.ops[0])]()], node.comparators))


class _Commuted(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return ast.BinOp(node.right, node.op, node.left) if isinstance(node.op, ast.Mult) else node


class _Rounded(ast.NodeTransformer):
    """`lm.cdiv(a, b)` as a sum and a division."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if called(node) != "cdiv" or len(node.args) != 2:
            return node
        a, b = node.args
        return ast.BinOp(ast.BinOp(ast.BinOp(a, ast.Add(), b), ast.Sub(), ast.Constant(1)), ast.FloorDiv(), b)


class _Bits(ast.NodeTransformer):
    """Quotients and remainders by powers of two, and what a tile's fields are multiplied by, as shifts and masks."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        n = node.right.value if isinstance(node.right, ast.Constant) else None
        if not isinstance(n, int) or n < 2 or n & (n - 1):
            return node
        if isinstance(node.op, ast.Mod):
            return ast.BinOp(node.left, ast.BitAnd(), ast.Constant(n - 1))
        fields = isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Attribute)
        shift = ast.RShift() if isinstance(node.op, ast.FloorDiv) else ast.LShift() if fields else None
        return node if shift is None else ast.BinOp(node.left, shift, ast.Constant(n.bit_length() - 1))


class _Summed(ast.NodeTransformer):
    """`lm.sum(x, axis=1)` as `lm.reduce(x, "add", axis=1)`, and the other way round."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        adds = len(node.args) == 2 and isinstance(node.args[1], ast.Constant) and node.args[1].value == "add" and [(k.arg, getattr(k.value, "value", None)) for k in node.keywords] in ([("axis", 0)], [("axis", 1)])
        if called(node) == "sum" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            return ast.Call(ast.Attribute(node.func.value, "reduce", ast.Load()), [*node.args, ast.Constant("add")], node.keywords)
        return ast.Call(ast.Attribute(node.func.value, "sum", ast.Load()), node.args[:1], node.keywords) if called(node) == "reduce" and adds and isinstance(node.func, ast.Attribute) else node


class _Shifted(ast.NodeTransformer):
    """Loops from 1 on, whose old variable is one less."""

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call) and called(node.iter) == "range" and len(node.iter.args) == 1 and isinstance(node.target, ast.Name):
            old = node.target.id
            node.target = ast.Name(f"{old}_from_one", ast.Store())
            node.iter.args = [ast.Constant(1), ast.BinOp(node.iter.args[0], ast.Add(), ast.Constant(1))]
            node.body.insert(0, ast.Assign([ast.Name(old, ast.Store())], ast.BinOp(ast.Name(f"{old}_from_one", ast.Load()), ast.Sub(), ast.Constant(1))))
        return node


class _Arms(ast.NodeTransformer):
    """Both arms of a branch, and of `lm.where`, in each other's place."""

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body) if node.orelse else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        mask = node.args[0] if called(node) == "where" and len(node.args) == 3 else None
        if isinstance(mask, ast.Compare) and len(mask.ops) == 1 and type(mask.ops[0]) in _DENIED:
            node.args = [ast.Compare(mask.left, [_DENIED[type(mask.ops[0])]()], mask.comparators), node.args[2], node.args[1]]
        return node


class _Nested(ast.NodeTransformer):
    """`lm.where` of a conjunction as one inside another, branches likewise."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if called(node) != "where" or len(node.args) != 3 or not isinstance(node.args[0], ast.BoolOp) or not isinstance(node.args[0].op, ast.And):
            return node
        out = node.args[1]
        for part in reversed(node.args[0].values):
            out = ast.Call(node.func, [part, out, node.args[2]], [])
        return out

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if node.orelse or not isinstance(node.test, ast.BoolOp) or not isinstance(node.test.op, ast.And):
            return node
        body = node.body
        for part in reversed(node.test.values):
            body = [ast.If(part, body, [])]
        return body[0]


def _named(wanted: Callable[[ast.Call], bool]) -> Callable[[ast.Module], ast.AST]:
    """Gives every call of a kind that stands in a simple statement of a role a name in front of the statement."""

    def rewrite(tree: ast.Module) -> ast.AST:
        count = 0

        def bound(statement: ast.stmt) -> list[ast.stmt]:
            new: list[ast.stmt] = []

            class Binder(ast.NodeTransformer):
                def visit_Call(self, node: ast.Call) -> ast.AST:
                    nonlocal count
                    if not wanted(node):
                        return self.generic_visit(node)
                    count += 1
                    new.append(ast.Assign([ast.Name(f"named_{count}", ast.Store())], node))
                    return ast.Name(f"named_{count}", ast.Load())

            whole = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and wanted(statement.value)
            changed = statement if whole else Binder().visit(statement)
            return [*new, changed]

        def walk(body: list[ast.stmt]) -> list[ast.stmt]:
            out: list[ast.stmt] = []
            for statement in body:
                if isinstance(statement, ast.For | ast.If | ast.With):
                    statement.body = walk(statement.body)
                    if isinstance(statement, ast.If):
                        statement.orelse = walk(statement.orelse)
                    out.append(statement)
                else:
                    out += bound(statement) if isinstance(statement, ast.Assign | ast.Expr | ast.AugAssign) else [statement]
            return out

        for block in (b for f in tree.body if isinstance(f, ast.FunctionDef) for b in f.body if isinstance(b, ast.With)):
            block.body = walk(block.body)
        return tree

    return rewrite


def _fields(tree: ast.Module) -> ast.AST:
    """The fields of a tile under names of their own."""
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For) and isinstance(n.iter, ast.Call) and called(n.iter) == "tiles" and isinstance(n.target, ast.Name)):
        tile, seen = loop.target.id, dict[str, None]()  # type: ignore[attr-defined]  # a name, by the condition above

        class Fields(ast.NodeTransformer):
            def visit_Attribute(self, node: ast.Attribute, tile: str = tile, seen: dict[str, None] = seen) -> ast.AST:
                if isinstance(node.value, ast.Name) and node.value.id == tile:
                    seen[node.attr] = None
                    return ast.Name(f"{tile}_{node.attr}", ast.Load())
                return self.generic_visit(node)

        body = [Fields().visit(s) for s in loop.body]
        loop.body = [*(ast.Assign([ast.Name(f"{tile}_{a}", ast.Store())], ast.Attribute(ast.Name(tile, ast.Load()), a, ast.Load())) for a in seen), *body]
    return tree


def _roles_reversed(tree: ast.Module) -> ast.AST:
    for f in (f for f in tree.body if isinstance(f, ast.FunctionDef)):
        blocks = [s for s in f.body if isinstance(s, ast.With)]
        f.body = [s for s in f.body if not isinstance(s, ast.With)] + blocks[::-1]
    return tree


WAYS: dict[str, Callable[[ast.Module], ast.AST]] = {
    "comparisons turned round": lambda t: _Turned().visit(t),
    "comparisons denied": lambda t: _Denied().visit(t),
    "products commuted": lambda t: _Commuted().visit(t),
    "rounding up written out": lambda t: _Rounded().visit(t),
    "powers of two by bits": lambda t: _Bits().visit(t),
    "sums as reductions": lambda t: _Summed().visit(t),
    "loops from one on": lambda t: _Shifted().visit(t),
    "arms exchanged": lambda t: _Arms().visit(t),
    "conjunctions nested": lambda t: _Nested().visit(t),
    "numbers of rows and columns named": _named(lambda c: called(c) == "iota"),
    "numbers from memory named": _named(lambda c: called(c) == "ld" and isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Name) and c.func.value.id == "lm"),
    "reductions named": _named(lambda c: called(c) in ("reduce", "sum")),
    "parts of views named": _named(lambda c: called(c) in ("rows", "cols")),
    "fields of tiles named": _fields,
    "roles in reverse": _roles_reversed,
}


def rewritten(text: str, way: str) -> str:
    """A text in another spelling; the same one where that changes nothing but the layout."""
    return ast.unparse(ast.fix_missing_locations(WAYS[way](ast.parse(text))))


def verdict(case: Case, way: str) -> tuple[str, Verdict]:
    """The rewritten text of a case, and what the verifier says of it."""
    text = rewritten(case.text(), way)
    return text, verify_text(text, params=case.params, target=case.target, outputs=case.outputs(), filename=case.file)


def main(names: Iterable[str] = ()) -> int:
    wrong = 0
    for name in names or CASES:
        for way in WAYS:
            text, found = verdict(CASES[name], way)
            if found.verdict != "pass":
                wrong += 1
                first = found.diagnostics[0]
                print(f"{name}, {way}: {found.verdict} {first.code} {first.message}\n    {text.splitlines()[first.span.line - 1].strip()}")
    print(f"{wrong} not judged as the original")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
