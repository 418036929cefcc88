"""Coordinates that are consecutive numbers (`base + lm.iota(x, axis)`), masks over them, and indices that conditions let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

REFUSED = [
    ("router_top2", "lm.store(ID, who, coords=(e, rows), mask=inside)", "lm.store(ID, who, coords=(e, rows))", "S033", "the last tile along `blk`"),
    ("router_top2", "lm.store(ID, who, coords=(e, rows), mask=inside)", "lm.store(ID, who, coords=(rows, e), mask=inside)", "S033", "which has 2 there"),
    ("decode_cp_async_gqa", "mask=pos < n, fill=-1", "mask=pos < n + 1, fill=-1", "S033", "`lm.load` touches element"),
    ("decode_split_table", "lm.store(ML, m, coords=(0, t.h * 16 + lm.iota(o, 0), t.b, t.s))", "lm.store(ML, m, coords=(0, t.h * 16 + lm.iota(o, 0), t.s, t.b))", "D035", "each other's place"),
    ("cross_entropy_grad", 'shape=(PART,), form="vec", clip=True, fill=-lm.inf), lm.f32)\n            top', 'shape=(PART,), form="vec"), lm.f32)\n            top', "S033", "has 8 there for V = 8"),
    ("moe_pairs_gemm", 'form="rowvec", like=acc, mask=live', 'form="rowvec", like=acc', "D031", "`pair` may hold PAIRS"),
    ("moe_pairs_gemm", "coords=(t.n * BN, pair), mask=live, clip=True", "coords=(t.n * BN, pair), mask=live", "S033", "axis 0 of `OUT`"),
    ("moe_pairs_gemm", "coords=(t.n * BN, pair), mask=live, clip=True", "coords=(pair, t.n * BN), mask=live, clip=True", "D035", "each other's place"),
    ("lora_shrink", "i >= 0 and i < NL", "i >= 0 and i <= NL", "D031", "`i <= NL` lets through a number behind the end of `A`"),
    ("lora_shrink", "i >= 0 and i < NL", "i >= -1 and i < NL", "D031", "in front of `A`"),
    ("lora_shrink", "coords=(0, r, i)", "coords=(0, r, i + 1)", "D031", "behind the end of `A`"),
    ("rope_kv_halves", "elif slot >= 0:\n                    lm.store(KC", "elif slot > 0:\n                    lm.store(KC", "Q015", "leaves out index 0 of `KC`"),
    ("rope_kv_halves", "lm.store(KC, r0, coords=(0, w.h - QH, slot))", "lm.store(KC, r0, coords=(w.h - QH, 0, slot))", "D035", "each other's place"),
    ("qk_norm_rope", "a = lm.cast(lm.load(QKV, coords=(0, h, t.t)", "a = lm.cast(lm.load(QKV, coords=(h, 0, t.t)", "D035", "each other's place"),
    ("tcgen05_mxf8_row_blocks", "sa.tma_load(SA, coords=(0, (t.m * kb + b) * 32)", "sa.tma_load(SA, coords=((t.m * kb + b) * 32, 0)", "D035", "each other's place"),
    ("paged_prefill", "q.tma_load(Q, coords=(0, t.n, t.row0)", "q.tma_load(Q, coords=(0, t.n + 1, t.row0)", "Q014", "its last tile lies past the end"),
    ("gemm_int4_groups", "first = t.n * 128 + 32 * lane.index", "first = t.n * 128 + 32 * (1 - lane.index)", "S033", "in front of `W4`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "code", "message"), REFUSED, ids=[f"{n}: {new[:60]}" for n, _, new, _, _ in REFUSED])
def test_what_contradicts_the_rest_of_the_text_is_refused(name: str, old: str, new: str, code: str, message: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    error = verify_text(good.replace(old, new), suggest=False).errors[0]
    assert error.code == code and message in error.message, error.message


FEW = (Path(__file__).resolve().parents[3] / "cake_kernels" / "tiny_gemm" / "hopper_few_send.py").read_text("utf-8")
MASK = ", mask=lm.in_bounds(total, N - t.n * BN, M)"


@pytest.mark.parametrize("mask", ["", ", mask=lm.in_bounds(total, M, N - t.n * BN)", ", mask=lm.in_bounds(total, N, M)"], ids=["none", "rows and columns exchanged", "of the first tile"])
def test_runs_that_take_the_shape_of_each_other_are_coordinates_too(mask: str) -> None:
    """Rows of the fragment run along the first axis here; an H200 stored wrong numbers without the mask."""
    assert FEW.count(MASK) == 1 and verify_text(FEW, suggest=False).verdict == "pass"
    found = verify_text(FEW.replace(MASK, mask), suggest=False).errors
    assert [e.code for e in found] == ["S033"], found


def test_a_least_extent_that_is_stated_is_enough() -> None:
    text = (CORPUS / "cross_entropy_grad.py").read_text("utf-8").replace('shape=(PART,), form="vec", clip=True, fill=-lm.inf), lm.f32)\n            top', 'shape=(PART,), form="vec"), lm.f32)\n            top')
    assert verify_text(text.replace("V > 0 and V % 8 == 0", "V >= 1024 and V % 8 == 0"), suggest=False).verdict == "pass"
    for stated in ("", "    lm.assume(V > 0 and V % 1024 == 0)\n", "    lm.assume(V == B * 1024 and V > 0)\n"):
        assert not [e for e in verify_text(text.replace("    lm.assume(V > 0 and V % 8 == 0)\n", stated), suggest=False).errors if "there for V" in e.message], stated


def test_a_first_row_that_stands_for_none_is_no_matter() -> None:
    text = (CORPUS / "rope_kv_halves.py").read_text("utf-8").replace("slot >= 0", "slot > 0")
    assert {e.code for e in verify_text(text, suggest=False).errors} == {"Q015"}
    assert verify_text(text.replace("lm.assume_values(SLOT, -1, SLOTS)", "lm.assume_values(SLOT, 0, SLOTS)"), suggest=False).verdict == "pass"


def test_masks_of_rows_say_nothing_of_columns() -> None:
    text = (CORPUS / "moe_pairs_gemm.py").read_text("utf-8").replace("mask=live, clip=True", "mask=live")
    assert verify_text(text.replace("FF % 8 == 0", "FF % 64 == 0"), suggest=False).verdict == "pass"


def test_a_mask_by_another_argument_than_the_extent_is_left_alone() -> None:
    text = (CORPUS / "router_top2.py").read_text("utf-8").replace('ID: LM.gmem2d[LM.i32, "TOKENS", "PICK"]', 'ID: LM.gmem2d[LM.i32, "ROOM", "PICK"]').replace("TOKENS: LM.i32,", "TOKENS: LM.i32, ROOM: LM.i32,")
    assert verify_text(text, suggest=False).verdict == "pass"
    (error,) = verify_text((CORPUS / "router_top2.py").read_text("utf-8").replace("inside = rows < TOKENS", "inside = rows <= TOKENS"), suggest=False).errors
    assert error.code == "S033" and "axis 1 of `ID`" in error.message
