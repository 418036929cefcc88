"""S048: bytes are read in the layout that they were written in."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_TURNED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def turned(lm, X: LM.gmem2d[LM.f32, "T", 32], Y: LM.gmem2d[LM.f32, "T", 32], T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T % 32 == 0)
    pool = lm.smem(4096)
    tile = pool.view(offset=0, shape=(32, 32), dtype=lm.f32)
    line = pool.view(offset=0, shape=(1024,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(T // 32,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            tile.store(lm.load(X, coords=(0, t.t * 32), shape=(32, 32)))
            lm.sync(meet)
            lm.store(Y, tile.load(form="vec") + line.ld(1023), coords=(0, t.t * 32))
'''

PAGE = Page(
    code="S048",
    title="bytes read in another layout",
    statement="What was written through one view and is read through another that shares its bytes has one swizzle on both sides.",
    why="A swizzle permutes the 16-byte chunks of a row. Read without it, or with another, the bytes are those of other elements: nothing faults, and the values are in the wrong places.",
    failing=edit(_TURNED, ("shape=(32, 32), dtype=lm.f32)", 'shape=(32, 32), dtype=lm.f32, swizzle="128b")')),
    passing=_TURNED,
    limits="Told where the last write of the first bytes that are read went through the other view. Views of other shapes without a swizzle may hand values on: both are row-major.",
)
