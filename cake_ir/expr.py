"""Expressions: pure, evaluated where they stand."""

from __future__ import annotations

from dataclasses import field

from cake_ir.record import record
from cake_ir.span import NOWHERE, Span
from cake_ir.types import NONE, Type

Const = int | float | bool | str | None | tuple["Const", ...]


@record(eq=False)
class Expr:
    """A pure expression: `op` over `args`, with compile-time `attrs`.

    Uniform scalars: const(value) param(name) var(name) field(name; tile) role_index(role) slot_index(; slot) extent(tensor, dim)
    cta_rank(axis) cluster_size(axis) cta_id, add sub mul div floordiv mod neg min max cdiv lt le gt ge eq ne and or not select
    bitand bitor bitxor shl shr. Slots: step(ring) at(ring) prev(; slot, count) var. Views: view(view) stage(; view, slot|int)
    rows(n; view, lo) cols(n; view, lo) T(; view) var. Tensor memory: tmem(tmem) tmem_cols(n; tmem, lo).
    Fragments: var frag rowvec colvec frag_cols(n; frag, lo) frag_rows frag_stage(; frag, slot) pair(; v, i) item(k; pair) list_item(; list, i) worst(; list) cast
    transpose reduce finish argmin argmax topk topk_list scan iota in_bounds where exp2 .. and the arithmetic names above,
    element by element with rowvec / colvec / scalar broadcast.
    """

    op: str
    args: tuple[Expr, ...] = ()
    attrs: dict[str, Const] = field(default_factory=dict)
    type: Type = NONE
    span: Span = NOWHERE
    below: tuple[Expr, ...] = field(init=False, repr=False)
    """Its distinct parts, unset until somebody asks."""
    canonical: str = field(init=False, repr=False)
    """Its text in canonical form, unset until somebody asks (`cake_verify.analyses.trips.canonical`): many expressions share a part."""

    def parts(self) -> list[Expr]:
        """The distinct nodes of this expression, children first.

        Where names were replaced by their definitions, many readers share one: read as a tree, an expression can have 2**40 nodes.
        """
        if not self.args:
            return [self]
        below = getattr(self, "below", None)
        if below is None:
            found: list[Expr] = []
            _distinct(self, found, set())
            below = self.below = tuple(found[:-1])  # type: ignore[misc]  # set once, later than the rest
        return [*below, self]


def _distinct(e: Expr, found: list[Expr], seen: set[int]) -> None:
    for a in e.args:
        if id(a) not in seen:
            seen.add(id(a))
            if a.args:
                _distinct(a, found, seen)
            else:
                found.append(a)
    found.append(e)


Operand = Expr | tuple[Expr, ...] | None
