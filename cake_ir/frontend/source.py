"""The text of a schedule: guarded parsing into a Python syntax tree, and spans in characters.

Python's `ast` counts columns in UTF-8 bytes from 0; every span made here counts characters from 1.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable

from cake_ir.fault import Fault, FaultError
from cake_ir.span import Span

MAX_BYTES = 262_144
MAX_LINES = 8_000
MAX_NESTING = 60
MAX_NAME = 64
LEVELS = 3 * MAX_NESTING
"""Of statements or of parts of an expression."""
_LINE_END = re.compile(r"\r\n|\r|\n")
_OPEN = re.compile(r"[(\[{]|[)\]}]")


class _Spans(dict[ast.AST, Span]):
    """The characters of each node that was asked for, since every variant of a schedule asks again; no node is looked up twice in Python."""

    __slots__ = ()

    def __missing__(self, node: ast.AST) -> Span:
        span = self[node] = Span(node.lineno, node.col_offset + 1, node.end_lineno, node.end_col_offset + 1)  # type: ignore[attr-defined]  # every located node has them
        return span


class _WideSpans(_Spans):
    """The same for a text in which some characters take several bytes."""

    __slots__ = ("lines",)

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def _column(self, line: int, byte: int) -> int:
        if line > len(self.lines):
            return byte + 1
        return len(self.lines[line - 1].encode("utf-8", "replace")[:byte].decode("utf-8", "replace")) + 1

    def __missing__(self, node: ast.AST) -> Span:
        line, end = node.lineno, node.end_lineno  # type: ignore[attr-defined]  # as above
        span = self[node] = Span(line, self._column(line, node.col_offset), end, self._column(end, node.end_col_offset))  # type: ignore[attr-defined]  # as above
        return span


class Source:
    """One text, its lines, and the conversion of syntax-tree positions to spans."""

    __slots__ = ("filename", "lines", "span", "text", "widest")

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename
        self.lines = _LINE_END.split(text) if "\r" in text else text.split("\n")  # as Python's tokenizer ends lines
        self.widest = max(map(len, self.lines))
        self.span: Callable[[ast.AST], Span] = (_Spans() if text.isascii() else _WideSpans(self.lines)).__getitem__

    def at(self, span: Span) -> str:
        """The text of a span that lies on one line, else its first line's part."""
        line = self.lines[span.line - 1] if span.line <= len(self.lines) else ""
        return line[span.column - 1 : span.end_column - 1 if span.end_line == span.line else None]

    def through(self, first: ast.stmt | ast.expr, last: ast.stmt | ast.expr) -> str:
        """The lines from where a node starts to where another ends."""
        return "\n".join(self.lines[first.lineno - 1 : last.end_lineno])


def valid_name(name: str) -> bool:
    """Whether a name is plain: ASCII letters, digits, underscores, at most 64 characters."""
    return len(name) <= MAX_NAME and name.isascii() and name.isidentifier()


def _refuse(message: str, line: int = 1, column: int = 1, *, end: tuple[int, int] | None = None, help: str = "", code: str = "N001") -> FaultError:
    end_line, end_column = end or (line, column + 1)
    return FaultError(Fault(code, message, Span(line, column, end_line, end_column), help=help))


def read(text: str, filename: str) -> tuple[Source, ast.Module]:
    """Parse `text`; raises `FaultError` N001 (not Python), N002 (too large or too deeply nested)."""
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as e:
        raise _refuse("the text holds a lone surrogate, which is no character", text.count("\n", 0, e.start) + 1) from None
    if size > MAX_BYTES:
        raise _refuse(f"the text has {size} bytes, at most {MAX_BYTES} are read", code="N002", help="a schedule is a few hundred lines")
    source = Source(text, filename)
    if len(source.lines) > MAX_LINES:
        raise _refuse(f"the text has {len(source.lines)} lines, at most {MAX_LINES} are read", code="N002")
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        raise _refuse("the text holds a NUL character", line)
    if not _surely_shallow(text) or source.widest > 4 * MAX_NESTING:
        _check_nesting(source.lines)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about odd literals; the author's text is ours to judge
            tree = _tree(text, filename)
    except SyntaxError as e:
        line = min(max(e.lineno or 1, 1), len(source.lines))
        column = max(e.offset or 1, 1)
        end = (e.end_lineno, max(e.end_offset or 0, column + 1)) if e.end_lineno and e.end_lineno >= line and (e.end_offset or 0) > 0 else None
        if end and end[0] == line and end[1] <= column:
            end = None
        message = (e.msg or "invalid syntax").rstrip(".")
        raise _refuse(f"not Python syntax: {message[0].lower()}{message[1:]}", line, column, end=end) from None
    except (RecursionError, MemoryError, ValueError, SystemError) as e:
        raise _refuse(f"the text cannot be parsed: {type(e).__name__}", code="N002", help="nest expressions less deeply") from None
    return source, tree


def _surely_shallow(text: str) -> bool:
    """Whether brackets cannot be nested too deeply, whatever kinds they are of: pairs with nothing between them are taken out again and again."""
    left = text.translate(_BRACKETS)
    for depth in range(MAX_NESTING):
        fewer = left.replace("()", "")
        if len(fewer) == len(left):
            return left.count("(") + depth <= MAX_NESTING
        left = fewer
    return False


_BRACKETS = {c: {"(": "(", "[": "(", "{": "(", ")": ")", "]": ")", "}": ")"}.get(chr(c)) for c in range(128)}


def _check_nesting(lines: list[str]) -> None:
    """N002 for a line that is indented, or a bracket that is nested, too deeply."""
    depth = 0
    for number, line_text in enumerate(lines, 1):
        if line_text[: 4 * MAX_NESTING + 1].isspace():
            indent = len(line_text) - len(line_text.lstrip(" \t"))
            if indent > 4 * MAX_NESTING:
                raise _refuse(f"a line is indented by {indent} characters", number, 1, code="N002", help=f"at most {MAX_NESTING} levels are read")
        count = line_text.count
        opened = count("(") + count("[") + count("{")
        if depth + opened <= MAX_NESTING:  # nearly every line: whatever their order, these stay within the limit
            depth += opened - count(")") - count("]") - count("}")
            continue
        for match in _OPEN.finditer(line_text):
            depth += 1 if match.group() in "([{" else -1
            if depth > MAX_NESTING:
                raise _refuse(f"brackets are nested more than {MAX_NESTING} deep", number, match.start() + 1, code="N002")


def _tree(text: str, filename: str) -> ast.Module:
    try:
        return ast.parse(text, filename)
    except SystemError:  # Python 3.11 may count its own recursion wrong once, after a deep text before this one
        return ast.parse(text, filename)


def check_depth(tree: ast.Module, source: Source) -> None:
    """Raise N002 where statements or expressions are nested more deeply than the elaborator walks.

    Every level of an expression takes a character, so that only long ones are looked into.
    """
    if _fits(tree, (source.widest if source.text.isascii() else 4 * source.widest) > LEVELS):  # columns count bytes
        return
    stack: list[tuple[ast.AST, int]] = [(s, 0) for s in tree.body]
    while stack:
        node, depth = stack.pop()
        if depth > LEVELS:
            raise FaultError(Fault("N002", "statements are nested too deeply", source.span(node)))
        if type(node) in _BLOCKS:
            for name in _INNER:
                stack.extend((child, depth + 1) for child in getattr(node, name, ()))
            parts = [getattr(node, name, None) for name in _PARTS]
            parts += [item.context_expr for item in getattr(node, "items", ())]
        else:
            parts = [node]
        for part in parts:
            if part is not None and (where := _too_deep(part)) is not None:
                raise FaultError(Fault("N002", "expressions are nested too deeply", source.span(where)))


def _fits(tree: ast.Module, long: bool) -> bool:
    """Whether nothing is nested too deeply; where something is, it has to be looked for in another order than the quickest. `long`: some line may be."""
    level: list[ast.AST] = [*tree.body]
    for _ in range(LEVELS + 1):
        inner: list[ast.AST] = []
        for node in level:
            fields = _BLOCKS.get(type(node))
            if fields is not None:
                for name in fields[0]:
                    inner += getattr(node, name)
                for name in fields[1]:
                    if (part := getattr(node, name)) is not None and _too_deep(part) is not None:
                        return False
                for item in getattr(node, "items", ()):
                    if _too_deep(item.context_expr) is not None:
                        return False
            elif (long or node.end_lineno != node.lineno) and _too_deep(node) is not None:  # type: ignore[attr-defined]  # a statement
                return False
        level = inner
        if not level:
            return True
    return False


def _too_deep(root: ast.AST) -> ast.AST | None:
    """A node of a part that lies too deep in it; None where there is none, as in every part that is too short for one."""
    if root.end_lineno == root.lineno and root.end_col_offset - root.col_offset <= LEVELS:  # type: ignore[attr-defined]  # located nodes only
        return None
    level = [root]
    for _ in range(LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return None
    return next((n for n in level if hasattr(n, "lineno")), root)


_INNER = ("body", "orelse", "handlers", "finalbody", "cases")
_PARTS = ("iter", "test", "target", "pattern", "guard")
_BLOCKS: dict[type[ast.AST], tuple[tuple[str, ...], ...]] = {
    kind: tuple(tuple([name for name in names if name in kind._fields]) for names in (_INNER, _PARTS))
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Match, ast.match_case)
}
"""What statements with statements in them have of both kinds."""
