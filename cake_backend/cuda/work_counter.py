"""Tiles drawn from a counter in global memory: one thread a cluster asks, a ring in shared memory tells everybody.

The first tile of a cluster is its own number; `total` numbers are drawn in all, so whoever draws the last one sets the word back to zero
and the next launch finds it as this one did. A drawn number is published at the end of a tile, when its latency has passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cake_backend.cuda import mbarrier
from cake_backend.cuda.cluster import size
from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.globals import pointer
from cake_backend.cuda.preamble import CLUSTER_RANK, Device
from cake_backend.cuda.scalars import plus
from cake_ir.derive.work_rings import STAGES, WorkRing, loops_over, work_rings
from cake_ir.program import Scheduler

DRAW = Device(
    "draw_tile",
    """
DEVICE int draw_tile(int* counter) {
  int drawn;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], 1;" : "=r"(drawn) : "l"(counter) : "memory");
  return drawn;
}""",
)
DRAWN = Device(
    "drawn_tile",
    """
DEVICE int drawn_tile(int* counter, int drawn, int total, int clusters) {
  if (drawn == total - 1) asm volatile("st.relaxed.gpu.global.s32 [%0], 0;" :: "l"(counter) : "memory");
  return drawn + clusters;
}""",
)
PUT = Device("put_tile", 'DEVICE void put_tile(u32 slot, int tile) { asm volatile("st.shared.s32 [%0], %1;" :: "r"(slot), "r"(tile) : "memory"); }')
GET = Device("get_tile", 'DEVICE int get_tile(u32 slot) { int tile; asm volatile("ld.shared.s32 %0, [%1];" : "=r"(tile) : "r"(slot) : "memory"); return tile; }')
PUT_REMOTE = Device(
    "put_tile_remote",
    """
DEVICE void put_tile_remote(u32 slot, int tile, u32 cta) {
  asm volatile("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %2; st.shared::cluster.s32 [r], %1; }" :: "r"(slot), "r"(tile), "r"(cta) : "memory");
}""",
)


@dataclass(frozen=True, slots=True)
class Ring:
    """C text of the addresses of a work ring's full barriers, empty barriers and slots."""

    full: str
    empty: str
    slots: str


def ring_of(ctx: Context, s: Scheduler) -> Ring:
    """Where a scheduler's ring lies: behind the author's barriers."""
    at = ctx.work[s.name]
    return Ring(f"pool + {at}u" if at else "pool", f"pool + {at + 8 * STAGES}u", f"pool + {at + 16 * STAGES}u")


def initialise(ctx: Context) -> list[str]:
    """Statements that initialise the barriers of all work rings, by one thread."""
    out = []
    for name in ctx.work:
        ring, where = work_rings(ctx.program)[name], ring_of(ctx, ctx.program.schedulers[name])
        init, ctas = ctx.use(mbarrier.INIT), size(ctx)
        # In a cluster the other blocks' asking threads read the ring like everybody else; the first block's empties hear of all reads.
        reads = (ring.reads + ring.alone) * ctas - ring.alone if ctas > 1 else ring.reads
        out += ["#pragma unroll", f"for (u32 i = 0; i < {STAGES}; ++i) {{ {init}({where.full} + 8u * i, 1u); {init}({where.empty} + 8u * i, {max(1, reads)}u); }}"]
    return out


@contextmanager
def loop(ctx: Context, s: Scheduler, linear: str, first: str, total: str) -> Iterator[None]:
    """The loop over a role's tiles; inside it `linear` is the number of the current one."""
    ring, role, out = work_rings(ctx.program)[s.name], ctx.role, ctx.out
    block = next(b for b in ctx.program.body if b.role == role.role.name)
    if loops_over(block, s.name) > 1 or s.counter is None:
        not_lowered("two loops of a role over tiles drawn from a counter", s.span)
    asks = role.role.name == ring.fetch
    position = role.names.take(f"{s.name}_n")
    if s.name in ctx.work:
        out.line(f"u32 {position} = 0;")
    out.line(f"int {linear} = {first};")
    out.line("#pragma unroll 1")
    with out.block(f"while ({linear} < {total})"):
        drawn = role.names.take(f"{linear}_next")
        if asks:
            test = _asker(ctx)
            call = f"{ctx.use(DRAW)}({pointer(ctx, str(s.counter))})"
            out.line(f"int {drawn} = {f'{test} ? {call} : 0' if test else call};")
        yield
        if asks:
            _look(ctx, s, total, drawn)
        _advance(ctx, s, ring, linear, position, drawn)


def _asker(ctx: Context) -> str:
    """C text of the test that picks the thread that asks; empty where one thread runs the role."""
    tests = [] if ctx.role.single else ["thread == 0"]
    if ctx.role.role.members > 1:
        tests.append(f"{ctx.role.index} == 0")
    if size(ctx) > 1:
        tests.append(f"{ctx.use(CLUSTER_RANK)}() == 0")
    return " && ".join(tests)


def _look(ctx: Context, s: Scheduler, total: str, drawn: str) -> None:
    """First use of what was drawn, at the end of the tile: in front of it, the tile's own loads would wait for the answer."""
    ctas = size(ctx)
    clusters = f"(int)gridDim.x{f' / {ctas}' if ctas > 1 else ''}"
    call = f"{drawn} = {ctx.use(DRAWN)}({pointer(ctx, str(s.counter))}, {drawn}, {total}, {clusters});"
    test = _asker(ctx)
    ctx.out.line(f"if ({test}) {call}" if test else call)


def _wait(ctx: Context, s: Scheduler, address: str, parity: str, position: str) -> str:
    device = mbarrier.wait(report=ctx.report, cluster=size(ctx) > 1, sm80=not ctx.has("MBARRIER_TRY_WAIT"))
    args = [address, parity]
    if ctx.report:
        number = len(ctx.program.barriers) + list(ctx.work).index(s.name)
        role = list(ctx.program.roles).index(ctx.role.role.name)
        args += ["hang", f"{role}u", f"{number}u", f"{position} % {STAGES}u", position, f"(u32){ctx.role.tile}"]
    return f"{ctx.use(device)}({', '.join(args)});"


def _advance(ctx: Context, s: Scheduler, ring: WorkRing, linear: str, position: str, drawn: str) -> None:
    """Publish what was drawn, and take the next tile."""
    out, ctas = ctx.out, size(ctx)
    if s.name not in ctx.work:
        out.line(f"{linear} = {drawn};")
        return
    where = ring_of(ctx, s)
    index, phase = f"{position} % {STAGES}u", f"{position} / {STAGES}u & 1u"
    full, empty, slot = (plus(base, f"{step}u * ({index})") for base, step in ((where.full, 8), (where.empty, 8), (where.slots, 4)))
    asks, alone = ctx.role.role.name == ring.fetch, ring.alone
    arrive = ctx.use(mbarrier.ARRIVE if ctx.has("MBARRIER_TX") else mbarrier.ARRIVE_SM80) if ctas == 1 else ""
    if asks:
        test = _asker(ctx)
        with out.block(f"if ({test})" if test else ""):
            out.line(_wait(ctx, s, empty, f"({phase}) ^ 1u", position))
            if ctas == 1:
                out.line(f"{ctx.use(PUT)}({slot}, {drawn});")
                out.line(f"{arrive}({full});")
            else:
                put, tell = ctx.use(PUT_REMOTE), ctx.use(mbarrier.ARRIVE_REMOTE_RELEASE)
                out.line("#pragma unroll")
                out.line(f"for (u32 cta_ = 0; cta_ < {ctas}; ++cta_) {{ {put}({slot}, {drawn}, cta_); {tell}({full}, cta_); }}")
        if not ctx.role.single:
            out.line("__syncwarp();")
    if asks and alone and ctas == 1:
        out.line(f"{linear} = {drawn};")
    else:
        out.line(_wait(ctx, s, full, phase, position))
        out.line(f"{linear} = {ctx.use(GET)}({slot});")
        if not ctx.role.single:
            out.line("__syncwarp();")
        told = f"{arrive}({empty});" if ctas == 1 else f"{ctx.use(mbarrier.ARRIVE_REMOTE_RELEASE)}({empty}, 0u);"
        who = [] if ctx.role.single else ["lane == 0"]
        if asks and alone and ctas > 1:
            who.append(f"{ctx.use(CLUSTER_RANK)}() != 0")  # the asking thread itself is not waited for
        out.line(f"if ({' && '.join(who)}) {told}" if who else told)
    out.line(f"++{position};")
