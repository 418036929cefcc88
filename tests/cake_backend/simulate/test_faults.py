"""Faults of the machine, one small schedule each, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sim_cases import GEMM_SM80, GEMM_WS, KMEANS, RMSNORM
from sim_schedules import E4M3, caught, nan, normal, program
from test_language_data import FP8, SOFTMAX, TRANSPOSED

from cake_backend.simulate import MEANING, adversaries, policy_named, simulate
from cake_verify import verify_text
from cake_verify.rule import pages


def fp8(*edits: tuple[str, str]) -> set[str]:
    text = FP8
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    a, b = normal(1, 64, 128, dtype=np.float32).astype(E4M3), normal(2, 128, 128, dtype=np.float32).astype(E4M3)
    return caught(program(text), {"A": a, "B": b, "C": nan(64, 128, dtype=E4M3)}, ctas=1)


def test_a_copy_that_is_never_waited_for_is_in_flight_at_exit() -> None:
    assert "X003" in fp8(
        ("        lm.wait(full, stage=s)\n        lm.mma(acc, a, b, init=True)\n        lm.mma_wait(pending=0)\n", ""),
        ("lm.cast(acc, lm.e4m3)", 'lm.frag(shape=(64, 128), dtype=lm.e4m3, form="acc", init=0.0)'),
    )


def test_a_store_that_is_never_waited_for_is_in_flight_at_exit() -> None:
    assert "X003" in fp8(("        lm.store_wait(pending=0)\n", ""))


def test_an_accumulator_read_before_its_wait_is_a_register_hazard() -> None:
    assert "X005" in fp8(
        (
            "        lm.mma_wait(pending=0)\n        c.store(lm.cast(acc, lm.e4m3))\n",
            "        c.store(lm.cast(acc, lm.e4m3))\n        lm.mma_wait(pending=0)\n",
        )
    )


def test_accumulating_into_registers_that_nothing_was_written_to_reaches_the_output_as_nan() -> None:
    assert "X007" in fp8((", init=True)", ")"))


def test_a_fence_in_front_of_the_writes_does_not_cover_them() -> None:
    assert "X008" in fp8(
        (
            "        c.store(lm.cast(acc, lm.e4m3))\n        lm.fence_proxy()\n",
            "        lm.fence_proxy()\n        c.store(lm.cast(acc, lm.e4m3))\n",
        )
    )


def test_one_thread_that_stores_for_warps_that_have_not_written_yet_is_found() -> None:
    codes = fp8(("        lm.sync(cta)\n", ""))
    assert codes & {"X004", "X007", "X008"}


def test_operands_still_in_flight_are_a_hazard() -> None:
    assert "X004" in fp8(
        (
            "        lm.wait(full, stage=s)\n        lm.mma(acc, a, b, init=True)\n",
            "        lm.mma(acc, a, b, init=True)\n        lm.wait(full, stage=s)\n",
        )
    )


def test_an_element_outside_its_tensor_ends_the_run() -> None:
    text = SOFTMAX.replace(", coords=(0, row), clip=True)\n", ", coords=(0, row))\n").replace("clip=True, fill=0)", "clip=True)")
    r = simulate(program(text), {"X": normal(1, 9, 200, dtype=np.float32), "Y": nan(9, 190, dtype=np.float32)}, {"ROWS": 9})
    assert [f.code for f in r.faults] == ["X006"] and "`Y`" in r.faults[0].message and r.faults[0].facts["expected"] == [9, 190]


def test_two_ctas_that_write_different_values_to_one_element_are_found() -> None:
    text = SOFTMAX.replace("            if row < ROWS:\n", "            if row < ROWS:\n                row = lm.max(row - 4, 0)\n")
    x = normal(1, 9, 200, dtype=np.float32)
    assert simulate(program(text), {"X": x, "Y": nan(9, 200, dtype=np.float32)}, {"ROWS": 9}, ctas=2).ok  # equal values
    text = text.replace('lm.store(Y, p / lm.reduce(p, "add")', "lm.store(Y, p * lm.cast(lm.iota(p, axis=0, base=t.r), lm.f32)")
    r = simulate(program(text), {"X": x, "Y": nan(9, 200, dtype=np.float32)}, {"ROWS": 9}, ctas=2)
    assert "X009" in {f.code for f in r.faults}


def test_roles_that_ask_for_more_registers_than_the_pool_has_hang() -> None:
    r = KMEANS.run(("regs=232, members=2", "regs=240, members=2"))
    assert [f.code for f in r.faults] == ["X001"] and "more registers a thread" in r.faults[0].message


def test_a_claimed_arrival_count_that_is_wrong_hangs_or_arrives_too_often() -> None:
    fewer = KMEANS.run(
        (
            'x_empty = lm.barrier(pipeline=xp, prod=[math], cons=[load], arrive="warp", primed=True)',
            'x_empty = lm.barrier(pipeline=xp, prod=[math], cons=[load], arrive="warp", primed=True, init_count=9)',
        )
    )
    assert [f.code for f in fewer.faults] == ["X001"]


def test_the_limit_ends_a_run() -> None:
    r = GEMM_WS.run(limit=100)
    assert [f.code for f in r.faults] == ["X010"] and r.faults[0].facts["limit"] == 100


TURNED_COPY = """
@cake.schedule(target="sm_90a")
def turned(lm, X: LM.gmem2d[LM.bf16, 64, 64], Y: LM.gmem2d[LM.bf16, 64, 64]):
    pool = lm.smem(8192)
    v = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16)
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    with work:
        v.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.fence_proxy()
        lm.sync(own)
        v.T.bulk_store(Y, coords=(0, 0), rows=64)
        lm.store_wait(pending=0)
"""


def test_what_is_not_simulated_is_refused_before_anything_runs() -> None:
    """The gates refuse this too (D018); the simulator is asked past them."""
    r = simulate(program(TURNED_COPY), {"X": normal(1, 64, 64), "Y": nan(64, 64)}, {})
    assert [f.code for f in r.faults] == ["X011"] and r.events == 0 and r.faults[0].span.line > 0


@pytest.mark.parametrize(
    ("tensors", "scalars", "said"),
    [
        ({"A": GEMM_SM80.tensors["A"]}, GEMM_SM80.scalars, "`B`"),
        ({**GEMM_SM80.tensors, "A": GEMM_SM80.tensors["A"][0]}, GEMM_SM80.scalars, "2 dimensions"),
        ({**GEMM_SM80.tensors, "A": GEMM_SM80.tensors["A"].astype(np.float32)}, GEMM_SM80.scalars, "bf16"),
        (GEMM_SM80.tensors, {"M": 200, "N": 136}, "`K`"),
    ],
)
def test_wrong_arguments_are_named(tensors: dict[str, object], scalars: dict[str, int], said: str) -> None:
    r = simulate(GEMM_SM80.program(), tensors, scalars)
    assert [f.code for f in r.faults] == ["X013"] and said in r.faults[0].message


def test_every_code_has_a_meaning_and_messages_follow_the_house_style() -> None:
    assert all(code[0] == "X" and len(code) == 4 and text == text.strip().rstrip(".") for code, text in MEANING.items())


@pytest.mark.parametrize("name", ["nothing", "late:sync", "lead:x", ""])
def test_an_unknown_policy_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no interleaving policy"):
        policy_named(name)


def test_the_adversaries_of_a_program_are_named_by_what_it_has() -> None:
    names = {p.name for p in adversaries(GEMM_WS.program())}
    assert {
        "canonical",
        "late",
        "late:tma",
        "late:mma",
        "late:store",
        "starve:math.1",
        "hungry:load",
        "lead:0",
        "lag:3",
        "drift",
        "priorities",
    } <= names
    assert not any("cp_async" in n for n in names)
    assert all(policy_named(n).name == n for n in names)


def test_data_of_the_upstream_kernel_read_before_the_wait_for_it_is_found() -> None:
    case = RMSNORM
    moved = (
        ("        lm.pdl_wait()                                                            # X comes from the previous kernel\n", ""),
        ("            s = lm.step(ring)\n", "            lm.pdl_wait()\n            s = lm.step(ring)\n"),
    )
    codes = {f.code for p in adversaries(case.program(*moved)) for f in case.run(*moved, policy=p).faults}
    assert codes == {"X014"}


def test_dropping_a_step_announces_bytes_twice_in_one_phase() -> None:
    r = GEMM_WS.run(
        (
            "                s = lm.step(ab)\n                lm.wait(ab_empty, stage=s)\n",
            "                s = lm.at(ab)\n                lm.wait(ab_empty, stage=s)\n",
        ),
        (
            "            for k in lm.range(kt):\n                s = lm.at(ab)",
            "            lm.step(ab)\n            for k in lm.range(kt):\n                s = lm.at(ab)",
        ),
    )
    assert r.faults and r.faults[0].code in ("X001", "X002", "X004")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("lm.smem(64 * 128 + 128 * 128 + 64 * 128)", "lm.smem(64 * 128 + 128 * 128 + 64 * 128 - 16)", "X006"),
        ("offset=64 * 128,", "offset=64 * 128 + 64,", "X016"),
        ('shape=(128, 128), dtype=lm.e4m3, swizzle="128b"', "shape=(128, 128), dtype=lm.e4m3", "X016"),
    ],
)
def test_a_view_past_its_pool_misaligned_or_unfit_as_an_operand_is_named(old: str, new: str, code: str) -> None:
    assert code in fp8((old, new))


def test_rows_that_a_tensor_map_cannot_step_over_are_refused() -> None:
    tensors = {"A": normal(1, 300, 201), "B": normal(2, 200, 201), "C": nan(300, 200)}
    r = simulate(GEMM_WS.program(), tensors, {"M": 300, "N": 200, "K": 201})
    assert [f.code for f in r.faults] == ["X015"] and "402 bytes" in r.faults[0].message


def test_a_swizzled_view_that_threads_use_must_start_where_the_pattern_repeats() -> None:
    text = TRANSPOSED.replace("lm.smem(64 * 64 * 2 + 64 * 4 + 64 * 4)", "lm.smem(65 * 64 * 2 + 64 * 4 + 64 * 4)")
    text = text.replace("tile = pool.view(offset=0,", "tile = pool.view(offset=128,").replace("offset=64 * 64 * 2", "offset=65 * 64 * 2")
    arrays = {"X": normal(1, 64, 64), "Y": nan(64, 64), **{n: nan(64, dtype=np.float32) for n in "RC"}, "S": nan(2, dtype=np.float32)}
    r = simulate(program(text), arrays, {})
    assert [f.code for f in r.faults] == ["X015"] and "`tile`" in r.faults[0].message


def test_a_tensor_copy_starts_on_16_bytes() -> None:
    page = pages()["H024"]
    assert verify_text(page.passing).verdict == "pass"
    for text, code in ((page.failing, "X015"), (page.passing, "")):
        p = program(text)
        m, n, k = 64, 128, 256
        args = {"A": normal(1, m, k), "B": normal(2, n, k), "C": nan(m, n)}
        run = simulate(p, args, {"M": m, "N": n, "K": k})
        assert {f.code for f in run.faults} == ({code} if code else set())


STRANGER = """
@cake.schedule(target="sm_90a")
def stranger(lm, Y: LM.gmem1d[LM.i32, 32]):
    work = lm.role(warps=range(0, 2))
    other = lm.role(warps=range(2, 3))
    own = lm.named_barrier(other)
    with work:
        lm.sync(own)
    with other:
        lm.sync(own)
"""


def test_a_warp_that_a_named_barrier_does_not_count_may_not_come_to_it() -> None:
    run = simulate(program(STRANGER), {"Y": np.zeros(32, np.int32)}, {})
    assert [f.code for f in run.faults] == ["X002"] and "`work` comes to `own`, which counts `other`" in run.faults[0].message
