"""Block scales are declared from a closed list, and cover the rows and the blocks of K of the operand that they scale."""

from __future__ import annotations

import pytest

from cake_ir.forms import Fragment, element, owners, registers, warp_rectangles
from cake_ir.frontend import parse, specialise
from cake_ir.json import from_json, to_json
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue
from cake_ir.printer import print_program
from cake_ir.program import Program
from cake_ir.types import ScalesT
from cake_verify.gates import verify_text
from cake_verify.rules.examples import BLOCK_SCALED as GOOD
from cake_verify.rules.examples import edit

ROWS = '''
@cake.schedule(target="sm_120a")
def f(lm, A: LM.gmem2d[LM.e4m3], B: LM.gmem2d[LM.e4m3], SA: LM.gmem1d[LM.u32], SB: LM.gmem1d[LM.u32], C: LM.gmem2d[LM.f32]):
    work = lm.role(warps=range(0, 4))
    with work:
        acc = lm.frag(shape=(64, 32), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
        a = lm.load(A, coords=(0, 0), shape=(64, 32), form="a", like=acc)
        b = lm.load(B, coords=(0, 0), shape=(32, 32), form="b", like=acc)
        wa = lm.load(SA, coords=(0,), shape=(64,), form="rowvec", like=a)
        wb = lm.load(SB, coords=(0,), shape=(32,), form="rowvec", like=b)
        of_a = lm.scales(wa, block=32, dtype=lm.ue8m0, layout="frag_row", first=1)
        of_b = lm.scales(wb, block=32, dtype=lm.ue8m0, layout="frag_row", first=1)
        lm.mma(acc, a, b, scale_a=of_a, scale_b=of_b)
        lm.store(C, acc, coords=(0, 0))
'''

REGIONS = ("SA: LM.tma4d[LM.ue8m0", "shape=(32, 16), dtype=lm.ue8m0", "shape=(128, 16), dtype=lm.ue8m0")
A, B = 'lm.scales(ta, block=32, dtype=lm.ue8m0, layout="tmem_128x4")', 'lm.scales(tb, block=32, dtype=lm.ue8m0, layout="tmem_128x4")'


def program(text: str, target: str = "sm_100a") -> Program:
    found = specialise(parse(text, "t").schedules[0], {}, target).program
    assert found is not None
    return found


def test_good_ones_pass_where_the_instruction_exists() -> None:
    for target in ("sm_100a", "sm_103a"):
        assert verify_text(GOOD, target=target).verdict == "pass"
    for target in ("sm_120a", "sm_121a"):
        assert verify_text(ROWS, target=target).verdict == "pass"


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a"])
def test_rows_in_registers_are_for_the_targets_whose_mma_sync_scales(target: str) -> None:
    (error,) = verify_text(ROWS, target=target, suggest=False).errors
    assert error.code == "H004" and (f"{target} has no block-scaled mma.sync" in error.message)


@pytest.mark.parametrize(("text", "old", "new", "code", "said"), [
    (GOOD, A, A.replace("block=32", "block=64"), "N061", "`lm.scales` has no block 64"),
    (GOOD, A, A.replace("lm.ue8m0", "lm.bf16"), "N061", "`lm.scales` has no dtype bf16"),
    (GOOD, A, A.replace("tmem_128x4", "rows"), "N061", "`lm.scales` has no layout rows"),
    (GOOD, A, A.replace("tmem_128x4", "frag_row"), "D039", "do not lie in layout `frag_row`"),
    (GOOD, A, A.replace("ta,", "sa[s],"), "D039", "reads block scales from tensor memory or from registers"),
    (GOOD, A, A.replace("lm.ue8m0", "lm.e4m3"), "D003", "scales of e4m3 are held as e4m3 or u8, found ue8m0"),
    (GOOD, A, A.replace("ta,", "ta.cols(0, 8),"), "D039", "`ta` has 128 x 8 here"),
    (GOOD, f"scale_a={A},\n                   ", "", "D039", "`scale_b` is given without `scale_a`"),
    (GOOD, f"scale_a={A}", "scale_a=ta", "N045", "`scale_a` takes block scales"),
    (GOOD, B, B.replace("block=32", "block=16"), "D039", "the scales of `a` have block 32, those of `b` 16"),
    (GOOD, f"{A},\n                   scale_b={B}", f"{A[:-1]}, first=2),\n                   scale_b={B[:-1]}, first=2)", "D039", "4 scales from number 2 on of 128 rows fill 32 bytes a lane, `ta` gives 16"),
    (GOOD, "shape=(128, 128), dtype=lm.f32", "shape=(64, 128), dtype=lm.f32", "D001", "64 accumulator rows"),
    (ROWS, "wa, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=1", "wa, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=4", "D039", "`first` is 4"),
    (ROWS, "like=a)", "like=b)", "D002", "follow the rows of a fragment in form `b`"),
    (ROWS, "like=b)\n        of", "like=a)\n        of", "D002", "follow the rows of a fragment in form `a`"),
    (ROWS, "shape=(64,), form", "shape=(128,), form", "D039", "has 64 rows of `a`, their scales are 128"),
    (ROWS, "shape=(64,), form=\"rowvec\", like=a", "shape=(64,), form=\"vec\"", "D002", "scales of rows are a row vector, found form `vec`"),
    (ROWS.replace("SA: LM.gmem1d[LM.u32]", "SA: LM.gmem1d[LM.u8]"), "first=1)\n        of_b", "first=0)\n        of_b", None, ""),
    (ROWS.replace("SA: LM.gmem1d[LM.u32]", "SA: LM.gmem1d[LM.u8]"), "(64, 32), form", "(64, 32), form", "D039", "1 scales from number 1 on of a row are more than the 1"),
])  # fmt: skip
def test_what_does_not_cover_the_operand_is_refused(text: str, old: str, new: str, code: str | None, said: str) -> None:
    verdict = verify_text(edit(text, (old, new)) if old != new else text, suggest=False)
    assert [d.code for d in verdict.errors] == ([code] if code else [])
    assert all(said in d.message for d in verdict.errors)


def retyped(text: str, dtype: str) -> str:
    return text.replace("lm.ue8m0", f"lm.{dtype}").replace("LM.ue8m0", f"LM.{dtype}")


@pytest.mark.parametrize(("text", "said"), [
    (retyped(GOOD, "e4m3"), "sm_100a scales mxf8f6f4 by ue8m0 every 32 elements in tmem_128x4, found e4m3 every 32 elements in tmem_128x4"),
    (ROWS.replace("dtype=lm.ue8m0", "dtype=lm.e4m3"), "sm_120a scales mxf8f6f4 by ue8m0 every 32 elements in frag_row, found e4m3 every 32"),
])  # fmt: skip
def test_scales_of_another_kind_are_refused_by_the_target(text: str, said: str) -> None:
    (error,) = verify_text(text, suggest=False).errors
    assert error.code == "H025" and said in error.message


def test_where_the_first_scale_stands_is_checked_over_all_rounds_of_a_loop() -> None:
    fp4 = ROWS.replace("LM.e4m3", "LM.e2m1").replace("(64, 32), form=\"a\"", "(64, 64), form=\"a\"").replace("(32, 32), form", "(32, 64), form").replace("first=1", "first=2")
    assert verify_text(fp4).verdict == "pass"
    looped = edit(fp4, ("        lm.mma(acc", "        for j in lm.static_range(2):\n            lm.mma(acc"), ("scale_a=of_a, scale_b=of_b", "scale_a=lm.scales(wa, block=32, dtype=lm.ue8m0, "
                        "layout=\"frag_row\", first=j), scale_b=lm.scales(wb, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=j)"))  # fmt: skip
    (error,) = verify_text(looped, suggest=False).errors
    assert error.code == "H025" and "`first` comes to 1: an instruction that takes 2 scales of a row starts at 0 or 2" in error.message
    assert "H025" not in {d.code for d in verify_text(looped.replace("first=j", "first=2 * j"), suggest=False).errors}


def test_a_name_for_scales_stands_for_them_where_it_was_bound() -> None:
    named = edit(GOOD, ("            lm.mma(acc", f"            of_a = {A}\n            lm.mma(acc"), (f"scale_a={A}", "scale_a=of_a"))
    assert verify_text(named).verdict == "pass"
    assert print_program(program(named)) == print_program(program(GOOD))


def test_a_program_with_scales_prints_and_reads_as_the_same() -> None:
    p = program(GOOD)
    assert from_json(to_json(p)) is not None
    assert print_program(program(print_program(p))) == print_program(p)
    assert print_program(program(print_program(program(ROWS, "sm_120a")), "sm_120a")) == print_program(program(ROWS, "sm_120a"))
    (mma,) = (op for op in p.ops if op.name == "mma")
    assert isinstance(mma.operands["scale_a"].type, ScalesT)  # type: ignore[union-attr]  # an expression
    (issue,) = (e for e in effects_of(mma, p) if isinstance(e, Issue))
    assert [(t.operand, t.space) for t in issue.touches if t.operand.startswith("scale")] == [("scale_a", "tmem"), ("scale_b", "tmem")]


def test_a_row_vector_of_b_lies_where_the_rows_of_b_do() -> None:
    for split, warps in ((None, 2), ((2, 2), 4), ((1, 4), 4)):
        b, v = Fragment("b", 64, 32, 8, warps, split), Fragment("rowvec", 64, 1, 32, warps, split, parent="b")
        assert registers(v) == 64 // (split[1] if split else 1) // 8
        for row in (0, 7, 8, 40, 63):
            have = {(w, lane) for w, lane, _ in owners(v, row, 0)}
            assert have == {(w, lane) for k in range(32) for w, lane, _ in owners(b, row, k)}
        for warp in range(warps):
            assert [(r, n) for r, n, _, _ in warp_rectangles(v, warp)] == [(r, n) for r, n, _, _ in warp_rectangles(b, warp)]
            assert all(element(v, warp, lane, i) == (element(v, warp, 0, 0)[0] + 8 * i + lane // 4, 0) for lane in (0, 5, 31) for i in range(registers(v)))  # type: ignore[index]  # it holds one
