"""Whatever an assumption asks for and whatever a loop needs to run long: arguments are found, or it is said that they were not."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text

TEXT = """
@cake.schedule(target="sm_90a")
def g(lm, A: LM.tma2d[LM.bf16, "M", "K"], C: LM.gmem2d[LM.f32, "M", 64], M: LM.i32, K: LM.i32, KB: LM.i32, *, STAGES=4):
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume({assume})
    pool = lm.smem(STAGES * 64 * 128)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64),), names=("m",))
    n = {count}
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(n):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(n):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                acc = acc + lm.cast(a[s].load(form="acc"), lm.f32)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(0, t.m * 64), clip=True)
"""
RELEASE = "                lm.arrive(empty, stage=s)\n"


def verdicts(assume: str, count: str) -> tuple[str, str]:
    """Of the schedule, and of the same without the release of its slots."""
    text = TEXT.format(assume=assume, count=count)
    return verify_text(text).verdict, verify_text(text.replace(RELEASE, "")).verdict


@pytest.mark.parametrize(
    ("assume", "count"),
    [
        ("K >= 8192", "lm.cdiv(K, 64)"),
        ("K > 100000 and M >= 4096", "lm.cdiv(K, 64)"),
        ("K % 1000 == 7", "lm.cdiv(K, 64)"),
        ("K % 192 == 64 and K < 20000", "lm.cdiv(K, 64)"),
        ("K >= 4096 and K % 4096 == 0 and M > 8", "lm.cdiv(K, 64)"),
        ("K <= M", "lm.min(K // 64, M // 64)"),
        ("M > 0", "lm.min(lm.cdiv(K, 64), lm.cdiv(M, 64))"),
        ("M > 0", "lm.max(K // 640 - 30, 0)"),
        ("M > 0", "lm.max(lm.min(K // 64 - 40, 9), 0)"),
        ("K > M", "lm.cdiv(K - M, 64)"),
        ("KB * 128 == K", "lm.min(K // 64, M // 64)"),
        ("K * 2 == M", "K // 64 // 64 // 64"),
        ("M <= 128", "lm.min(K // 512, KB // 512)"),
        ("K > 100000", "(K // 64) * (M // 64)"),
    ],
)
def test_arguments_are_found_that_take_the_ring_round(assume: str, count: str) -> None:
    assert verdicts(assume, count) == ("pass", "fail")


@pytest.mark.parametrize(("assume", "count"), [("K <= 256", "lm.cdiv(K, 64)"), ("M <= 256", "lm.min(K // 64, M // 64)"), ("K <= 640", "lm.cdiv(K, 64) // 100")])
def test_a_ring_that_no_arguments_take_round_needs_no_release(assume: str, count: str) -> None:
    assert verdicts(assume, count)[1] == "pass"


@pytest.mark.parametrize(("assume", "count", "said", "covered"), [
    ("M > 0", "20 if K == 0 else 3", "round `ring`, whose 4 slots", "the runs had 3 iterations"),
    ("K <= M", "lm.cdiv(K - M, 64)", "give this loop more than one iteration", "the runs had 0 iterations"),
])  # fmt: skip
def test_what_is_not_found_is_said(assume: str, count: str, said: str, covered: str) -> None:
    assert verdicts(assume, count) == ("undecided", "undecided")
    first = verify_text(TEXT.format(assume=assume, count=count)).diagnostics[0]
    assert said in first.message and covered in first.help
