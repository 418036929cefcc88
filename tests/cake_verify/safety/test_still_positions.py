"""Positions that follow their tile, and lengths whose last tile is masked."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d043_still_positions import PAGE

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

REFUSED = [
    ("cross_entropy_grad", "lm.iota(z, 0, base=p * PART)", "lm.iota(z, 0)", "D043", "moves it with `p`"),
    ("cross_entropy_grad", "lm.iota(z2, 0, base=q * PART)", "lm.iota(z2, 0, base=1)", "D043", "moves it with `q`"),
    ("moe_gather_up", "lm.iota(at, axis=0, base=t.m * BM) < n", "lm.iota(at, axis=0) < n", "D043", "moves it with `m`"),
    ("decode_cp_async_gqa", 'form="acc"), 0, base=i * BN)', 'form="acc"), 0)', "D043", "moves it with `i`"),
    ("decode_split_table", "lm.where(lm.iota(s, 1, base=p * 16) < n, s * scale, -lm.inf)", "s * scale", "D036", "nothing masks them"),
    ("decode_split_table", "base=p * 16) < n,", "base=p * 16) < n + 1,", "D036", "lets 1 column too many through"),
    ("decode_split_table", "lm.iota(s, 1, base=p * 16)", "lm.iota(s, 1)", "D036", "does not follow the tile"),
    ("mla_decode_split", "col < length,", "col <= length,", "D036", "lets 1 column too many through"),
    ("mla_decode_split", "lm.iota(sc, 1, base=(lo + i) * 64)", "lm.iota(sc, 1)", "D036", "does not follow the tile"),
    ("paged_prefill", "lm.iota(x, 1, base=i * PS)", "lm.iota(x, 1)", "D036", "does not follow the tile"),
]


@pytest.mark.parametrize(("name", "old", "new", "code", "message"), REFUSED, ids=[f"{n}: {new[:60]}" for n, _, new, _, _ in REFUSED])
def test_what_contradicts_the_rest_of_the_text_is_refused(name: str, old: str, new: str, code: str, message: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    error = verify_text(good.replace(old, new), suggest=False).errors[0]
    assert error.code == code and message in error.message, error.message


def test_rows_of_one_length_in_a_flat_tensor_count_from_their_own_start() -> None:
    flat = PAGE.passing.replace('LM.gmem2d[LM.f32, "B", "V"]', 'LM.gmem1d[LM.f32, "N"]').replace("B: LM.i32, V: LM.i32", "B: LM.i32, V: LM.i32, N: LM.i32")
    flat = flat.replace("coords=(p * 256, t.b)", "coords=(t.b * 256,)").replace("lm.range(lm.cdiv(V, 256))", "lm.range(1)").replace("base=p * 256) == label", "base=0) < V")
    assert not [e for e in verify_text(flat, suggest=False).errors if e.code == "D043"]


def test_a_tail_behind_whole_tiles_may_be_masked_by_itself() -> None:
    text = PAGE.passing.replace("lm.iota(x, 0, base=p * 256) == label", "lm.iota(x, 0) < V - p * 256")
    assert verify_text(text, suggest=False).verdict == "pass"


def test_a_product_is_not_rescaled_to_what_it_is_relative_to() -> None:
    text = (CORPUS / "decode_cp_async_gqa.py").read_text("utf-8")
    scale, product = "                o = o * fix\n", next(line + "\n" for line in text.splitlines() if "lm.mma(o, lm.cast(p" in line)
    assert text.count(scale + product) == 1
    (error,) = verify_text(text.replace(scale + product, product + scale), suggest=False).errors
    assert error.code == "D044" and "relative to `new` already" in error.message


def test_a_factor_of_another_maximum_may_come_behind_the_product() -> None:
    text = (CORPUS / "decode_cp_async_gqa.py").read_text("utf-8")
    scale, product = "                o = o * fix\n", next(line + "\n" for line in text.splitlines() if "lm.mma(o, lm.cast(p" in line)
    later = "                new = lm.max(new, 1.0)\n                fix = lm.exp2(m - new)\n" + scale
    assert "D044" not in {e.code for e in verify_text(text.replace(scale + product, product + later), suggest=False).errors}
