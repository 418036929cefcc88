"""Text with indentation, a comment for the schedule line and a map from generated lines back to spans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cake_ir.span import Span

COMMENT_COLUMN = 100
"""Column at which the comment that names the schedule line starts, if the statement is shorter."""

RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr continue decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual "
    "void volatile wchar_t while xor xor_eq u8 u16 u32 u64 i8 i64 min max abs threadIdx blockIdx blockDim gridDim warpSize float2 TensorMap "
    "DEVICE pool thread warp lane hang smem_raw cta_warp warpgroup cdiv floor_div floor_mod descriptor pin trap clock64".split()
)
"""Names that an author's name may not become: C++ keywords and what generated text itself uses."""


class Names:
    """Unique C identifiers in one scope; an inner scope sees the outer one's names."""

    def __init__(self, outer: Names | None = None) -> None:
        self._outer = outer
        self._taken: set[str] = set()
        self._kept: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._taken or name in self._kept or (self._outer is not None and name in self._outer)

    def take(self, wanted: str) -> str:
        """`wanted` itself, or with the smallest number that makes it free."""
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


class Emitter:
    """Collects the lines of a kernel's body.

    Every line remembers the span that was current when it was written. The first line of a span names the schedule's line and
    shows its text, the others name the line only.
    """

    def __init__(self, source: str | None = None) -> None:
        self.lines: list[str] = []
        self.spans: list[Span | None] = []
        self._source = source.splitlines() if source else []
        self._indent = 0
        self._span: Span | None = None
        self._told: Span | None = None

    def child(self) -> Emitter:
        """An empty emitter for a part that is put in place later; it continues in the same span."""
        part = Emitter()
        part._source, part._span, part._told = self._source, self._span, self._told
        return part

    def extend(self, part: Emitter) -> None:
        """Put a part's lines here, at the current indentation."""
        for text, span in zip(part.lines, part.spans, strict=True):
            self.lines.append("  " * self._indent + text if text else text)
            self.spans.append(span)

    def drop(self, indices: list[int]) -> None:
        """Remove lines by index."""
        gone = set(indices)
        self.lines = [x for i, x in enumerate(self.lines) if i not in gone]
        self.spans = [x for i, x in enumerate(self.spans) if i not in gone]

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
        text = "  " * self._indent + text
        if self._span is not None and not text.lstrip().startswith(("}", "#")):
            text = f"{text:<{COMMENT_COLUMN}} // {self._comment(self._span)}"
        self.lines.append(text)
        self.spans.append(self._span)

    def _comment(self, span: Span) -> str:
        number = span.line
        if self._told == span or not 1 <= number <= len(self._source):
            return f"L{number}"
        self._told = span
        # A backslash at the end would splice the next line into the comment.
        return f"L{number}: {self._source[number - 1].strip().partition(' #')[0].rstrip()}".replace("\\", "")

    def unroll(self) -> None:
        """The pragma in front of a loop that must be unrolled completely."""
        self.line("#pragma unroll")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head {` .. `}` around what is written inside."""
        self.line(f"{head} {{" if head else "{")
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1
            self.line("}")

    @contextmanager
    def unrolled(self, var: str, count: int, start: int = 0) -> Iterator[None]:
        """A loop over constant bounds that is always unrolled; one trip is printed without the loop's cost all the same."""
        self.unroll()
        with self.block(f"for (int {var} = {start}; {var} < {count}; ++{var})"):
            yield

    @contextmanager
    def chained(self, head: str, *, first: bool) -> Iterator[None]:
        """One arm of an `if` / `else` chain, its head on the line of the arm before."""
        if first:
            self.line(f"{head} {{")
        else:
            self.lines.pop()
            self.spans.pop()
            self.line(f"}} {head} {{")
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
