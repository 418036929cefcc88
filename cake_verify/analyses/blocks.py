"""By how much an argument has to grow for a count to grow by one: the blocks in which trip counts, tiles and conditions are taken.

`lm.cdiv(lm.cdiv(K, 128), 8)` grows with K by 1024. An argument that an assumption fixes, `KB * 128 == K`, is looked through: `lm.cdiv(KB, 8)`
grows with K in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from cake_ir.program import Expr

LENGTH = "#len:"
"""In front of a tensor's name: the number that a count reads there."""

MOST = 1 << 24
_DIVIDING = ("cdiv", "floordiv", "mod")


def blocks_of(sources: Iterable[Expr], names: Iterable[str], defined: Mapping[str, Expr], resolve: Callable[[Expr], Expr]) -> dict[str, set[int]]:
    """For each of `names`, the blocks that some expression takes it in. `defined` holds arguments that follow from others."""
    found: dict[str, set[int]] = {n: set() for n in names}
    for source in (*sources, *defined.values()):
        for n in resolve(source).walk():
            if n.op in _DIVIDING and (c := _constant(n.args[1])) > 1:
                for name, need, factor in _leaves(n.args[0], c, 1, defined, resolve, len(defined) + 1):
                    if name in found:
                        found[name] |= {x for x in (c, -(-need // factor)) if 1 < x < MOST}
    return found


def _leaves(e: Expr, need: int, factor: int, defined: Mapping[str, Expr], resolve: Callable[[Expr], Expr], depth: int) -> Iterator[tuple[str, int, int]]:
    """The arguments under an expression, each with what it has to grow by, `need` over `factor`, for the expression to grow by that."""
    if e.op == "param":
        name = str(e.attrs["name"])
        if name in defined and depth:
            yield from _leaves(resolve(defined[name]), need, factor, defined, resolve, depth - 1)
        yield name, need, factor
        return
    if e.op == "ld":
        yield LENGTH + str(e.attrs["tensor"]), need, factor
    if e.op in _DIVIDING and (c := _constant(e.args[1])) > 0:
        yield from _leaves(e.args[0], need if e.op == "mod" else need * c, factor, defined, resolve, depth)
        return
    if e.op == "mul":
        factor *= max(1, *(_constant(x) for x in e.args))
    for x in e.args:
        yield from _leaves(x, need, factor, defined, resolve, depth)


def _constant(e: Expr) -> int:
    value = e.attrs.get("value") if e.op == "const" else None
    return value if isinstance(value, int) else 0


__all__ = ["LENGTH", "blocks_of"]
