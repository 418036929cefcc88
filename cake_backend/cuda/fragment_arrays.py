"""Arrays of fragments numbered by a ring: registers cannot be indexed, so loops over the ring are unrolled by its length.

Such a ring carries no barrier and counts from 0 where the array is declared, so that its position is known while the text is printed. A
loop that steps it becomes a loop over whole turns of the ring; what is left of it, and all that follows in the block, is printed once for
each number of remaining iterations, because the position behind the loop depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from cake_backend.cuda.context import Context, Scalar, Slot, scope
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.scalars import scalar
from cake_backend.cuda.webs import Web, children, expressions
from cake_ir.program import Assign, Expr, For, Stmt, statements
from cake_ir.types import FragT, SlotT


def restart(ctx: Context, begins: dict[str, Web]) -> None:
    """Set the rings of the arrays that are declared here to 0."""
    for web in begins.values():
        if isinstance(web.type, FragT) and web.type.stages > 1:
            for ring in rings_of(ctx, web.name):
                ctx.role.positions[ring] = 0


def rings_of(ctx: Context, name: str) -> set[str]:
    """Rings without barriers whose slots index an array."""
    found: set[str] = set()
    for block in ctx.program.body:
        for s in statements(block.body):
            for e in expressions(s):
                for x in e.parts():
                    if x.op == "frag_stage" and x.args[0].attrs.get("name") == name and isinstance(t := x.args[1].type, SlotT):
                        found.add(t.ring)
    return {r for r in found if all(b.pipeline != r for b in ctx.program.barriers.values())}


def step(ctx: Context, ring: str) -> Slot:
    """Advance a counted ring."""
    at = ctx.role.positions[ring]
    ctx.role.positions[ring] = at + 1
    return Slot(f"{at}u", at)


def _steps(block: tuple[Stmt, ...], ring: str) -> int:
    """Steps of a ring that a block itself makes."""
    return sum(isinstance(s, Assign) and isinstance(s.value, Expr) and s.value.op == "step" and s.value.attrs["ring"] == ring for s in block)


def _restarts(ctx: Context, loop: For, ring: str) -> bool:
    """Whether a loop's body declares an array that the ring numbers: the ring then counts from 0 in every iteration, and is not the loop's own."""
    arrays = {n for s in statements(loop.body) if isinstance(s, Assign) and isinstance(t := s.value.type, FragT) and t.stages > 1 for n in s.targets}
    return any(ring in rings_of(ctx, name) for name in arrays)


def counted_ring(ctx: Context, loop: For) -> str | None:
    """The counted ring that a loop steps, if any; a step under a condition or in a nested loop is refused."""
    for ring in ctx.role.positions:
        if _restarts(ctx, loop, ring):
            continue
        for s in statements(loop.body):
            if any(_steps(inner, ring) for inner in children(s)):
                not_lowered("a step of a ring that numbers fragments, in a nested loop or under a condition", s.span)
        if _steps(loop.body, ring):
            return ring
    return None


def unroll(
    ctx: Context, loop: For, ring: str, rest: tuple[Stmt, ...],
    block: Callable[[Context, tuple[Stmt, ...]], None], end_of_body: Callable[[Context, For], None],
) -> None:  # fmt: skip
    """Print a loop by whole turns of the ring, then the remaining iterations and the rest of the block for each number of them."""
    if loop.lo is None or loop.hi is None or id(loop) in ctx.role.armed_loops:
        not_lowered("a tile loop that steps a ring of fragments", loop.head)
    role, stages = ctx.role, ctx.program.rings[ring].stages
    period = stages // gcd(stages, _steps(loop.body, ring))
    with ctx.out.at(loop.head):
        var = role.names.take(loop.var)
        bound = scalar(ctx, loop.hi)
        ctx.out.line(f"int {var} = {scalar(ctx, loop.lo)};")

        def iteration(number: int) -> None:
            role.env[loop.var] = Scalar(f"({var} + {number})" if number else var)
            with ctx.out.block(""), scope(ctx):
                block(ctx, loop.body)
                end_of_body(ctx, loop)

        end_of_body(ctx, loop)
        ctx.out.line("#pragma unroll 1")
        with ctx.out.block(f"for (; {var} + {period - 1} < {bound}; {var} += {period})"):
            for number in range(period):
                iteration(number)

        def remaining(number: int) -> None:
            if number == period - 1:
                block(ctx, rest)
                return
            before = dict(role.positions), list(role.flying), dict(role.unpinned), dict(role.env)
            with ctx.out.block(f"if ({var + (f' + {number}' if number else '')} < {bound})"):
                with scope(ctx):
                    iteration(number)
                    remaining(number + 1)
                role.positions, role.flying, role.unpinned, role.env = before
                ctx.out.otherwise()
                with scope(ctx):
                    block(ctx, rest)

        remaining(0)
