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
])  # fmt: skip
def test_what_passed_is_told(name: str, old: str, new: str, code: str) -> None:
    assert codes(name, (old, new)) == [code]


@pytest.mark.parametrize("name, old, new", [
    ("token_bitmask", "if r >= 0:", "if r > -1:"),
    ("token_bitmask", "mask=token < V)", "mask=lm.in_bounds(x, V - t.c * BLOCK, V - t.c * BLOCK))"),
    ("hstu_silu_attention", "if t.q * 64 < length:", "if length > 64 * t.q:"),
])  # fmt: skip
def test_what_is_right_and_near_to_it_passes(name: str, old: str, new: str) -> None:
    assert codes(name, (old, new)) == []
