"""The types of Cake IR's values: what an expression is, statically."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, Literal

from cake_ir.record import record

Form = Literal["acc", "a", "b", "rows", "vec", "rowvec", "colvec", "scalar"]


@record()
class NoneT:
    """The type of an operation that yields no value."""

    def __str__(self) -> str:
        return "nothing"


@record()
class ScalarT:
    """A value equal on every thread of the role member: a dtype name such as `i32`, `f32`, `bool`."""

    dtype: str

    def __str__(self) -> str:
        return f"uniform {self.dtype}"


@record()
class SlotT:
    """A position on a ring (pipeline): a running count n; slot index n % stages, phase n // stages."""

    ring: str

    def __str__(self) -> str:
        return f"slot of ring `{self.ring}`"


@record()
class TileT:
    """One tile handed out by a scheduler; `names` are its integer fields."""

    scheduler: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"tile of `{self.scheduler}`"


@record()
class ViewT:
    """A rectangle of a declared shared-memory view: storage rows x cols (1-D views: rows = 1), read transposed if `transposed`.

    Its run-time value is (stage, row, column): the ring count (or stage number) and the rectangle's storage origin.
    `staged` is False while a view with several stages has not been indexed by `[s]`.
    """

    view: str
    rows: int
    cols: int
    dtype: str
    transposed: bool = False
    staged: bool = True
    rank: int = 2

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, cols) as read, transposition applied; (n,) for a 1-D view."""
        if self.rank == 1:
            return (self.cols,)
        return (self.cols, self.rows) if self.transposed else (self.rows, self.cols)

    def __str__(self) -> str:
        return f"{self.dtype} view of `{self.view}` {'x'.join(map(str, self.shape))}"


@record()
class TmemT:
    """A column range of a declared tensor-memory region; its run-time value is the first column."""

    tmem: str
    lanes: int
    cols: int
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype} tensor memory of `{self.tmem}` {self.lanes}x{self.cols}"


@record()
class FragT:
    """A register fragment: shape, dtype and one form out of the closed list.

    `rows`/`cols` are the shape (1-D fragments: rows = 1); for `rowvec`, cols = 1; for `colvec`, rows = 1. `partial` names the
    reduction still to be finished over the quad (`add max min argmin argmax`) or is None. `warps` is the split of an mma.sync
    tile over the member's warps, None for the wgmma layout. `chunk` is the elements a thread holds contiguously (`vec`).
    `stages` > 1 makes an array of fragments indexed by a ring. `parent` is the form whose rows/columns a vector follows.
    """

    form: Form
    rows: int
    cols: int
    dtype: str
    partial: str | None = None
    warps: tuple[int, int] | None = None
    chunk: int | None = None
    stages: int = 1
    parent: Form | None = None
    rank: int = 2

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cols,) if self.rank == 1 else (self.rows, self.cols)

    def with_(self, **changes: Any) -> FragT:
        """The type with some fields changed; `dataclasses.replace` takes five times as long, and elaboration asks for it all the time."""
        values = list(_FRAGMENT(self))
        for name, value in changes.items():
            values[_FRAGMENT_FIELDS.index(name)] = value
        return FragT(*values)

    def __str__(self) -> str:
        part = f" partial[{self.partial}]" if self.partial else ""
        return f"{self.dtype} `{self.form}`{part} {'x'.join(map(str, self.shape))}"


_FRAGMENT_FIELDS = tuple(f.name for f in fields(FragT))  # type: ignore[arg-type]  # a dataclass, which `record` does not say
_FRAGMENT = attrgetter(*_FRAGMENT_FIELDS)


@record()
class PairT:
    """A running (value, index) pair of row vectors."""

    value: FragT
    index: FragT

    def __str__(self) -> str:
        return f"pair ({self.value}, {self.index})"


@record()
class ListT:
    """A running sorted list of k (value, index) pairs a row."""

    k: int
    value: FragT
    index: FragT
    largest: bool = False

    def __str__(self) -> str:
        return f"top-{self.k} list"


@record()
class ScalesT:
    """Block scales of one operand of a product: where they lie, and what `lm.scales` says of them.

    `block` elements of K share a scale of `dtype`. Over tensor memory the run-time value is (first column, number of the first scale in its word).
    """

    source: TmemT | FragT
    block: int
    dtype: str
    layout: str

    def __str__(self) -> str:
        return f"{self.dtype} scales of {self.block} elements in {self.source}"


Type = NoneT | ScalarT | SlotT | TileT | ViewT | TmemT | FragT | PairT | ListT | ScalesT

NONE = NoneT()
I32 = ScalarT("i32")
F32 = ScalarT("f32")
BOOL = ScalarT("bool")
