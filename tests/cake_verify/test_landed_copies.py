"""Copies of `cp.async` that a tensor core reads, rows by number of a tensor with heads, and loops that a stated length lets run."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_verify import verify_text
from cake_verify.proposals import applied

FED = """
@cake.schedule(target="sm_90a")
def fed(lm, A: LM.gmem2d[LM.bf16, "M", 64], B: LM.gmem2d[LM.bf16, "M", 64], C: LM.gmem2d[LM.f32, "M", 64], M: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(M % 64 == 0)
    pool = lm.smem(4 * 8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="KIND")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(M // 64,), names=("m",))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.cp_async(A, coords=(0, t.m * 64), stage=s)
            b.cp_async(B, coords=(0, t.m * 64), stage=s)
            HANDED
            lm.arrive(full, stage=s)
    with math:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc, a[s], b[s], init=True)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(0, t.m * 64))
"""


@pytest.mark.parametrize("handed", ["lm.fence_proxy()", "lm.cp_commit()", "lm.cp_commit()\n            lm.fence_proxy()", "lm.cp_commit()\n            lm.cp_wait(pending=0)", ""])
@pytest.mark.parametrize("kind", ["cp_async", "warp"])
def test_what_lands_later_is_waited_for_and_fenced_by_the_first_fix(handed: str, kind: str) -> None:
    text = FED.replace("HANDED", handed).replace("KIND", kind)
    first = next(d for d in verify_text(text).shown() if d.severity == "error")
    assert first.code == ("S004" if kind == "warp" and "cp_wait" not in handed else "S006")  # an arrival of another kind hands on what is in flight
    for _ in range(3):
        found = [d for d in verify_text(text).shown() if d.severity == "error"]
        if not found:
            return
        assert found[0].fixes and found[0].fixes[0].grade == "likely"
        text = applied(text, found[0].fixes[0].edits)
    pytest.fail(text)


@pytest.mark.parametrize("kind", ["cp_async", "warp"])
def test_a_slot_that_landed_and_was_fenced_passes(kind: str) -> None:
    handed = "lm.cp_commit()\n            lm.cp_wait(pending=0)\n            lm.fence_proxy()"
    assert verify_text(FED.replace("HANDED", handed).replace("KIND", kind)).verdict == "pass"


HEADS = """
@cake.schedule(target="sm_80")
def heads(lm, KV: LM.gmem3d[LM.bf16, "SLOTS", "H", 64], TABLE: LM.gmem2d[LM.i32, "B", "MAXL"], LEN: LM.gmem1d[LM.i32, "B"], Q: LM.gmem2d[LM.bf16, "B", 64], O: LM.gmem3d[LM.bf16, "B", "H", 64],
          SLOTS: LM.i32, H: LM.i32, B: LM.i32, MAXL: LM.i32):
    lm.launch(grid="persistent")
    lm.assume_values(LEN, LEAST, MAXL + 1)
    pool = lm.smem(16 * 128 + 128)
    kv = pool.view(offset=0, shape=(16, 64), dtype=lm.bf16)
    q = pool.view(offset=2048, shape=(1, 64), dtype=lm.bf16)
    w = lm.role(warps=range(0, 1))
    meet = lm.named_barrier(w)
    sched = lm.scheduler(kind="static", tiles=(H, B), names=("h", "b"))
    with w:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            q.cp_async(Q, coords=(0, t.b))
            x = lm.frag(shape=(16, 64), dtype=lm.f32, form="acc", init=0.0)
            for i in lm.range(lm.cdiv(n, 16)):
                row = lm.iota(x, 0, base=i * 16)
                rows = lm.load(TABLE, coords=(i * 16, t.b), shape=(16,), form="rowvec", like=x, mask=row < n, fill=-1)
                kv.cp_async_rows(KV, rows=rows, coords=(0, t.h, 0))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(meet)
                x = x + lm.cast(kv.load(form="acc"), lm.f32)
                lm.sync(meet)
            y = lm.reduce(x, "add", axis=0)
            lm.store(O, lm.cast(y + lm.cast(q.rows(0, 1).load(form="colvec", like=x), lm.f32), lm.bf16), coords=(0, t.h, t.b))
            lm.sync(meet)
"""


def test_a_length_stated_to_be_positive_lets_its_loop_run() -> None:
    assert verify_text(HEADS.replace("LEAST", "1")).verdict == "pass"
    assert [d.code for d in verify_text(HEADS.replace("LEAST", "0")).shown() if d.severity == "error"][:1] == ["S004"]


def test_rows_by_number_are_those_of_the_outermost_axis(tmp_path: Path) -> None:
    program = specialise(parse(HEADS.replace("LEAST", "1")).schedules[0]).program
    assert program is not None
    rng = np.random.default_rng(0)
    kv, q = (rng.integers(-4, 5, s).astype(ml_dtypes.bfloat16) for s in ((40, 3, 64), (2, 64)))
    table, lengths = rng.integers(0, 40, (2, 20)).astype(np.int32), np.array([20, 5], np.int32)
    want = np.stack([kv[table[b, : lengths[b]]].astype(np.float32).sum(0) + q[b].astype(np.float32) for b in range(2)])
    tensors = {"KV": kv, "TABLE": table, "LEN": lengths, "Q": q, "O": np.zeros((2, 3, 64), ml_dtypes.bfloat16)}
    scalars = {"SLOTS": 40, "H": 3, "B": 2, "MAXL": 20}
    run = simulate(program, tensors, scalars, ctas=2)
    assert run.ok and np.array_equal(run.outputs["O"].astype(np.float32), want)
    assert "KV_stride1" in lower(program).text


SHIFTED = """
@cake.schedule(target=("sm_80", "sm_89"))
def shifted(lm, X: LM.gmem2d[LM.f16, "T", 64], W: LM.gmem2d[LM.f16, 64, 64], Y: LM.gmem2d[LM.f16, "T", 64], T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T > 0)
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.f16, swizzle="128b")
    w = pool.view(offset=8192, shape=(64, 64), dtype=lm.f16, swizzle="128b")
    team = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(team)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 64),), names=("m",))
    with team:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            x.cp_async_rows(X, rows=lm.iota(acc, axis=0, base=t.m * 64 - 1), coords=(0, 0))
            w.cp_async(W, coords=(0, 0))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(meet)
            for k in lm.static_range(4):
                lm.mma(acc, x.cols(16 * k, 16).ldmatrix(form="a", like=acc), w.cols(16 * k, 16).ldmatrix(form="b", like=acc))
            lm.store(Y, lm.cast(acc, lm.f16), coords=(0, t.m * 64), clip=True)
"""


def test_rows_by_number_lie_where_their_numbers_say() -> None:
    assert verify_text(SHIFTED).verdict == "pass"
