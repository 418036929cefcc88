"""D033: what belongs to a tile is addressed by the tile."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import words
from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Expr, For, Program, Scheduler
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.tensors import written_tensors
from cake_verify.analyses.trips import resolver_of, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SCALED = '''
@cake.schedule(target="sm_90a")
def scaled(lm, X: LM.gmem2d[LM.f32], S: LM.gmem1d[LM.f32].const, Y: LM.gmem2d[LM.f32], M: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128)), raster="m", swizzle=4)
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.n * 128, t.m * 64), shape=(64, 128), clip=True)
            lm.store(Y, x * lm.ld(S, t.m), coords=(t.n * 128, t.m * 64), clip=True)
'''

PAGE = Page(
    code="D033",
    title="a tile's data by the number of the block",
    statement="Inside a loop over tiles whose order is not the order of the blocks, inputs are addressed by the tile's fields, not by `lm.cta_id()`.",
    why="The scheduler decides which block works on which tile. An operand at the tile's coordinates and its scale at the block's belong to two tiles: wrong numbers, and reads past the end.",
    failing=edit(_SCALED, ("lm.ld(S, t.m)", "lm.ld(S, lm.cta_id() % lm.cdiv(M, 64))")),
    passing=_SCALED,
    limits="Without `raster`, `swizzle` and clusters, block and tile of a `grid` scheduler have one number, and nothing is said; nor of persistent schedules in that order. Tensors that the schedule writes are workspaces that a block may call its own.",
)


def check(program: Program) -> Iterator[Fault]:
    for site in sites(program).ops if "cta_id" in words(program) else ():
        tensor = str(site.op.attrs.get("tensor"))
        loop = next((s for s in site.loops if s.kind == "tiles"), None)
        if loop is None or tensor not in program.tensors or tensor in written_tensors(program) or not _reads(program, site):
            continue
        d = program.schedulers[str(loop.scheduler)]
        if not _reordered(d):
            continue
        coords = site.op.operands.get("coords")
        for e in (*(coords if isinstance(coords, tuple) else ()), site.op.operands.get("i"), site.op.operands.get("offset")):
            at = next((n for n in resolver_of(program, site.role.name)(e).parts() if n.op == "cta_id"), None) if isinstance(e, Expr) else None
            if at is not None:
                yield _fault(site, d, loop, tensor, at)
                break


def _fault(site: Site, d: Scheduler, loop: For, tensor: str, at: Expr) -> Fault:
    fields = ", ".join(f"`{written(loop.var)}.{n}`" for n in d.fields)
    return Fault(
        "D033", f"`{tensor}` is read at a place that depends on `lm.cta_id()`, but `{d.name}` gives blocks their tiles in another order",
        site.op.spans.get("coords", site.op.spans.get("i", site.op.span)), ((at.span, "the block's number"), (loop.head, f"the tile is {fields}")),
        f"use the tile's fields: {fields}", (), {"tensor": tensor, "scheduler": d.name},
    )  # fmt: skip


def _reads(program: Program, site: Site) -> bool:
    for effect in effects_of(site.op, program):
        for touch in effect.touches if isinstance(effect, Issue) else (effect,):
            if isinstance(touch, Touch) and touch.space == "gmem" and touch.mode == "r":
                return True
    return False


def _reordered(d: Scheduler) -> bool:
    """Whether the order of tiles is stated to be another than that of the blocks."""
    first = d.raster is None or (d.raster == d.names[0] and len(d.names) <= 2)
    return d.swizzle > 1 or d.cluster != (1, 1) or not first
