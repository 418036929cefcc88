"""Tiles of sequences that offsets in memory mark off: they start with the sequence, and an ordinary access ends with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

REFUSED = [
    ("gated_linear_attention", "sv.tma_load(V, coords=(0, t.h, bos + i * C)", "sv.tma_load(V, coords=(0, t.h, bos + (i + 1) * C)", "Q014"),
    ("gemm_blocksparse", "coords=(0, 0, i)", "coords=(0, 0, i + 1)", "Q014"),
    ("kv_append", "coords=(0, lo + i * ROWS)", "coords=(0, lo + (i + 1) * ROWS)", "Q014"),
    ("column_sums", "coords=(t.n * BN,), clip", "coords=((t.n + 1) * BN,), clip", "Q014"),
    ("kv_append", 'form="vec", clip=True)', 'form="vec")', "S033"),
    ("attention_token_table", "base=(j + 1) * BN) < n", "base=0) < n", "S033"),
    ("attention_token_table", "base=(j + 1) * BN) < n", "base=(j + 1) * BN) <= n", "S033"),
    ("attention_token_table", "lm.iota(sc, axis=1) < n,", "lm.iota(sc, axis=1) < n + 1,", "S033"),
    ("attention_token_table", "lo + (j + 1) * BN,), shape", "lo + (j + 2) * BN,), shape", "S033"),
]


@pytest.mark.parametrize(("name", "old", "new", "code"), REFUSED, ids=[f"{n}: {new}" for n, _, new, _ in REFUSED])
def test_a_tile_late_and_an_element_too_many_are_told_at_their_line(name: str, old: str, new: str, code: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    errors = verify_text(good.replace(old, new), suggest=False).errors
    assert [e.code for e in errors] == [code]
    assert errors[0].span.line == good[: good.index(old)].count("\n") + 1


@pytest.mark.parametrize(("name", "old", "new"), [(n, old, new) for n, old, new, code in REFUSED if "+ 1" in new and "BN) < n" not in old])
def test_leaving_out_what_was_added_mends_it(name: str, old: str, new: str) -> None:
    bad = (CORPUS / f"{name}.py").read_text("utf-8").replace(old, new)
    (error,) = verify_text(bad).errors
    assert verify_text(applied(bad, error.fixes[0].edits)).verdict == "pass"


ACCEPTED = [
    ("kv_append", "coords=(0, lo + i * ROWS)", "coords=(0, lo + 1 + i * ROWS)"),  # a row in front of each sequence that is no key
    ("attention_token_table", "base=(j + 1) * BN) < n", "base=(j + 1) * BN) < n - 1"),
    ("gemm_blocksparse", "coords=(0, 0, i)", "coords=(0, 0, NNZ - 1 - i)"),
]


@pytest.mark.parametrize(("name", "old", "new"), ACCEPTED, ids=[new for _, _, new in ACCEPTED])
def test_other_starts_and_narrower_masks_are_a_choice(name: str, old: str, new: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    assert not {e.code for e in verify_text(good.replace(old, new)).errors} & {"Q014", "S033"}


def test_tiles_of_padded_sequences_need_no_mask() -> None:
    good = (CORPUS / "kv_append.py").read_text("utf-8")
    padded = good.replace('form="vec", clip=True)', 'form="vec")').replace("lm.range(lm.cdiv(n, ROWS))", "lm.range(n // ROWS)")
    assert "S033" not in {e.code for e in verify_text(padded).errors}
