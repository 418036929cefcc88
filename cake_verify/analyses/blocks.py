"""By how much an argument has to grow for a count to grow by one: the blocks in which trip counts, tiles and conditions are taken.

`lm.cdiv(lm.cdiv(K, 128), 8)` grows with K by 1024. An argument that an assumption fixes, `KB * 128 == K`, is looked through: `lm.cdiv(KB, 8)`
grows with K in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cake_ir.program import Expr

LENGTH = "#len:"
"""In front of a tensor's name: the number that a count reads there."""

MOST = 1 << 24
_DIVIDING = ("cdiv", "floordiv", "mod")


def blocks_of(sources: Iterable[Expr], names: Iterable[str], defined: Mapping[str, Expr], resolve: Callable[[Expr], Expr]) -> dict[str, set[int]]:
    """For each of `names`, the blocks that some expression takes it in. `defined` holds arguments that follow from others."""
    found: dict[str, set[int]] = {n: set() for n in names}
    for source in (*sources, *defined.values()):
        for n in resolve(source).parts():
            if n.op in _DIVIDING and (c := _constant(n.args[1])) > 1:
                leaves = _Leaves(defined, resolve)
                leaves.under(n.args[0], c, 1, len(defined) + 1)
                for name, need, factor in leaves.found:
                    if name in found:
                        found[name] |= {x for x in (c, -(-need // factor)) if 1 < x < MOST}
    return found


class _Leaves:
    """The arguments under an expression, each with what it has to grow by, `need` over `factor`, for the expression to grow by that; each once."""

    def __init__(self, defined: Mapping[str, Expr], resolve: Callable[[Expr], Expr]) -> None:
        self.defined, self.resolve = defined, resolve
        self.found: dict[tuple[str, int, int], None] = {}
        self.seen: set[tuple[int, int, int, int]] = set()

    def under(self, e: Expr, need: int, factor: int, depth: int) -> None:
        """Add what is under `e`; `depth` bounds how many arguments that follow from others are looked through."""
        if e.op == "param":
            name = str(e.attrs["name"])
            if name in self.defined and depth:
                self.under(self.resolve(self.defined[name]), need, factor, depth - 1)
            self.found[name, need, factor] = None
            return
        if not e.args or (key := (id(e), need, factor, depth)) in self.seen:
            return
        self.seen.add(key)
        if e.op == "ld":
            self.found[LENGTH + str(e.attrs["tensor"]), need, factor] = None
        if e.op in _DIVIDING and (c := _constant(e.args[1])) > 0:
            self.under(e.args[0], need if e.op == "mod" else need * c, factor, depth)
            return
        if e.op == "mul":
            factor *= max(1, *(_constant(x) for x in e.args))
        for x in e.args:
            self.under(x, need, factor, depth)


def _constant(e: Expr) -> int:
    value = e.attrs.get("value") if e.op == "const" else None
    return value if isinstance(value, int) else 0


__all__ = ["LENGTH", "blocks_of"]
