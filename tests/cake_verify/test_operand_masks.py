"""Masks of operands: a mask lies where the operand lies that it is of."""

from __future__ import annotations

import numpy as np
import pytest

from bench.verify.cases.case import BF16
from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.forms import Fragment, element, fragment_problem, registers
from cake_verify import verify_text

TEXT = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def heads(lm, Q: LM.gmem2d[LM.bf16, "H", 32], K: LM.gmem2d[LM.bf16, "H", 32], Y: LM.gmem2d[LM.f32, 16, 8], H: LM.i32, *, G=5):
    lm.assume(H >= G)
    work = lm.role(warps=[0])
    with work:
        a = lm.frag(shape=(16, 32), dtype=lm.bf16, form="a")
        b = lm.frag(shape=(8, 32), dtype=lm.bf16, form="b")
        q = lm.load(Q, coords=(0, 0), shape=(16, 32), form="a", mask=lm.in_bounds(a, G, 32))
        k = lm.load(K, coords=(0, 0), shape=(8, 32), form="b", mask=lm.in_bounds(b, G, 30))
        y = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc")
        lm.mma(y, q, lm.where(k < 0, -k, k), init=True)
        lm.store(Y, y, coords=(0, 0))
'''


@pytest.mark.parametrize("form", ["a", "b"])
def test_a_mask_lies_where_its_16_bit_operand_lies(form: str) -> None:
    mask, operand = (Fragment(form, 16, 32, bits, 1) for bits in (1, 16))  # type: ignore[arg-type]  # a form, by the list
    assert fragment_problem(mask) is None
    assert [element(mask, 0, lane, i) for lane in range(32) for i in range(registers(mask))] == [element(operand, 0, lane, i) for lane in range(32) for i in range(registers(operand))]


def test_operands_are_loaded_under_a_mask_and_compared() -> None:
    assert verify_text(TEXT).verdict == "pass"
    (schedule,) = parse(TEXT).schedules
    program = specialise(schedule, target="sm_90a").program
    assert program is not None
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((5, 32), dtype=np.float32).astype(BF16) for _ in range(2))
    run = simulate(program, {"Q": q, "K": k, "Y": np.full((16, 8), np.nan, np.float32)}, {"H": 5})
    assert run.ok, run.faults
    want = np.zeros((16, 8))
    want[:5, :5] = q.astype(float)[:, :30] @ np.abs(k.astype(float))[:, :30].T
    assert np.allclose(run.outputs["Y"], want, atol=1e-3)
    assert "heads" in lower(program).text
