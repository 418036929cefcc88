"""Block scales over a run: brought before the product, kept until it has read them, and those of the elements that it multiplies."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from cake_backend.simulate import adversaries, simulate
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.examples import edit

MXF8, PAIR, ROWS, DIRECT = "tcgen05_mxf8_gemm", "tcgen05_nvf4_pair_gemm", "mxf8_mma_sync_gemm", "nvf4_mma_sync_gemm"

BROKEN = [
    ("the copy is left out", MXF8, (("                lm.tmem_copy(ta, ssa[s])\n", ""),), "S027", "`lm.mma` reads columns of `ta` that nothing has written"),
    ("the copy comes behind the product", MXF8, (("                lm.tmem_copy(tb, ssb[s])\n", ""), ("                lm.commit(empty", "                lm.tmem_copy(tb, ssb[s])\n                lm.commit(empty")), "S027", "`tb`"),
    ("only the first word is copied", MXF8, (("                lm.tmem_copy(ta, ssa[s])", "                if k == 0:\n                    lm.tmem_copy(ta, ssa[s])"),), "S045", "from K = 0 and from 128 on by the same scales"),
    ("the slot of the scales is filled again before the copy has read it", MXF8, (("                lm.commit(empty, stage=s)\n", ""), ("                lm.tmem_copy(ta, ssa[s])\n",
        "                lm.commit(empty, stage=s)\n                lm.tmem_copy(ta, ssa[s])\n")), "S003", ""),
    ("scales lie in columns of the result", MXF8, (("ta = lm.tmem(cols=256", "ta = lm.tmem(cols=100"),), "S007", "`accs` and `ta` overlap"),
    ("the scales of the next word", MXF8, (("SA, coords=(0, 0, k, t.m)", "SA, coords=(0, 0, k + 1, t.m)"),), "S045", "its scales count from somewhere else"),
    ("the scales of the first word", MXF8, (("SA, coords=(0, 0, k, t.m)", "SA, coords=(0, 0, 0, t.m)"),), "S045", "`SA` at (0, 0, 0, 1)"),
    ("the scales of the first tile", MXF8, (("SA, coords=(0, 0, k, t.m)", "SA, coords=(0, 0, k, 0)"),), "S045", "scales rows of `a` from 128 and from 0 on by the same scales"),
    ("the scales of another tile", MXF8, (("SA, coords=(0, 0, k, t.m)", "SA, coords=(0, 0, k, t.n)"),), "S045", ""),
    ("the scales of the next tile", MXF8, (("SB, coords=(0, 0, k, t.n)", "SB, coords=(0, 0, k, t.n + 1)"),), "S045", "`SB`"),
    ("the other operand's scales", MXF8, (("scale_a=lm.scales(ta", "scale_a=lm.scales(tb"),), "S045", "scales `a` by scales that move with `b`"),
    ("one atom for all products of a slot", PAIR, (("of_a = lm.scales(ta.cols(16 * j, 16)", "of_a = lm.scales(ta.cols(0, 16)"),), "S045", "from K = 0 and from 64 on by the same scales"),
    ("one atom copied to all places", PAIR, (("ssa[s].rows(32 * j, 32))", "ssa[s].rows(0, 32))"),), "S045", ""),
    ("scales of B by halves", PAIR, (("SB, coords=(0, 0, k * (BK // 64) + j, t.n)", "SB, coords=(0, 0, k * (BK // 64) + j, t.n + lm.cta_rank(\"m\") % 2)"),), "S045", ""),
    ("the same byte for each slice", ROWS, (("wa, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=j", "wa, block=32, dtype=lm.ue8m0, layout=\"frag_row\""),), "S045", "`first` is the number of the slice's first block in its word"),
    ("bytes in the wrong order", ROWS, (("wb, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=j", "wb, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=3 - j"),), "S045", ""),
    ("the slot of the words is freed before they are loaded", ROWS, (("                lm.arrive(empty, stage=s)\n", ""), ("                lm.wait(full, stage=s)\n                wa", "                lm.wait(full, stage=s)\n                lm.arrive(empty, stage=s)\n                wa")), "S003", ""),
    ("words of other rows", ROWS, (("SA, coords=(t.m * BM, k)", "SA, coords=(0, k)"),), "S045", "scales rows of `a` from `M` = 64 on by the scales of rows from 0 on"),
    ("words loaded from the wrong block", DIRECT, (("SA, coords=(t.m * BM, k * 2 + j)", "SA, coords=(t.m * BM, k * 2)"),), "S045", ""),
]  # fmt: skip


def program(name: str, text: str) -> Program:
    case = CASES[name]
    found = specialise(parse(text, name).schedules[0], case.params, case.target).program
    assert found is not None
    return found


def wrong(name: str, text: str, policies: int = 0) -> bool:
    """Whether some interleaving gives a fault or other numbers than the oracle's."""
    case, p = CASES[name], program(name, text)
    for setting in range(len(case.settings)):
        filled = case.arguments(setting)
        for policy in adversaries(p)[: policies or None]:
            r = simulate(p, filled.tensors, filled.scalars, ctas=case.grid(setting), policy=policy, seed=1)
            if not r.ok or case.wrong(r.outputs, filled):
                return True
    return False


@pytest.mark.parametrize("name", [MXF8, PAIR, ROWS, DIRECT])
def test_good_schedules_pass_and_are_right(name: str) -> None:
    text = CASES[name].text()
    targets = ("sm_100a", "sm_103a") if "tcgen05" in name else ("sm_120a", "sm_121a")
    for target in targets:
        assert verify_text(text, target=target).verdict == "pass"
    assert not wrong(name, text, 2)  # all interleavings: the tests of the corpus


@pytest.mark.parametrize(("name", "edits", "code", "said"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_what_is_not_is_refused_and_shown(name: str, edits: tuple[tuple[str, str], ...], code: str, said: str) -> None:
    text = edit(CASES[name].text(), *edits)
    errors = verify_text(text, params=CASES[name].params, suggest=False).errors
    assert [d.code for d in errors] == [code]
    assert said in errors[0].message or said in str(errors[0].help) or any(said in x for _, x in errors[0].related)
    assert wrong(name, text)


def test_a_missing_copy_is_put_back_from_the_view_that_nothing_reads() -> None:
    text = edit(CASES[MXF8].text(), ("                lm.tmem_copy(tb, ssb[s])\n", ""))
    (error,) = verify_text(text).errors
    assert error.fixes[0].title == "insert `lm.tmem_copy(tb, ssb[s])`" and verify_text(applied(text, error.fixes[0].edits)).verdict == "pass"


def test_one_word_of_scales_may_serve_all_of_k_and_ones_may_serve_an_operand_without_scales() -> None:
    """A tensor that has one place along K, or one place at all, is read again and again on purpose."""
    text = CASES[MXF8].text()
    per_row = edit(text, ('SA: LM.tma4d[LM.ue8m0, "MB", "KB", 32, 16]', 'SA: LM.tma4d[LM.ue8m0, "MB", 1, 32, 16]'), ("SA, coords=(0, 0, k, t.m)", "SA, coords=(0, 0, 0, t.m)"))
    ones = edit(text, ('SB: LM.tma4d[LM.ue8m0, "NB", "KB", 32, 16]', "SB: LM.tma4d[LM.ue8m0, 1, 1, 32, 16]"), ("SB, coords=(0, 0, k, t.n)", "SB, coords=(0, 0, 0, 0)"))
    for good in (per_row, ones):
        assert verify_text(good).verdict == "pass"


def test_tiles_of_a_batch_may_lie_behind_each_other_in_atoms() -> None:
    """Rows of a batch that end inside an atom: places of the next one do not count from where its rows do."""
    text = CASES[MXF8].text()
    batched = edit(text, ("tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)), raster=\"m\", swizzle=8)", "tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128), 3), names=(\"m\", \"n\", \"b\"))"),
                   ("A: LM.tma2d[LM.e4m3, \"M\", \"K\"]", "A: LM.tma3d[LM.e4m3, 3, \"M\", \"K\"]"), ("(A, coords=(k * 128, t.m * 128)", "(A, coords=(k * 128, t.m * 128, t.b)"),
                   ("MB == lm.cdiv(M, 128) and", "MB == 3 * lm.cdiv(M, 128) and"), ("SA, coords=(0, 0, k, t.m)", "SA, coords=(0, 0, k, t.b * lm.cdiv(M, 128) + t.m)"),
                   ("C: LM.tma2d[LM.bf16, \"M\", \"N\"]", "C: LM.tma3d[LM.bf16, 3, \"M\", \"N\"]"), ("C, coords=(t.n * 128, t.m * 128)", "C, coords=(t.n * 128, t.m * 128, t.b)"))  # fmt: skip
    assert verify_text(batched).verdict == "pass"


SLICES = edit(CASES[MXF8].text(), ('''                lm.mma(accs.cols(128 * d.index, 128), sa[s], sb[s], init=(k == 0),
                       scale_a=lm.scales(ta, block=32, dtype=lm.ue8m0, layout="tmem_128x4"), scale_b=lm.scales(tb, block=32, dtype=lm.ue8m0, layout="tmem_128x4"))
''', '''                for j in lm.static_range(4):
                    lm.mma(accs.cols(128 * d.index, 128), sa[s].cols(32 * j, 32), sb[s].cols(32 * j, 32), init=(k == 0 and j == 0),
                           scale_a=lm.scales(ta, block=32, dtype=lm.ue8m0, layout="tmem_128x4", first=j), scale_b=lm.scales(tb, block=32, dtype=lm.ue8m0, layout="tmem_128x4", first=j))
'''))  # fmt: skip
"""One product a slice of 32 elements, four of which share an atom."""

BULK = edit(CASES[MXF8].text(), ('SA: LM.tma4d[LM.ue8m0, "MB", "KB", 32, 16].const', 'SA: LM.gmem1d[LM.ue8m0, "SN"].const'), ("KB: LM.i32,", "KB: LM.i32, SN: LM.i32,"),
            ("ssa.tma_load(SA, coords=(0, 0, k, t.m), stage=s", "ssa.bulk_load(SA, offset=(t.m * kt + k) * 512, n=512, stage=s"), ("    lm.assume(KB ==", "    lm.assume(SN == lm.cdiv(M, 128) * KB * 512)\n    lm.assume(KB =="))  # fmt: skip
"""Atoms of A lie one behind the other in one axis."""


@pytest.mark.parametrize(("text", "old", "new"), [
    (SLICES, "", ""), (SLICES, "first=j)", "first=0)"), (SLICES, "first=j), scale_b", "first=3 - j), scale_b"),
    (BULK, "", ""), (BULK, "(t.m * kt + k)", "(t.m * kt)"), (BULK, "(t.m * kt + k)", "(t.m * kt + k + 1)"), (BULK, "(t.m * kt + k)", "k"), (BULK, "(t.m * kt + k)", "(t.n * kt + k)"),
])  # fmt: skip
def test_atoms_that_slices_share_and_atoms_of_one_axis_are_followed(text: str, old: str, new: str) -> None:
    verdict = verify_text(edit(text, (old, new)) if old else text, suggest=False)
    assert [d.code for d in verdict.errors] == (["S045"] if old else [])
