"""Products of parts of one tensor, and of one tile read both ways round."""

from __future__ import annotations

import pytest

from cake_verify import verify_text

PACKED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def packed(lm, QKV: LM.gmem2d[LM.bf16, "T", "W"], Y: LM.gmem2d[LM.f32, "T", "D"], T: LM.i32, W: LM.i32, D: LM.i32, H: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T > 0 and T % 64 == 0 and D == H * 64 and W == 3 * D and H > 0)
    pool = lm.smem(3 * 8192)
    q = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    v = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(T // 64, H), names=("m", "h"))
    with work:
        for t in lm.tiles(sched):
            q.cp_async(QKV, coords=(AT_Q, t.m * 64))
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            for j in lm.range(T // 64):
                k.cp_async(QKV, coords=(AT_K, j * 64))
                v.cp_async(QKV, coords=(AT_V, j * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(own)
                lm.mma(s, q.ldmatrix(form="a"), k.ldmatrix(form="b"), init=True)
                lm.mma(o, lm.cast(lm.sigmoid(s), lm.bf16, form="a"), v.T.ldmatrix(form="b"))
                lm.sync(own)
            lm.store(Y, o, coords=(t.h * 64, t.m * 64))
'''

GRAM = '''
@cake.schedule(target="sm_90a")
def gram(lm, X: LM.gmem2d[LM.bf16, 64, 64], Y: LM.gmem2d[LM.f32, 64, 64]):
    lm.launch(grid="tiles")
    pool = lm.smem(8192)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x.cp_async(X, coords=(0, 0))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.fence_proxy()
            lm.sync(own)
            y = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            lm.mma(y, x, x, init=True)
            lm.mma(y, x.T, x.T)
            lm.mma_wait(pending=0)
            lm.store(Y, y, coords=(0, 0))
'''


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ("t.h * 64", "D + t.h * 64", "2 * D + t.h * 64"),
        ("t.h * 64", "(H + t.h) * 64", "(2 * H + t.h) * 64"),
        ("t.h * 192", "t.h * 192 + 64", "t.h * 192 + 128"),
    ],
)
def test_queries_keys_and_values_in_one_tensor(q: str, k: str, v: str) -> None:
    assert codes(PACKED.replace("AT_Q", q).replace("AT_K", k).replace("AT_V", v)) == []


def test_keys_of_another_head_than_the_queries() -> None:
    assert codes(PACKED.replace("AT_Q", "t.h * 64").replace("AT_K", "t.h * 64 + 64").replace("AT_V", "2 * D + t.h * 64")) == ["S034"]


def test_a_tile_times_itself_both_ways_round() -> None:
    assert codes(GRAM) == []
    in_registers = GRAM.replace("lm.mma(y, x, x, init=True)", 'lm.mma(y, x.ldmatrix(form="a"), x.ldmatrix(form="b"), init=True)').replace("lm.mma(y, x.T, x.T)", 'lm.mma(y, x.T.ldmatrix(form="a"), x.T.ldmatrix(form="b"))').replace("            lm.mma_wait(pending=0)\n", "").replace("            lm.fence_proxy()\n", "").replace('"sm_90a"', '"sm_80"')
    assert codes(in_registers) == []
    assert codes(in_registers.replace("x.T.", "x.")) == ["S035"]


BLOCKS = '''
@cake.schedule(target="sm_80")
def two_sided(lm, H: LM.gmem2d[LM.bf16, 64, 64], X: LM.gmem2d[LM.bf16, "R", "C"], Y: LM.gmem2d[LM.bf16, "R", "C"], R: LM.i32, C: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(R % 64 == 0 and C % 64 == 0)
    pool = lm.smem(2 * 8192)
    h = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    x = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R // 64, C // 64), names=("r", "c"))
    with work:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        out = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            h.cp_async(H, coords=(0, 0))
            x.cp_async(X, coords=(t.c * 64, t.r * 64))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(own)
            lm.mma(acc, h.ldmatrix(form="a"), x.T.ldmatrix(form="b"), init=True)
            lm.mma(out, lm.cast(acc, lm.bf16, form="a"), h.ldmatrix(form="b"), init=True)
            lm.store(Y, lm.cast(out, lm.bf16), coords=(t.c * 64, t.r * 64))
'''


def test_a_transform_of_blocks_from_both_sides_has_the_axis_again_that_it_sums_over() -> None:
    assert [d.code for d in verify_text(BLOCKS).errors] == []
