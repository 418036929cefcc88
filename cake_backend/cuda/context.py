"""What the emitting functions share: the program, the text so far, and what each name of the schedule is called in C++."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cake_backend.cuda.arming import ArmedSet
from cake_backend.cuda.emitter import Emitter, Names
from cake_backend.cuda.globals import GlobalParams
from cake_backend.cuda.inflight import InFlight
from cake_backend.cuda.maps import MapTable
from cake_backend.cuda.preamble import Device, Preamble
from cake_backend.cuda.webs import Webs
from cake_ir import targets
from cake_ir.layout import ViewLayout
from cake_ir.program import Expr, Program, Role
from cake_ir.span import Span
from cake_ir.types import FragT


@dataclass(frozen=True, slots=True)
class Scalar:
    """A uniform value: C text of one variable."""

    text: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A ring position: C text of the running count; `value` where it is known while the text is printed.

    With `parity` (C text) the position is kept as what it is used for: `text` is then the slot's index and `parity` its phase. A ring whose
    last step is asked for again (`lm.at`) keeps index and phase of that too, in `last`.
    """

    text: str
    value: int | None = None
    parity: str = ""
    last: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """A scheduler's tile: the C variable of its linear number, and one a field."""

    linear: str
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class Rect:
    """Part of a view: byte address of its first row (panel 0, column 0 of the view) and its first column, both as C text.

    Keeping the column apart lets a swizzled address XOR the chunk number that counts from the view's own first column.
    `phase` is the storage row that `base` already contains, as C text, where it may not be a multiple of the 8 rows after which a
    swizzle repeats (empty: it is one).
    """

    view: str
    base: str
    col: str
    rows: int
    cols: int
    transposed: bool
    stage: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A register array: its C name and what it holds. `stages` > 1 are consecutive fragments.

    `some`, if not empty, is the C name of a flag: false where the warp's values are all zero.
    """

    name: str
    type: FragT
    count: int
    some: str = ""


@dataclass(frozen=True, slots=True)
class PairPlace:
    """Value and index arrays of a running argument."""

    value: Place
    index: Place


@dataclass(frozen=True, slots=True)
class ListPlace:
    """Value and index arrays of a running sorted list: `k` neighbouring registers a row, best first."""

    value: Place
    index: Place
    k: int
    largest: bool


@dataclass(frozen=True, slots=True)
class Lazy:
    """A name that stands for its expression: masks and coordinates, which are computed where they are used."""

    expr: Expr


Binding = Scalar | Slot | Tile | Rect | Place | PairPlace | ListPlace | Lazy


@dataclass(slots=True)
class RoleState:
    """What is known while one role's body is emitted."""

    role: Role
    names: Names
    webs: Webs
    inflight: InFlight
    single: bool
    """True where one elected thread runs the whole body."""
    index: str = "0"
    """C text of the member's number."""
    env: dict[str, Binding] = field(default_factory=dict)
    unpinned: dict[str, None] = field(default_factory=dict)
    """Names computed from a retired accumulator and not pinned yet, in order."""
    tile: str = "0"
    """C text of the linear tile number, for hang records."""
    armed: dict[int, ArmedSet] = field(default_factory=dict)
    """Loads in front of which a barrier is armed, by operation id."""
    armed_loops: dict[int, ArmedSet] = field(default_factory=dict)
    """Loops in front of which a barrier is armed, by the identity of the statement."""
    live: frozenset[str] = frozenset()
    """Names whose value is needed after the current statement."""
    positions: dict[str, int] = field(default_factory=dict)
    """Running counts of the rings that number fragments of an array: they are known while the text is printed."""
    flying: list[tuple[str, int] | None] = field(default_factory=list)
    """MMA groups in flight, oldest first: (place, stage) where the accumulator is one of an array."""
    member_barriers: frozenset[int] = frozenset()
    """Arrivals of one thread a member that need a barrier of the member in front."""
    fenced_releases: frozenset[int] = frozenset()
    held: frozenset[str] = frozenset()
    """Names whose registers some statement reads: a fragment that only serves as a model needs none."""
    """Arrivals and meetings that release to the copy engine what threads have read with ordinary loads."""

    @property
    def warps(self) -> int:
        return self.role.member_warps

    @property
    def threads(self) -> int:
        return 32 * self.role.member_warps


@dataclass(slots=True)
class Context:
    """The state of one lowering."""

    program: Program
    entry: str
    """The kernel's name: the schedule's, unless that means something in C++."""
    out: Emitter
    preamble: Preamble
    names: Names
    maps: MapTable
    report: bool
    layouts: dict[str, ViewLayout]
    globals: dict[str, Binding] = field(default_factory=dict)
    barriers: dict[str, str] = field(default_factory=dict)
    """C text of each barrier's first address."""
    counts: dict[str, int] = field(default_factory=dict)
    named_ids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Hardware ids of each named barrier and turn, one a member where it has several."""
    released: frozenset[str] = frozenset()
    """Barriers with arrivals released at cluster scope: their waits acquire there too."""
    work: dict[str, int] = field(default_factory=dict)
    """Offsets of the rings of `counter` schedulers."""
    params: GlobalParams = field(default_factory=GlobalParams)
    tile_counts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """C names of each scheduler's cluster-tile counts by axis."""
    tile_totals: dict[str, str] = field(default_factory=dict)
    alignments: dict[str, int] = field(default_factory=dict)
    """Bytes on which the rows of a tensor in global memory must start."""
    state: RoleState | None = None

    def need_alignment(self, tensor: str, span: Span, nbytes: int = 16) -> None:
        """Record that rows of a tensor are accessed in vectors of `nbytes`."""
        self.alignments[tensor] = max(self.alignments.get(tensor, 0), nbytes)

    def derived_ids(self) -> tuple[int, ...]:
        """Hardware ids of the current role's derived member barriers; allocated behind all others where the derivation has none."""
        key = f"member {self.role.role.name}"
        if key not in self.named_ids:
            first = 1 + max((i for ids in self.named_ids.values() for i in ids), default=0)
            self.named_ids[key] = tuple(range(first, first + self.role.role.members))
        return self.named_ids[key]

    def use(self, device: Device) -> str:
        return self.preamble.use(device)

    def has(self, feature: str) -> bool:
        """Whether the target has a feature of `cake_ir.targets`."""
        return targets.target(self.program.target).has(feature)

    @property
    def role(self) -> RoleState:
        assert self.state is not None, "only inside a role"
        return self.state

    def lookup(self, name: str) -> Binding:
        if self.state is not None and name in self.state.env:
            return self.state.env[name]
        return self.globals[name]


@contextmanager
def scope(ctx: Context) -> Iterator[None]:
    """Names taken inside a C block are free again behind it."""
    outer = ctx.role.names
    ctx.role.names = Names(outer)
    try:
        yield
    finally:
        ctx.role.names = outer
