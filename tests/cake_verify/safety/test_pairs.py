"""Products of pairs of CTAs: what joins the two, told by the verifier and shown by the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.verify.truth import judge
from cake_verify.gates import verify_text
from cake_verify.proposals import applied

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"
PARAMS = {"tcgen05_pair_gemm": {"BN": 128, "STAGES": 2}, "tcgen05_pair_scaled": {"STAGES": 2}}
GEMM, SCALED = PARAMS


def changed(file: str, *edits: tuple[str, str]) -> str:
    text = (CORPUS / f"{file}.py").read_text("utf-8")
    for old, new in edits:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


def within(file: str, barrier: str) -> tuple[str, str]:
    """The barrier's declaration without its scope."""
    line = next(x for x in (CORPUS / f"{file}.py").read_text("utf-8").split("\n") if x.strip().startswith(f"{barrier} = "))
    return line, line.replace(', scope="cluster"', "")


@pytest.mark.parametrize("file", PARAMS)
def test_good_schedules_pass_both(file: str) -> None:
    text = changed(file)
    for target in ("sm_100a", "sm_103a"):
        assert verify_text(text, target=target).verdict == "pass"
    assert verify_text(text, params=PARAMS[file]).verdict == "pass"
    assert judge(text, file, most=12).state == "harmless"


WRONG = [
    ("the leader does not wait for the other CTA's operands", GEMM, (within(GEMM, "full"),), "S012", "`sa`"),
    ("a slot is freed in the leader only", GEMM, (within(GEMM, "empty"),), "S012", "`load`"),
    ("the accumulator is handed to one epilogue only", GEMM, (within(GEMM, "acc_full"),), "S012", "`epi`"),
    ("the other CTA's accumulator is overwritten while it is read", GEMM, (within(GEMM, "acc_empty"),), "S012", "`accs`"),
    ("the other CTA's rows in tensor memory are not waited for", SCALED, (within(SCALED, "a_full"),), "S012", "`left`"),
    ("nobody waits for the operands", GEMM, (("                lm.wait(full, stage=s)\n", ""),), "S004", "`full`"),
    ("the accumulator is not waited for", GEMM, (("            lm.wait(acc_empty, stage=d)\n", ""),), "S003", "`accs`"),
    ("the slot is never freed", GEMM, (("                lm.commit(empty, stage=s)\n", ""),), "S008", "`empty`"),
    ("the slot is freed before the product is issued", GEMM,
     (("                lm.commit(empty, stage=s)\n", ""), ("                lm.mma(accs", "                lm.commit(empty, stage=s)\n                lm.mma(accs")), "S003", "`sa`"),
    ("the other CTA releases before its load has come", GEMM,
     (('            lm.tmem_wait("ld")\n            lm.arrive(acc_empty, stage=d)\n', '            lm.arrive(acc_empty, stage=d)\n            lm.tmem_wait("ld")\n'),), "S014", "`accs`"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "edits", "code", "name"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_what_does_not_join_the_pair_is_refused_and_shown(file: str, edits: tuple[tuple[str, str], ...], code: str, name: str) -> None:
    text = changed(file, *edits)
    errors = verify_text(text, params=PARAMS[file], suggest=False).errors
    assert [d.code for d in errors] == [code] and name in errors[0].message
    assert judge(text, file).state == "harmful"


@pytest.mark.parametrize("barrier", ["full", "empty", "acc_full", "acc_empty"])
def test_the_fix_of_a_barrier_that_joins_one_cta_mends_it(barrier: str) -> None:
    text = changed(GEMM, within(GEMM, barrier))
    (error,) = verify_text(text, suggest=False).errors
    assert error.code == "S012" and error.span.line == changed(GEMM).split("\n").index(within(GEMM, barrier)[0]) + 1
    assert verify_text(applied(text, error.fixes[0].edits)).verdict == "pass"


def test_both_ctas_bring_different_halves_of_b() -> None:
    same = changed(GEMM, (' + lm.cta_rank("m") * (BN // 2)', ""))
    assert [d.code for d in verify_text(same, params=PARAMS[GEMM], suggest=False).errors] == ["S034"]
    assert judge(same, GEMM).state == "harmful"


def test_the_role_that_multiplies_does_nothing_that_its_other_cta_would_miss() -> None:
    text = changed(SCALED, ("    with rows:\n", "        x = lm.load(S, coords=(0,), shape=(32,))\n        lm.store(S2, x, coords=(0,))\n\n    with rows:\n"),
                   ("S: LM.gmem1d[LM.f32, \"M\"].const", "S: LM.gmem1d[LM.f32, \"M\"].const, S2: LM.gmem1d[LM.f32, \"M\"]"))  # fmt: skip
    (error,) = verify_text(text, suggest=False).errors
    assert error.code == "H023" and "leading CTA only" in error.message


def test_multicast_beside_pairs_is_refused_where_it_is_written() -> None:
    text = changed(GEMM, ("sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)", 'sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full, multicast="m")'))
    assert "H023" in [d.code for d in verify_text(text, suggest=False).errors]


def test_each_cta_holds_half_of_the_columns_operand() -> None:
    (error,) = verify_text(changed(GEMM, ("shape=(BN // 2, BK)", "shape=(BN, BK)")), suggest=False).errors
    assert error.code == "D001" and "each CTA of a pair holds half of B: give `b` 128 rows" in error.help


MISPLACED = [
    ("another stretch of K in tensor memory", ("lm.load(A, coords=(k * BK, t.m * 128)", "lm.load(A, coords=(k * BK + BK, t.m * 128)"), "S034"),
    ("another stretch of K in shared memory", ("sb.tma_load(B, coords=(k * BK,", "sb.tma_load(B, coords=(k * BK + BK,"), "S034"),
    ("the rows of another tile", ("sc.tma_store(C, coords=(t.n * BN, t.m * 128))", "sc.tma_store(C, coords=(t.n * BN, t.m * 128 + 128))"), "S034"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "code"), [m[1:] for m in MISPLACED], ids=[m[0] for m in MISPLACED])
def test_what_was_written_to_tensor_memory_is_known_where_it_is_multiplied(edit: tuple[str, str], code: str) -> None:
    text = changed(SCALED, edit)
    assert [d.code for d in verify_text(text, params=PARAMS[SCALED], suggest=False).errors] == [code]
    assert judge(text, SCALED, most=2).state == "harmful"
