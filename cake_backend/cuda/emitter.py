"""Text with indentation, a comment for the schedule line and a map from generated lines back to spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from cake_ir.span import Span

COMMENT_COLUMN = 100
"""Column at which the comment that names the schedule line starts, if the statement is shorter."""

RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr continue decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual "
    "void volatile wchar_t while xor xor_eq u8 u16 u32 u64 i8 i64 even odd best column wins min max abs threadIdx blockIdx blockDim gridDim warpSize float2 TensorMap "
    "DEVICE pool pool_low thread warp lane hang smem_raw cta_warp warpgroup cdiv floor_div floor_mod descriptor pin trap clock64".split()
)
"""Names that an author's name may not become: C++ keywords and what generated text itself uses."""


_NUMBER = re.compile(r"_\d+$")


class Names:
    """Unique C identifiers in one scope; an inner scope sees the outer one's names."""

    def __init__(self, outer: Names | None = None) -> None:
        self._outer = outer
        self._taken: set[str] = set()
        self._kept: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._taken or name in self._kept or (self._outer is not None and name in self._outer)

    def take(self, wanted: str) -> str:
        """The author's name as it was written (the program numbers equal names of different roles), or with a number that makes it free.

        Names that end in an underscore are left to generated text.
        """
        plain = _NUMBER.sub("", wanted)
        if plain and plain != wanted and plain not in RESERVED and plain not in self:
            wanted = plain
        wanted = wanted.rstrip("_") or "name"
        name, count = wanted, 1
        while name in RESERVED or name in self:
            name, count = f"{wanted}_{count}", count + 1
        self._taken.add(name)
        return name


    def reserve(self, name: str) -> None:
        """Keep a name for the one that will take it with `claim`."""
        self._kept.add(name)

    def claim(self, name: str) -> str:
        """Take a reserved name."""
        self._kept.discard(name)
        return self.take(name)


@dataclass(slots=True)
class Line:
    """One generated line: code without indentation, its depth, and the span it comes from."""

    text: str
    depth: int
    span: Span | None


class Emitter:
    """Collects the lines of a kernel's body.

    Every line remembers the span that was current when it was written. When the text is put together, the first line of a run of one
    span quotes the schedule's line and the others only number it.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._indent = 0
        self._span: Span | None = None

    @contextmanager
    def at(self, span: Span) -> Iterator[None]:
        """Lines written inside come from `span`."""
        before, self._span = self._span, span
        try:
            yield
        finally:
            self._span = before

    def line(self, text: str) -> None:
        """One statement."""
        self.lines.append(Line(text, self._indent, self._span))

    def child(self) -> Emitter:
        """An empty emitter for a part that is put in place later; it continues in the same span."""
        part = Emitter()
        part._span = self._span
        return part

    def extend(self, part: Emitter) -> None:
        """Put a part's lines here, at the current indentation."""
        for line in part.lines:
            self.lines.append(Line(line.text, line.depth + self._indent, line.span))

    def unroll(self) -> None:
        """The pragma in front of a loop that must be unrolled completely."""
        self.line("#pragma unroll")

    def block(self, head: str) -> AbstractContextManager[None]:
        """`head {` .. `}` around what is written inside."""
        return self._braces(f"{head} {{" if head else "{")

    @contextmanager
    def unrolled(self, var: str, count: int, start: int = 0) -> Iterator[None]:
        """A loop over constant bounds that is always unrolled."""
        self.unroll()
        with self.block(f"for (int {var} = {start}; {var} < {count}; ++{var})"):
            yield

    def chained(self, head: str, *, first: bool) -> AbstractContextManager[None]:
        """One arm of an `if` / `else` chain, its head on the line of the arm before."""
        if not first:
            self.lines.pop()
        return self._braces(f"{head} {{" if first else f"}} {head} {{")

    @contextmanager
    def _braces(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1
            self.line("}")

    def otherwise(self, text: str = "} else {") -> None:
        """Close the current block and open its alternative on one line."""
        self._indent -= 1
        self.line(text)
        self._indent += 1

    def render(self, source: str | None) -> list[str]:
        """The finished lines, each with a comment that names its schedule line."""
        quoted = source.splitlines() if source else []
        out: list[str] = []
        told: Span | None = None
        for line in self.lines:
            text = "  " * line.depth + line.text
            bare = (line.text.startswith(("#", "}")) and not line.text.startswith("} ")) or line.text == "{"
            if line.span is not None and not bare:
                text = f"{text:<{COMMENT_COLUMN}} // {_comment(line.span, quoted, line.span != told)}"
                told = line.span
            out.append(text)
        return out


def _comment(span: Span, quoted: list[str], quote: bool) -> str:
    if not quote or not 1 <= span.line <= len(quoted):
        return f"L{span.line}"
    # A backslash at the end would splice the next line into the comment.
    return f"L{span.line}: {quoted[span.line - 1].strip().partition(' #')[0].rstrip()}".replace("\\", "")
