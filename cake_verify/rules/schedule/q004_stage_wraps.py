"""Q004: a stage that is a plain number never comes round again."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.ops import effects_of, taking
from cake_ir.ops.effects import Arrive, Commit, Issue, Wait
from cake_ir.program import Expr, For, Op, Program
from cake_ir.types import ScalarT
from cake_verify.analyses import ranges
from cake_verify.analyses.sites import Site
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

ROOT = True

PAGE = Page(
    code="Q004",
    title="an integer stage is used twice",
    statement="`stage=` may be an integer where the loops around the operation run at most `stages` times together and the number stays below `stages`; anything longer uses `lm.step`.",
    why="An integer names a slot without saying how often it has been used, so its barriers are waited for in their first phase. The second time round that wait returns at once, before "
    "the data is there.",
    failing=edit(TILE, ("        s = lm.step(ring)\n        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)\n        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)",
                        "        for i in lm.range(2):\n            a.tma_load(A, coords=(0, 0), stage=0, barrier=full)\n            b.tma_load(B, coords=(0, 0), stage=0, barrier=full)")),
    passing=TILE,
    sources=("HW055",),
)


_STAGED = taking("stage")


def check(program: Program) -> Iterator[Fault]:
    told: set[tuple[str, str]] = set()
    for site in ranges.live(program, *_STAGED):
        stage = site.op.operands.get("stage")
        barrier = program.barriers.get(str(site.op.attrs.get("barrier")))
        if barrier is None or not isinstance(stage, Expr) or not isinstance(stage.type, ScalarT) or not _synchronises(program, site.op):
            continue
        stages = program.rings[barrier.pipeline].stages
        fault = _outside(program, site, stage, barrier.pipeline, stages) or _again(program, site, stage, barrier.pipeline, stages)
        if fault and (site.role.name, barrier.name) not in told:
            told.add((site.role.name, barrier.name))
            yield fault


def _synchronises(program: Program, op: Op) -> bool:
    return any(isinstance(e, Wait | Arrive | Commit | Issue) for e in effects_of(op, program))


def _outside(program: Program, site: Site, stage: Expr, ring: str, stages: int) -> Fault | None:
    r = ranges.of(program, site.role.name, stage)
    bad = r.lo if r.lo < 0 or r.lo >= stages else r.hi
    if math.isfinite(bad) and (r.lo >= stages or r.hi < 0 or (r.tight and (r.hi >= stages or r.lo < 0))):
        bad = int(bad)
        return Fault("Q004", f"stage {bad} does not exist: `{ring}` has stages 0 to {stages - 1}", site.op.spans.get("stage", site.op.span),
                     ((program.rings[ring].span, f"{stages} stages"),), "use `lm.step`", (), {"expected": stages, "found": bad})  # fmt: skip
    return None


def _again(program: Program, site: Site, stage: Expr, ring: str, stages: int) -> Fault | None:
    trips, unknown = 1, None
    for loop in site.loops:
        n = _trips(program, site, loop)
        if n is None:
            unknown = unknown or loop
        else:
            trips *= n
    span = site.op.spans.get("stage", site.op.span)
    related = ((program.rings[ring].span, f"{stages} stage{'s' if stages > 1 else ''}"),)
    help = f"step the ring: `s = lm.step({ring})` in every role that uses it"
    if unknown is not None:
        return Fault("Q004", f"an integer stage of `{ring}` is used in a loop that may run more than {stages} times", span, ((unknown.head, "this loop"), *related), help,
                     facts={"expected": stages})  # fmt: skip
    if trips > stages:
        return Fault("Q004", f"an integer stage of `{ring}` is used {trips} times over {stages} stage{'s' if stages > 1 else ''}", span, related, help, (), {"expected": stages, "found": trips})
    return None


def _trips(program: Program, site: Site, loop: For) -> int | None:
    """How often the loop runs, None if that is not known."""
    if loop.kind == "tiles":
        scheduler = program.schedulers[str(loop.scheduler)]
        return 1 if scheduler.kind == "grid" else None
    assert loop.lo is not None and loop.hi is not None
    lo, hi = (ranges.of(program, site.role.name, e) for e in (loop.lo, loop.hi))
    if lo.exact is not None and hi.exact is not None:
        return max(0, hi.exact - lo.exact)
    return None if hi.hi - lo.lo > 10**6 else max(0, int(hi.hi - lo.lo))
