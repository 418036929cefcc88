"""D081: what is rescaled in tensor memory part by part is rescaled in all of its columns."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import TmemT
from cake_verify.analyses.sites import Site, constant_rounds, sites
from cake_verify.analyses.trips import linear, resolver_of
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.consistency.d068_round_without_update import PAGE as WHOLE
from cake_verify.rules.examples import edit

_PARTS = edit(
    str(WHOLE.passing),
    ("                x = lm.tmem_load(o)\n                lm.tmem_wait(\"ld\")\n                lm.tmem_store(o, x * f)\n                lm.tmem_wait(\"st\")\n",
     "                for c in lm.static_range(64 // 16):\n                    x = lm.tmem_load(o.cols(16 * c, 16))\n                    lm.tmem_wait(\"ld\")\n                    lm.tmem_store(o.cols(16 * c, 16), x * f)\n                    lm.tmem_wait(\"st\")\n"),
)  # fmt: skip

PAGE = Page(
    code="D081",
    title="columns that are not rescaled",
    statement="A loop over parts of a region of tensor memory that multiplies each of them in place, in every round of a loop while products add to the whole region, reaches its last column.",
    why="An accumulator is rescaled because what it sums is relative to something that has moved. Columns that the loop leaves out keep the old scale, and the last columns of the output are too large.",
    failing=edit(_PARTS, ("lm.static_range(64 // 16)", "lm.static_range(64 // 16 - 1)")),
    passing=_PARTS,
    limits="Decided for parts of one width side by side from the first column on, in a loop of a fixed number of rounds, where nothing else stores to the region. What is scaled once, behind the sum, may be some of the columns: those of queries, or those that are rotated.",
)


def check(program: Program) -> Iterator[Fault]:
    if not program.tmems:
        return
    stores = sites(program).of("tmem_store")
    for s in stores:
        e, x = s.op.operands.get("t"), s.op.operands.get("x")
        if not isinstance(e, Expr) or e.op != "tmem_cols" or not isinstance(e.type, TmemT) or not isinstance(x, Expr) or not s.loops or not any(n.op == "mul" for n in x.parts()):
            continue
        region, width, loop = e.type.tmem, e.type.cols, s.loops[-1]
        rounds = constant_rounds(loop)
        if not any(x.kind not in ("tiles", "static") for x in s.loops[:-1]):
            continue  # once a tile: nothing that a sum is relative to has moved
        if rounds is None or loop.lo is None or loop.lo.attrs["value"] != 0 or linear(resolver_of(program, s.role.name)(e.args[1])) != (0, {f"?{loop.var}": width}):
            continue
        total = _summed(program, region)
        if total is None or total - rounds * width < width or not _in_place(program, s, region) or any(o is not s and _region(o) == region for o in stores):
            continue
        message = f"this loop leaves the last {total - rounds * width} of the {total} columns of `{region}` as they are: {call(s.op)} brings the others up to date"
        yield Fault("D081", message, loop.head, ((s.op.span, "multiplied here"), (program.tmems[region].span, "declared here")), "go on to the last column", (), {"role": s.role.name, "region": region})
        return


def _region(s: Site) -> str:
    e = s.op.operands.get("t")
    return e.type.tmem if isinstance(e, Expr) and isinstance(e.type, TmemT) else ""


def _summed(program: Program, region: str) -> int | None:
    """The columns of a region that every product into it adds to."""
    found = {t.cols for s in sites(program).of("mma") if isinstance(e := s.op.operands["acc"], Expr) and isinstance(t := e.type, TmemT) and t.tmem == region and e.op == "tmem"}
    return found.pop() if len(found) == 1 else None


def _in_place(program: Program, s: Site, region: str) -> bool:
    """Whether what is stored was loaded from the same columns, in the same round."""
    x = s.op.operands["x"]
    names = {str(n.attrs["name"]) for n in x.parts() if n.op == "var"} if isinstance(x, Expr) else set()
    mine = _text(program, s)
    return any(y.role is s.role and y.loops == s.loops and _region(y) == region and _text(program, y) == mine and not names.isdisjoint(y.targets) for y in sites(program).of("tmem_load"))


def _text(program: Program, s: Site) -> object:
    e = s.op.operands["t"]
    return linear(resolver_of(program, s.role.name)(e.args[1])) if isinstance(e, Expr) and e.op == "tmem_cols" else None
