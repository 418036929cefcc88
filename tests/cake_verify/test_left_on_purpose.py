"""What whole tiles leave behind is read in another way, or is left on purpose."""

from __future__ import annotations

from cake_verify import verify_text

TEXT = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def doubled(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem1d[LM.f32, "N"], N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("w",))
    with work:
        for t in lm.tiles(sched):
            for i in lm.range(N // 128):
                lm.store(Y, lm.load(X, coords=(i * 128,), shape=(128,)) * 2.0, coords=(i * 128,))
            for i in lm.range(N % 128):
                lm.store(Y, lm.ld(X, N - N % 128 + i) * 2.0, coords=(N - N % 128 + i,))
'''

POOLED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def pooled(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem1d[LM.f32, "P"], N: LM.i32, P: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(P == N // 128)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("w",))
    with work:
        for t in lm.tiles(sched):
            for i in lm.range(N // 128):
                x = lm.load(X, coords=(i * 128,), shape=(128,))
                lm.store(Y, lm.sum(x, axis=0), coords=(i,))
'''


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_a_tail_that_is_read_one_by_one() -> None:
    assert codes(TEXT) == []
    assert "Q012" in codes(TEXT[: TEXT.index("            for i in lm.range(N % 128)")])


def test_a_pool_that_leaves_what_makes_no_whole_window() -> None:
    assert codes(POOLED) == []
    assert "Q012" in codes(POOLED.replace("    lm.assume(P == N // 128)\n", ""))
