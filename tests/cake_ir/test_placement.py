"""Records of a parsed schedule become layouts, fragments and tile orders with the declared values."""

from __future__ import annotations

from cake_ir.forms import Fragment
from cake_ir.frontend import parse, specialise
from cake_ir.layout import ViewLayout
from cake_ir.placement import fragment, tile_order, view_layout
from cake_ir.scheduler import TileOrder
from cake_ir.types import FragT

TEXT = '''
@cake.schedule(target="sm_90a")
def small(lm, X: LM.gmem2d[LM.f32], M: LM.i32, *, STAGES=3):
    lm.launch(grid="persistent")
    pool = lm.smem(65536)
    tile = pool.view(offset=1024, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    line = pool.view(offset=32768, shape=(128,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), 2), raster="n", swizzle=4)
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc")
            lm.store(X, x, coords=(0, t.m * 64))
'''


def test_declared_records_keep_their_values() -> None:
    module = parse(TEXT)
    done = specialise(module.schedules[0])
    assert not module.faults and not done.faults and done.program is not None
    views = done.program.views
    assert view_layout(views["tile"]) == ViewLayout(1024, 64, 64, 16, 3, "128b")
    assert view_layout(views["line"]) == ViewLayout(32768, 1, 128, 32)
    assert tile_order(done.program.schedulers["sched"], (7, 2)) == TileOrder((7, 2), ("m", "n"), "n", 4, (1, 1))


def test_fragment_types_keep_form_split_chunk_and_width() -> None:
    assert fragment(FragT("acc", 64, 64, "f32"), 4) == Fragment("acc", 64, 64, 32, 4)
    assert fragment(FragT("acc", 64, 64, "bf16", warps=(2, 4)), 8) == Fragment("acc", 64, 64, 16, 8, (2, 4))
    assert fragment(FragT("vec", 1, 4096, "bf16", chunk=8, rank=1), 4).chunk == 8
    assert fragment(FragT("acc", 64, 64, "bool"), 4).bits == 1
    assert fragment(FragT("acc", 64, 64, "e2m1"), 4).bits == 8
