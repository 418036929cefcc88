"""What a copy fills in beyond a tensor's end, and how far a mask takes it away; products that are thrown away, by member."""

import pytest

import cake_kernels
from bench.verify.cases import CASES
from cake_verify import verify_text
from cake_verify.rules import examples
from cake_verify.rules.examples import edit

KMEANS = next(s.text for s in cake_kernels.schedules() if s.family == "kmeans_assign" and s.name == "hopper")
NEAREST = edit(examples.NEAREST, ("MU: LM.tma2d[LM.bf16]", 'MU: LM.tma2d[LM.bf16, "NK", 64]'))
MASK = "lm.where(lm.iota(acc, axis=1, base=k * 128) < NK, acc, -lm.inf)"


def errors(text: str):
    return verify_text(text).errors


@pytest.mark.parametrize(
    ("mask", "passes"),
    [
        (MASK, True),
        (MASK.replace("< NK", "<= NK - 1"), True),
        (MASK.replace("base=k * 128", "base=0").replace("< NK", "< NK - k * 128"), True),
        (MASK.replace("< NK", "<= NK"), False),
        (MASK.replace("< NK", "< NK + 1"), False),
        (MASK.replace("base=k * 128", "base=0"), False),
        (MASK.replace("base=k * 128", "base=k * 64"), False),
    ],
)
def test_a_mask_reaches_as_far_as_the_fill_or_is_told(mask: str, passes: bool) -> None:
    text = edit(NEAREST, (MASK, mask))
    found = errors(text)
    if passes:
        assert not found, [d.message for d in found]
        return
    (error,) = found
    assert (error.code, "mask" in error.message) == ("D010", True) or (error.code == "D043" and "do not follow the tile" in error.message and "base=0" in mask)
    assert "lm.where" in text.split("\n")[found[0].span.line - 1]


@pytest.mark.parametrize(("compare", "passes"), [("col < NK", True), ("col <= NK", False), ("col < NK + 1", False)])
def test_a_mask_may_be_made_with_numbers_that_have_a_name(compare: str, passes: bool) -> None:
    text = edit(NEAREST, (f"score = {MASK}", f"col = lm.iota(acc, axis=1, base=k * 128)\n                score = lm.where({compare}, acc, -lm.inf)"))
    assert [d.code for d in errors(text)] == ([] if passes else ["D010"])


def test_a_masked_value_is_no_number_of_a_column() -> None:
    text = edit(NEAREST, (f"score = {MASK}", f"some = {MASK}\n                score = lm.where(some > 0.0, acc, -1.0)"))
    assert [d.code for d in errors(text)] == ["D010"]


def test_an_extent_that_is_a_multiple_of_the_tile_needs_no_mask() -> None:
    text = edit(NEAREST, (MASK, "acc * 1.0")).replace('    lm.launch(grid="tiles")\n', '    lm.launch(grid="tiles")\n    lm.assume(NK % 128 == 0)\n')
    assert not errors(text)


def test_an_infinite_addend_masks_a_sum() -> None:
    assert "nrm - 2.0 * acc" in KMEANS and not errors(KMEANS)
    wrong = errors(KMEANS.replace("base=k * BN) < NK", "base=0) < NK"))
    assert [d.code for d in wrong] == ["D010"]


THROWN = {
    "a sum that the last product throws away": ("attention_causal", "            lm.mma(o, pa, skv[v].T)\n            lm.mma_wait(pending=0)\n", "            lm.mma(o, pa, skv[v].T, init=True)\n            lm.mma_wait(pending=0)\n", "S035"),
    "a state that starts from zero": ("gated_linear_attention", "lm.mma(st, vt, sk[s].T)", "lm.mma(st, vt, sk[s].T, init=True)", "S035"),
    "a member that keeps its product": ("gemm_split_k", "if math.index == 1:", "if math.index != 1:", "S035"),
    "members that write one place": ("attention_paged_decode", "if work.index == 0:", "if work.index != 0:", "Q001"),
    "all members but the last": ("attention_paged_decode", "if work.index == 0:", "if work.index < 3:", "Q001"),
}


@pytest.mark.parametrize("name", THROWN)
def test_work_in_vain_and_places_written_twice_are_told_where_the_text_says_so(name: str) -> None:
    subject, old, new, code = THROWN[name]
    case = CASES[subject]
    text = edit(case.text(), (old, new))
    found = verify_text(text, params=case.params, target=case.target).errors
    assert [d.code for d in found] == [code], [d.message for d in found]
    changed = next(i for i, (a, b) in enumerate(zip(case.text().split("\n"), text.split("\n"), strict=True), 1) if a != b)
    assert found[0].span.line == changed


def test_another_member_may_write_alone() -> None:
    case = CASES["attention_paged_decode"]
    assert not verify_text(edit(case.text(), ("if work.index == 0:", "if work.index == 3:")), params=case.params).errors
