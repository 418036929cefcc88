"""Empty asm statements that keep register code on its side of a wait or an mma (see `wgmma` and `mbarrier.wait`)."""

from __future__ import annotations

from collections.abc import Iterator

from cake_backend.cuda.context import Context, ListPlace, PairPlace, Place
from cake_backend.cuda.fragments import ctype
from cake_backend.cuda.preamble import pin
from cake_backend.cuda.webs import expressions
from cake_ir.program import Assign, Expr, Op, Stmt, op_of, statements
from cake_ir.span import Span


def pin_places(ctx: Context, names: tuple[str, ...]) -> None:
    """Pin every register of the named places."""
    for name in names:
        bound = ctx.role.env.get(name)
        for place in (bound.value, bound.index) if isinstance(bound, PairPlace | ListPlace) else (bound,):
            if isinstance(place, Place) and place.type.stages > 1 and name in ctx.role.inflight.accumulators:
                continue  # `pin_stages` knows which of them is free
            if isinstance(place, Place) and ctype(place.type) in ("float", "int", "u32"):
                ctx.out.line(f"{ctx.use(pin(ctype(place.type)))}<{place.count * place.type.stages}>({place.name});")


def pin_stages(ctx: Context, retired: list[tuple[str, int] | None]) -> None:
    """Pin the fragments of arrays that have just retired, one at a time: their neighbours may still be in flight."""
    for name, stage in filter(None, retired):
        place = ctx.role.env.get(name)
        assert isinstance(place, Place)
        where = f"{place.name} + {stage * place.count}" if stage else place.name
        ctx.out.line(f"{ctx.use(pin(ctype(place.type)))}<{place.count}>({where});")


def values_in(e: Expr) -> Iterator[str]:
    """Names whose registers an expression reads: the model of a coordinate or a fresh fragment is not read."""
    if e.op == "var":
        yield str(e.attrs["name"])
    for i, a in enumerate(e.args):
        if not (i == 0 and e.op in ("iota", "in_bounds", "frag", "rowvec", "colvec", "topk_list")):
            yield from values_in(a)


def held(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Names whose registers a role's statements read; the model of a load (`like=`) is not read either."""
    found: set[str] = set()
    for s in statements(body):
        op = op_of(s)
        like = op.operands.get("like") if op is not None else None
        for e in expressions(s):
            if e is not like:
                found.update(values_in(e))
    return frozenset(found)


def note_assignment(ctx: Context, stmt: Assign) -> None:
    """Remember what was computed from an accumulator, so that it is pinned before the next wait or mma.

    Without the pin the compiler sinks such code past the next issue, and the assembler then serialises every wgmma.
    """
    role = ctx.role
    if not role.inflight.accumulators or not isinstance(stmt.value, Op):
        return
    read = {n for e in expressions(stmt) for n in values_in(e)}
    if read & role.inflight.accumulators or read & role.unpinned.keys():
        role.unpinned.update(dict.fromkeys(stmt.targets))


def flush(ctx: Context, span: Span) -> None:
    """Pin what is noted and still needed."""
    role = ctx.role
    live = tuple(n for n in role.unpinned if n in role.live)
    pin_places(ctx, live)
    role.unpinned.clear()
