"""What passed in schedules of an eighth stranger who knew the language page only, and is told now; beside it what is right and near to it."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of


def codes(name: str, *changes: tuple[str, str]) -> list[str]:
    text = CASES[name].text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return [d.code for d in verdict_of(text, name)[0].diagnostics if d.severity == "error"]


@pytest.mark.parametrize("name, old, new, code", [
    # a row that stands for none, beside a mask that counts columns
    ("token_bitmask", "if r >= 0:", "if r >= -1:", "D031"),
    # words of 32 bits each, of tokens behind the last one
    ("token_bitmask", ", like=x, mask=token < V", ", like=x", "S033"),
    # the first of tiles in descending order is the last one: a sequence that ends where it begins
    ("hstu_silu_attention", "            if t.q * 64 < length:\n                o =", "            if t.q * 64 <= length:\n                o =", "S008"),
    ("hstu_silu_attention", "            if t.q * 64 < length:\n                for", "            if t.q * 64 <= length:\n                for", "S025"),
    # sixteen rows of a fragment, eight heads a group
    ("decode_warps_merge_sm121", "lm.bf16), coords=(0, t.h * G, t.b), mask=lm.in_bounds(o, G, 128)", "lm.bf16), coords=(0, t.h * G, t.b), mask=lm.in_bounds(o, H - t.h * G, 128)", "Q001"),
    # a neighbour's number, one too far
    ("rope_interleaved_pairs", "coords=(i ^ 1, t.h, tok)", "coords=((i + 1) ^ 1, t.h, tok)", "S033"),
    # tokens of which the last pair has one
    ("rope_interleaved_pairs", "if tok >= T:", "if tok > T:", "S033"),
    # rows that a condition on a count keeps from the end, not from the front; rounds of all that is stated
    ("silu_mul_masked_quant", "mine = t.j * WARPS + work.index", "mine = t.j * WARPS + (1 - work.index)", "S033"),
    ("silu_mul_masked_quant", "(count - mine + lanes - 1) // lanes):", "(count - mine + lanes - 1) // lanes + 1):", "S033"),
    # parts from the last member on, in front of what is stored to
    ("dropout_hash_residual", "work.index * (BLOCK // WARPS)", "(1 - work.index) * (BLOCK // WARPS)", "S033"),
    # one quarter of an accumulator again and again
    ("tcgen05_half_columns", "acc.cols(h + 32 * c, 32)", "acc.cols(h, 32)", "Q037"),
    ("tcgen05_half_columns", "acc.cols(h + 32 * c, 32)", "acc.cols(32 * c, 32)", "Q037"),
    ("tcgen05_half_columns", "lm.static_range(BN // 2 // 32)", "lm.static_range(BN // 2 // 32 - 1)", "Q037"),
    # pairs of a table, without the mask that keeps the others out
    ("rope_interleaved_pairs", "like=x, mask=turns)\n", "like=x)\n", "S033"),
    # a whole tile where one row may be left
    ("hstu_silu_attention", "form=\"a\", like=o, mask=rows < length)", "form=\"a\", like=o)", "S033"),
    ("hstu_silu_attention", "begin + rows), mask=rows < length)", "begin + rows))", "S013"),
    # tiles that are counted under a name
    ("sage_int8_scores", "coords=(0, t.q * BQ, t.h), clip=True)", "coords=(0, t.q * BQ, t.h))", "S033"),
])  # fmt: skip
def test_what_passed_is_told(name: str, old: str, new: str, code: str) -> None:
    assert {*codes(name, (old, new))} == {code}  # of two loads of one row both are told


@pytest.mark.parametrize("name, old, new", [
    ("token_bitmask", "if r >= 0:", "if r > -1:"),
    ("token_bitmask", "mask=token < V)", "mask=lm.in_bounds(x, V - t.c * BLOCK, V - t.c * BLOCK))"),
    ("hstu_silu_attention", "if t.q * 64 < length:", "if length > 64 * t.q:"),
    ("rope_interleaved_pairs", "coords=(i ^ 1, t.h, tok)", "coords=((i ^ 3) ^ 2, t.h, tok)"),
    ("silu_mul_masked_quant", "(count - mine + lanes - 1) // lanes):", "lm.cdiv(count - mine, lanes)):"),
    ("dropout_hash_residual", "work.index * (BLOCK // WARPS)", "(WARPS - 1 - work.index) * (BLOCK // WARPS)"),
    ("tcgen05_half_columns", "acc.cols(h + 32 * c, 32)", "acc.cols(h, BN // 2).cols(32 * c, 32)"),
])  # fmt: skip
def test_what_is_right_and_near_to_it_passes(name: str, old: str, new: str) -> None:
    assert codes(name, (old, new)) == []
