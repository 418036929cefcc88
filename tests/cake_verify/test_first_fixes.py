"""The first fix of the first error, for mistakes in schedules of the corpus whose diagnostics were once read without the change beside them."""

import pytest

from bench.verify.cases import CASES
from cake_verify import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.examples import edit

RESTORED = {
    "a load completes on the barrier that frees slots": ("shipped_kmeans", "smem_n.tma_load(MU_SQ, coords=(k * BN, t.b), stage=s, barrier=c_full)", "smem_n.tma_load(MU_SQ, coords=(k * BN, t.b), stage=s, barrier=c_empty)"),
    "a slot is released in front of the wait": ("gemm_wgrad", "                lm.mma_wait(pending=0)\n                lm.arrive(empty, stage=s)\n", "                lm.arrive(empty, stage=s)\n                lm.mma_wait(pending=0)\n"),
    "coordinates are exchanged": ("gemm_resident_b", "rows.tma_load(X, coords=(0, t.m * 64)", "rows.tma_load(X, coords=(t.m * 64, 0)"),
    "a sum has no start": ("cp_async_fp8", ", warps=(2, 2), init=0.0)", ", warps=(2, 2))"),
    "a condition is missing in front of what looks back": ("gemm_grouped", "                if k > 0:\n", "                if True:\n"),
    "all members take one part": ("attention_varlen", "sq.rows(64 * math.index, 64)", "sq.rows(0, 64)"),
    "a wait leaves one more in flight": ("shipped_gemm_hopper", "lm.mma_wait(pending=DEPTH)", "lm.mma_wait(pending=DEPTH + 1)"),
    "an operand is read twice and another never": ("gated_linear_attention", "lm.mma(ot, sa, sq[s], init=True)", "lm.mma(ot, sa, sk[s], init=True)"),
    "a block does not wait for the one before": ("running_sum", "                lm.spin(READY, t.r - 1, 1)\n", ""),
    "a block waits for its own word": ("running_sum", "lm.spin(READY, t.r - 1, 1)", "lm.spin(READY, t.r, 1)"),
    "a block raises the next word": ("running_sum", "lm.signal(READY, t.r, 1)", "lm.signal(READY, t.r + 1, 1)"),
    "a block raises a word too low": ("running_sum", "lm.signal(READY, t.r, 1)", "lm.signal(READY, t.r, 0)"),
    "what is handed on is not stored": ("running_sum", "            lm.store(LAST, total, coords=(0, t.r))\n", ""),
    "a chain starts one tile late": ("running_sum", "if t.r > 0:", "if t.r > 1:"),
    "a turn waits for another tile's word": ("gemm_serial_k", "lm.spin(TURN, t.n * mt + t.m, t.p)", "lm.spin(TURN, 0, t.p)"),
    "the first part adds what nobody has written": ("gemm_serial_k", "if t.p > 0:", "if t.p >= 0:"),
    "a slot of tensor memory is not handed over": ("tcgen05_gemm", "            lm.commit(acc_full, stage=d)\n", ""),
    "a slot is not released by the tensor core": ("tcgen05_gemm", "                lm.commit(empty, stage=s)\n", ""),
    "a tile is not staged": ("gemm_grouped", "            mine.store(lm.cast(acc, lm.bf16))\n", ""),
    "a part of a tile is not staged": ("gemm_deep", "                part.store(lm.cast(acc.cols(32 * j, 32), lm.f16))\n", ""),
    "more members than one write": ("attention_paged_decode", "if work.index == 0:", "if work.index != 0:"),
}

VERIFIED = {
    "a turn is passed on that nobody took": ("gemm_pingpong", "            lm.wait(turn)\n", "            pass\n"),
    "the last product of a loop is not waited for": ("attention_varlen", "                    lm.mma_wait(pending=0)\n                    lm.arrive(v_empty", "                    lm.arrive(v_empty"),
    "accumulators share columns": ("tcgen05_mlp", "result = lm.tmem(cols=2 * BF", "result = lm.tmem(cols=96"),
    "copies of a prologue are not closed": ("cp_async_fp8", "                lm.cp_commit()\n            for k", "            for k"),
    "a sequence ends in front of the last rows": ("gated_linear_attention", "rows=lm.min(C, eos - bos - i * C)", "rows=lm.min(C, eos - bos - i * C) + 1"),
    "a sequence loses its last row": ("attention_varlen", "rows=rows)", "rows=rows - 1)"),
    "tensor memory ends behind its last column": ("tcgen05_mlp", "result = lm.tmem(cols=2 * BF", "result = lm.tmem(cols=608"),
    "a turn is not passed on": ("gemm_serial_k", "            lm.signal(TURN, t.n * mt + t.m, t.p + 1)", "            pass"),
    "a row too few of a group": ("gemm_grouped", "rows=rows)", "rows=rows - 1)"),
    "a row too many of a group": ("gemm_grouped", "rows=rows)", "rows=rows + 1)"),
    "all rows of a tile at the end of a group": ("gemm_grouped", ", rows=rows)", ")"),
    "a product from zero throws a sum away": ("attention_causal", "            lm.mma(o, pa, skv[v].T)\n            lm.mma_wait(pending=0)\n", "            lm.mma(o, pa, skv[v].T, init=True)\n            lm.mma_wait(pending=0)\n"),
}


def mended(subject: str, right: str, wrong: str) -> tuple[str, str, str]:
    """The good text, the broken one, and the broken one after its first fix."""
    case = CASES[subject]
    broken = edit(case.text(), (right, wrong))
    errors = verify_text(broken, params=case.params, target=case.target).errors
    assert errors and errors[0].fixes and errors[0].fixes[0].grade in ("certain", "likely"), [(e.code, e.message) for e in errors]
    return case.text(), broken, applied(broken, errors[0].fixes[0].edits)


@pytest.mark.parametrize("name", RESTORED)
def test_the_first_fix_takes_the_mistake_back(name: str) -> None:
    good, _, new = mended(*RESTORED[name])
    assert new == good


@pytest.mark.parametrize("name", VERIFIED)
def test_the_first_fix_makes_it_verify(name: str) -> None:
    subject = VERIFIED[name][0]
    _, broken, new = mended(*VERIFIED[name])
    assert new != broken
    verdict = verify_text(new, params=CASES[subject].params, target=CASES[subject].target)
    assert verdict.verdict == "pass", verdict.to_text()


def test_nothing_is_put_in_front_of_an_elif() -> None:
    case = CASES["shipped_gemm_hopper"]
    broken = edit(case.text(), ("lm.mma_wait(pending=DEPTH)", "lm.mma_wait(pending=DEPTH + 1)"))
    for fix in verify_text(broken, params=case.params, target=case.target).errors[0].fixes:
        compile(applied(broken, fix.edits), "fixed", "exec")


@pytest.mark.parametrize(("subject", "meeting"), [("gemm_wgrad", "lm.sync(own)"), ("gemm_tma_mma_sync", "lm.sync(cta)"), ("cp_async_double_sync", "lm.sync(cta)"), ("gemm_aliased_epilogue", "lm.sync(both)")])
def test_meetings_that_are_missing_everywhere_are_put_in_together(subject: str, meeting: str) -> None:
    case = CASES[subject]
    broken = case.text().replace(meeting, "pass")
    error = verify_text(broken, params=case.params, target=case.target).errors[0]
    new = applied(broken, error.fixes[0].edits)
    assert verify_text(new, params=case.params, target=case.target).verdict == "pass" and new.count(meeting) <= case.text().count(meeting)


def test_a_line_goes_in_front_of_the_statement_and_not_into_it() -> None:
    case = CASES["gemm_serial_k"]
    broken = edit(case.text(), ("            if t.p > 0:\n", "            if True:\n"))
    fixes = verify_text(broken, params=case.params, target=case.target).errors[0].fixes
    new = applied(broken, fixes[0].edits)
    assert "                if t.p > 0:\n                    total = total + lm.load(C" in new
    assert verify_text(new, params=case.params, target=case.target).verdict == "pass"


def test_stages_between_the_places_where_boxes_land_are_padded() -> None:
    text = edit(CASES["stencil_halo"].text(), ("TW=64", "TW=72"))
    broken = edit(text, ("lm.smem(STAGES * (TH + 2) * TW * 4)", "lm.smem(8192)"))
    (error,) = verify_text(broken).errors
    assert error.code == "H003"
    assert error.fixes[0].title == "add `stage_bytes=2944`"
    assert verify_text(applied(broken, error.fixes[0].edits)).verdict == "pass"


def test_one_edit_is_offered_once_whatever_its_names_are() -> None:
    """A rule and the search both lower the budgets of the math role."""
    text = edit(CASES["shipped_gemm_hopper"].text(), ("regs=40", "regs=56"))
    first = verify_text(text, params=CASES["shipped_gemm_hopper"].params).errors[0]
    assert first.code == "H006" and len({tuple((e.span.start(), e.span.end(), e.text) for e in f.edits) for f in first.fixes}) == len(first.fixes)
