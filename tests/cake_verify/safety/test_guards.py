"""Conditions that change late, counts that agree only where they were tried, loops around loops, slots looked back at."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text

RING = '''
@cake.schedule(target="sm_90a")
def f(lm, A: LM.tma2d[LM.f32, "M", 64], Y: LM.gmem2d[LM.f32, 64, 64], M: LM.i32, K: LM.i32):
    pool = lm.smem(2 * 16384)
    v = pool.view(offset=0, shape=(64, 64), dtype=lm.f32, stage=2)
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    with load:
        for k in lm.range(K):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            v.tma_load(A, coords=(0, k * 64), stage=s, barrier=full)
    with work:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="vec", init=0.0)
        for k in lm.range(K):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            acc = acc + v[s].load(form="vec", like=acc)
            lm.arrive(empty, stage=s)
        lm.store(Y, acc, coords=(0, 0))
'''
ARRIVE = "            lm.arrive(empty, stage=s)\n"
CONSUMER = "for k in lm.range(K):\n            s = lm.step(ring)\n            lm.wait(full"


def guarded(cond: str) -> str:
    return RING.replace(ARRIVE, f"            if {cond}:\n                lm.arrive(empty, stage=s)\n")


@pytest.mark.parametrize("cond", ["k != 40", "k != K - 30", "k != K // 2", "k % 37 != 5", "k % 100 != 5"])
def test_a_release_that_is_left_out_late_is_found(cond: str) -> None:
    (error,) = verify_text(guarded(cond), suggest=False).errors
    assert error.code in ("S008", "S001")


@pytest.mark.parametrize("cond", ["k != 400", "k % 300 != 270", "K - k != 1000"])
def test_what_no_run_reaches_is_not_decided(cond: str) -> None:
    verdict = verify_text(guarded(cond), suggest=False)
    assert verdict.verdict == "undecided" and not verdict.errors
    assert "no run gets as far as" in verdict.diagnostics[0].message


def test_a_tile_that_no_run_has_is_not_decided() -> None:
    tiled = RING.replace("    with load:\n", '    sched = lm.scheduler(kind="grid", tiles=(M,), names=("m",))\n    with load:\n', 1)
    for role in ("load", "work"):
        head, _, body = tiled.partition(f"    with {role}:\n")
        block, mark, rest = body.partition("    with work:\n") if role == "load" else (body, "", "")
        tiled = head + f"    with {role}:\n        for t in lm.tiles(sched):\n" + "".join(f"    {x}\n" for x in block.splitlines()) + mark + rest
    tiled = tiled.replace("coords=(0, 0))", "coords=(0, 0), mask=lm.iota(acc, axis=1) < t.m)")
    assert verify_text(tiled.replace("lm.arrive(empty", "lm.arrive(empty"), suggest=False).verdict == "pass"
    late = tiled.replace("                lm.arrive(empty, stage=s)\n", "                if t.m != 70:\n                    lm.arrive(empty, stage=s)\n")
    assert verify_text(late, suggest=False).verdict == "undecided"


def test_counts_that_differ_beyond_what_was_tried_are_compared_as_expressions() -> None:
    capped = RING.replace(CONSUMER, CONSUMER.replace("lm.range(K)", "lm.range(lm.min(K, 100))"))
    (error,) = verify_text(capped, suggest=False).errors
    assert error.code == "Q002" and "lm.min(K, 100)" in error.message
    assert verify_text(RING.replace("lm.range(K)", "lm.range(lm.min(K, 100))")).verdict == "pass"
    assert verify_text(capped.replace("    pool = lm", "    lm.assume(K <= 100)\n    pool = lm")).verdict == "pass"


def test_a_loop_as_long_as_the_round_of_the_one_around_it_is_walked() -> None:
    inner = {
        "for k in lm.range(K):\n            s = lm.step(ring)\n            lm.wait(empty, stage=s)\n            v.tma_load(A, coords=(0, k * 64), stage=s, barrier=full)":
        "for i in lm.range(K):\n            for k in lm.range(i):\n                s = lm.step(ring)\n                lm.wait(empty, stage=s)\n                v.tma_load(A, coords=(0, k * 64), stage=s, barrier=full)",
        'for k in lm.range(K):\n            s = lm.step(ring)\n            lm.wait(full, stage=s)\n            acc = acc + v[s].load(form="vec", like=acc)\n            lm.arrive(empty, stage=s)':
        'for i in lm.range(K):\n            for k in lm.range(i):\n                s = lm.step(ring)\n                lm.wait(full, stage=s)\n                acc = acc + v[s].load(form="vec", like=acc)\n                lm.arrive(empty, stage=s)',
    }  # fmt: skip
    text = RING
    for old, new in inner.items():
        assert old in text
        text = text.replace(old, new)
    assert verify_text(text).verdict == "pass"
    assert verify_text(text.replace("                lm.arrive(empty, stage=s)\n", "")).errors


BACK = '''
@cake.schedule(target="sm_90a")
def f(lm, A: LM.tma2d[LM.f32], Y: LM.gmem2d[LM.f32, 64, 64]):
    pool = lm.smem(3 * 256)
    v = pool.view(offset=0, shape=(64,), dtype=lm.f32, stage=3)
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=3)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    with load:
        for i in lm.static_range(3):
            s = lm.step(ring)
            v.tma_load(A, coords=(0, i), stage=s, barrier=full)
    with work:
        for i in lm.static_range(3):
            s = lm.step(ring)
            lm.wait(full, stage=s)
        for d in lm.static_range(3):
            lm.store(Y, v[s.prev(d)].load(form="vec"), coords=(0, 2 - d))
'''


def test_the_variable_of_a_static_loop_is_a_distance_known_at_compile_time() -> None:
    assert verify_text(BACK).verdict == "pass"
    (error,) = verify_text(BACK.replace("for d in lm.static_range(3)", "for d in lm.static_range(4)").replace("2 - d", "3 - d")).errors
    assert error.code == "Q006"
    assert [d.code for d in verify_text(BACK.replace("for d in lm.static_range(3)", "for d in lm.range(3)")).errors] == ["N024"]
