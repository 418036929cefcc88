"""Q010: who waits for another block of the launch knows that it runs."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.acting import acting
from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Flag
from cake_ir.program import Program
from cake_verify.rule import Page

_FLAGS = '''
@cake.schedule(target="sm_90a")
def follow(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], FLAGS: LM.gmem1d[LM.i32].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            if t.g > 0:
                lm.spin(FLAGS, t.g - 1, 1)
            lm.store(Y, lm.load(X, coords=(0, t.g), shape=(1, 512)), coords=(0, t.g))
            lm.sync(cta)
            lm.signal(FLAGS, t.g, 1)
'''

PAGE = Page(
    code="Q010",
    title="a block waits for one that may not run",
    statement='`lm.spin` stands in a persistent launch, whose blocks are all resident, and its flags are `.zeroed` or written by an earlier launch.',
    why="A grid may have more blocks than fit on the device. Those that wait keep those that would signal from starting, and the launch never ends. Flags that hold an older launch's values let a wait pass early.",
    failing=_FLAGS.replace('grid="persistent"', 'grid="tiles"').replace('kind="static"', 'kind="grid"'),
    passing=_FLAGS,
    limits="What the flags order is followed by S039, and whether each wait ends by S041.",
)


def check(program: Program) -> Iterator[Fault]:
    for op in (s.op for s in acting(program).get(Flag, ())):
        if not any(isinstance(e, Flag) and e.kind == "spin" for e in effects_of(op, program)):
            continue
        flags = program.tensors.get(str(op.attrs.get("flags")))
        if program.launch.grid != "persistent":
            at = program.launch.spans.get("grid", program.launch.span)
            yield Fault("Q010", "a block waits here for another block of the launch, which need not be running: the grid has one block a tile", op.span, ((at, "this grid need not fit the device"),),
                        'use `grid="persistent"`, or let a second launch do what comes after', (), {"grid": program.launch.grid})  # fmt: skip
            return
        if flags is not None and not flags.zeroed:
            yield Fault("Q010", f"the flags in `{flags.name}` may hold what an earlier launch wrote", op.span, ((flags.span, "declared here"),),
                        f"declare it `.zeroed`: `{flags.name}: LM.gmem1d[..].zeroed`", (), {"tensor": flags.name})  # fmt: skip
            return
