"""Operands in tensor memory: stores waited for before they are handed over, results read and written in place, columns that overlap."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from bench.verify.cases import CASES
from bench.verify.truth import program_of
from cake_backend.simulate import adversaries, simulate
from cake_ir.frontend import parse, specialise
from cake_verify.gates import verify_text

GOOD = '''
@cake.schedule(target="sm_100a")
def f(lm, P: LM.gmem2d[LM.bf16, 128, 64], V: LM.tma2d[LM.bf16, 64, 64], O: LM.gmem2d[LM.f32, 128, 64]):
    pool = lm.smem(8192)
    sv = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=64, shape=(128, 64), dtype=lm.f32)
    prob = lm.tmem(cols=64, width=32, shape=(128, 64), dtype=lm.bf16)
    soft = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    one = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=one, prod=[load], cons=[mma], arrive="tx")
    p_full = lm.barrier(pipeline=one, prod=[soft], cons=[mma], arrive="warp")
    done = lm.barrier(pipeline=one, prod=[mma], cons=[soft], arrive="mma")
    with load:
        s = lm.step(one)
        sv.tma_load(V, coords=(0, 0), stage=s, barrier=full)
    with soft:
        s = lm.step(one)
        p = lm.load(P, coords=(0, 0), shape=(128, 64), form="rows")
        lm.tmem_store(prob, p)
        lm.tmem_wait("st")
        lm.arrive(p_full, stage=s)
        lm.wait(done, stage=s)
        o = lm.tmem_load(acc)
        lm.tmem_wait("ld")
        lm.store(O, o, coords=(0, 0))
    with mma:
        s = lm.step(one)
        lm.wait(full, stage=s)
        lm.wait(p_full, stage=s)
        lm.mma(acc, prob, sv.T, init=True)
        lm.commit(done, stage=s)
'''
STORE = "        lm.store(O, o, coords=(0, 0))"
RESCALED = """        lm.tmem_store(acc, o * 2.0)
        lm.tmem_wait("st")
        r = lm.tmem_load(acc)
        lm.tmem_wait("ld")
        lm.store(O, r, coords=(0, 0))"""
LATE = '        lm.arrive(p_full, stage=s)\n        lm.tmem_wait("st")\n'

BROKEN = [
    ("the store is not waited for", (('        lm.tmem_wait("st")\n', ""),), "S014"),
    ("the store is waited for too late", (('        lm.tmem_wait("st")\n        lm.arrive(p_full, stage=s)\n', LATE),), "S014"),
    ("the operand is not waited for", (("        lm.wait(p_full, stage=s)\n", ""),), "S004"),
    ("the result is not waited for", (("        lm.wait(done, stage=s)\n", ""),), "S027"),
    ("the operand is replaced while it is read", (("        lm.wait(done, stage=s)\n", '        lm.tmem_store(prob, lm.cast(p * 2.0, lm.bf16))\n        lm.tmem_wait("st")\n        lm.wait(done, stage=s)\n'),), "S004"),
    ("a result is replaced before its load has come", (('        lm.tmem_wait("ld")\n' + STORE, RESCALED),), "S003"),
    ("a result is read again before its store has gone", ((STORE, RESCALED.replace('        lm.tmem_wait("st")\n', "", 1).replace('("ld")\n', '("ld")\n        lm.tmem_wait("st")\n')),), "S004"),
]  # fmt: skip


def wrong(text: str, times: float = 1.0) -> bool:
    """Whether some interleaving gives a fault or other numbers."""
    rng = np.random.default_rng(0)
    p, v = (rng.integers(-3, 4, shape).astype(ml_dtypes.bfloat16) for shape in ((128, 64), (64, 64)))
    want = times * (p.astype(np.float64) @ v.astype(np.float64))
    program = specialise(parse(text, "t").schedules[0], {}, "sm_100a").program
    assert program is not None
    for policy in adversaries(program):
        for seed in (0, 1):
            r = simulate(program, {"P": p, "V": v, "O": np.zeros((128, 64), np.float32)}, {}, policy=policy, seed=seed)
            if not r.ok or not np.array_equal(r.outputs["O"], want):
                return True
    return False


@pytest.mark.parametrize(("text", "times"), [(GOOD, 1.0), (GOOD.replace(STORE, RESCALED), 2.0)], ids=["operand", "in place"])
def test_what_is_handed_over_in_order_passes_both(text: str, times: float) -> None:
    assert verify_text(text).verdict == "pass"
    assert not wrong(text, times)


@pytest.mark.parametrize(("edits", "code"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_what_is_not_is_refused_and_shown(edits: tuple[tuple[str, str], ...], code: str) -> None:
    text = GOOD
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert [d.code for d in verify_text(text, suggest=False).errors] == [code]
    assert wrong(text, 2.0 if "o * 2.0" in text else 1.0)


def test_a_product_does_not_write_the_columns_that_it_reads() -> None:
    (error,) = verify_text(GOOD.replace("cols=64, width=32", "cols=32, width=32"), suggest=False).errors
    assert error.code == "S007" and "`acc` and `prob` overlap" in error.message


@pytest.mark.parametrize(("slots", "inside"), [(3, True), (4, True), (5, False)])
def test_a_slot_that_places_columns_has_its_columns_in_the_region(slots: int, inside: bool) -> None:
    text = (Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus" / "tcgen05_fp8_promote.py").read_text("utf-8")
    found = verify_text(text.replace("sets = lm.pipeline(stages=4)", f"sets = lm.pipeline(stages={slots})"))
    assert [d.code for d in found.errors] == ([] if inside else ["S032"]), found.errors


@pytest.mark.parametrize(("slots", "reached"), [(4, ""), (5, "512..640 of tensor memory, `parts` is 0..512")])
def test_columns_that_nothing_has_allocated_are_a_fault_of_the_run(slots: int, reached: str) -> None:
    text = (Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus" / "tcgen05_fp8_promote.py").read_text("utf-8").replace("sets = lm.pipeline(stages=4)", f"sets = lm.pipeline(stages={slots})")
    case = CASES["tcgen05_fp8_promote"]
    program, filled = program_of(text, case), case.arguments(0)
    assert program is not None
    run = simulate(program, filled.tensors, filled.scalars, ctas=2)
    assert run.ok == (not reached) and (not reached or reached in run.faults[0].message)
