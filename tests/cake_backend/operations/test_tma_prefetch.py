"""`view.tma_prefetch`: a load role asks memory for boxes that its ring has no slot for yet."""

import numpy as np
from vertical import codes, compiles, passes, simulated

AHEAD = """
@cake.schedule(target="sm_90a")
def ahead(lm, X: LM.tma2d[LM.f32, "M", 128].const, Y: LM.gmem2d[LM.f32, "M", 128], M: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(2 * 64 * 128 * 4)
    v = pool.view(offset=0, shape=(64, 128), dtype=lm.f32, stage=2, swizzle="128b")
    load = lm.role(warps=range(4, 5))
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    kt = lm.cdiv(M, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                v.tma_prefetch(X, coords=(0, 64 * k + 128))
                lm.wait(empty, stage=s)
                v.tma_load(X, coords=(0, 64 * k), stage=s, barrier=full)
        lm.pdl_wait()
    with work:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.store(Y, v[s].load(form="vec"), coords=(0, 64 * k), clip=True)
                lm.arrive(empty, stage=s)
"""


def test_a_prefetch_changes_no_value_and_needs_no_slot() -> None:
    m = 300
    tensors = {"X": np.random.default_rng(0).random((m, 128), dtype=np.float32), "Y": np.zeros((m, 128), np.float32)}
    passes(AHEAD)
    assert (simulated(AHEAD, tensors, {"M": m})["Y"] == tensors["X"]).all()


def test_it_is_one_instruction_a_panel_with_the_map_of_the_load() -> None:
    text = compiles(AHEAD)
    assert "cp.async.bulk.prefetch.tensor.2d.L2.global" in text
    assert text.count("tma_prefetch_2d(&X_map") == text.count("tma_load_2d(v") == 4 and "X_map_2" not in text


def test_its_box_is_checked_as_that_of_a_load() -> None:
    assert "H024" in codes(AHEAD.replace("coords=(0, 64 * k + 128)", "coords=(1, 64 * k + 128)"))
