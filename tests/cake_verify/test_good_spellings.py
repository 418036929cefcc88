"""Right kernels as another engineer would write them: parts of the corpus in other words that were refused once."""

from __future__ import annotations

import pytest

from bench.verify import said_otherwise
from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text

CAUSAL = """            col = lm.iota(sc, axis=1, base=(n - 1) * BN)
            seen = col < S
            if CAUSAL:
                seen = seen & (col <= lm.iota(sc, axis=0, base=row0))
            x = lm.where(seen, sc, -lm.inf)"""
DIAGONAL = "            x = lm.where(lm.iota(sc, axis=1, base=(n - 1) * BN) < S, sc, -lm.inf)\n            if CAUSAL:\n                "
INVERSE, LSE = "            inv = lm.where(l > 0.0, lm.rcp(l), 0.0)\n", "lm.where(l > 0.0, m + lm.log2(l), -lm.inf)"
WRITTEN = f"""            row = t.b * HQ + t.h * G
            lm.store(Op, o * inv, coords=(0, t.s, row + lm.iota(o, 0)), mask=lm.in_bounds(o, G, 128))
            lm.store(Lse, {LSE}, coords=(t.s, row + lm.iota(scores, 0)), mask=lm.iota(scores, 0) < G)"""
BY_ARM = """            row = t.b * HQ + t.h * G
            if hi > lo:
                lm.store(Op, o / l, coords=(0, t.s, row + lm.iota(o, 0)), mask=lm.in_bounds(o, G, 128))
                lm.store(Lse, m + lm.log2(l), coords=(t.s, row + lm.iota(scores, 0)), mask=lm.iota(scores, 0) < G)
            else:
                lm.store(Op, o, coords=(0, t.s, row + lm.iota(o, 0)), mask=lm.in_bounds(o, G, 128))
                lm.store(Lse, m, coords=(t.s, row + lm.iota(scores, 0)), mask=lm.iota(scores, 0) < G)"""
ROUND = """                s = lm.step(ring)
                lm.wait(empty, stage=s)
                box.send(mine, cta=(lm.cta_rank() + 1) % PARTS, barrier=full, stage=s)
                lm.wait(full, stage=s)
                mine = box[s].load(form="vec", like=mine)
                lm.arrive(empty, stage=s)
                total = total + mine
"""
NO_KEYS_BEHIND = "x = lm.where(lm.iota(sc, axis=1, base=j * BN) < S, sc, -lm.inf)"

GOOD: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "a mask that is added": ("attention_mma_sync", ((NO_KEYS_BEHIND, "x = sc + lm.where(lm.iota(sc, axis=1, base=j * BN) < S, 0.0, -1e30)"),)),
    "a mask of ones and zeros from memory": ("prefix_attention_sm80", (("x = lm.where(keep != 0, z * scale, -lm.inf)", "x = z * scale + (lm.cast(keep, lm.f32) - 1.0) * 1e30"),)),
    "rounds of which the first sends nothing": (
        "allgather_ring",
        (("            for h in lm.range(PARTS - 1):\n" + ROUND, "            for h in lm.range(PARTS):\n                if h > 0:\n" + ROUND.replace("                ", "                    ")),),
    ),
    "a mask by the distance as a number": ("flash_alibi", (("col <= row", "away <= 0.0"),)),
    "columns behind the row left out": ("attention_causal", ((CAUSAL, DIAGONAL + "x = lm.where(lm.iota(sc, axis=1, base=(n - 1) * BN) > lm.iota(sc, axis=0, base=row0), -lm.inf, x)"),)),
    "columns behind the row left out by name": (
        "attention_causal",
        ((CAUSAL, DIAGONAL + "hidden = lm.iota(sc, axis=1, base=(n - 1) * BN) > lm.iota(sc, axis=0, base=row0)\n                x = lm.where(hidden, -lm.inf, x)"),),
    ),
    "the number behind each row's": (
        "attention_causal",
        (("col <= lm.iota(sc, axis=0, base=row0)", "col < lm.iota(sc, axis=0, base=row0 + 1)"),
         ("base=(n - 1 - j) * BN) <= lm.iota(sc, axis=0, base=row0)", "base=(n - 1 - j) * BN) < lm.iota(sc, axis=0, base=row0 + 1)")),
    ),
    "a window by its two ends": (
        "window_sinks",
        (("            row = lm.iota(x, 0, base=t.m * 128 + 64 * math.index)\n", ""),
         ("y = lm.where(col <= row and col + WINDOW > row,", "left = lm.iota(x, 0, base=t.m * 128 + 64 * math.index - WINDOW)\n                right = lm.iota(x, 0, base=t.m * 128 + 64 * math.index + 1)\n                y = lm.where(col < right and col > left,")),
    ),
    "the diagonal is added": ("attention_causal", ((CAUSAL, DIAGONAL + "x = x + lm.where(lm.iota(sc, axis=1, base=(n - 1) * BN) > lm.iota(sc, axis=0, base=row0), -lm.inf, 0.0)"),)),
    "divided where there were rounds": ("paged_decode_gqa", ((INVERSE, "            if lo < hi:\n                o = o * lm.rcp(l)\n"), ("lm.store(Op, o * inv,", "lm.store(Op, o,"))),
    "a choice by the bounds": ("paged_decode_gqa", ((LSE, "lm.where(hi > lo, m + lm.log2(l), -lm.inf)"),)),
    "a choice by the maximum": ("paged_decode_gqa", ((INVERSE, INVERSE.replace("l > 0.0", "m > -lm.inf")),)),
    "a choice behind the division": ("paged_decode_gqa", ((INVERSE, "            inv = lm.rcp(l)\n            some = l > 0.0\n"), ("o * inv", "lm.where(some, o * inv, 0.0)"))),
    "one store an arm": ("paged_decode_gqa", ((INVERSE, ""), (WRITTEN, BY_ARM))),
}


@pytest.mark.parametrize(("name", "edits"), GOOD.values(), ids=list(GOOD))
def test_said_in_other_words(name: str, edits: tuple[tuple[str, str], ...]) -> None:
    text = CASES[name].text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    verdict = verdict_of(text, name)[0]
    assert verdict.verdict == "pass", [d.message for d in verdict.diagnostics if d.severity == "error"]


WAYS = [
    ("gemm_serial_k", "powers of two by bits"), ("gemm_k_grouped", "powers of two by bits"), ("fp8_two_rings", "powers of two by bits"), ("ssd_chunk_out", "powers of two by bits"),
    ("ring_attention_step", "sums as reductions"), ("moe_align_fill", "sums as reductions"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_operations_that_are_one(name: str, way: str) -> None:
    text, verdict = said_otherwise.verdict(CASES[name], way)
    assert text != said_otherwise.ast.unparse(said_otherwise.ast.parse(CASES[name].text())) and verdict.verdict == "pass"


def test_axes_that_are_numbers_have_no_name() -> None:
    case = CASES["gated_linear_attention"]
    text = case.text().replace('"DV"', "128").replace('"DK"', "64").replace('"C", 64', "64, 64").replace('"C", "C"', "64, 64")
    assert text != case.text() and verify_text(text, target=case.target, outputs=case.outputs()).verdict == "pass"


def test_a_chain_of_parts_in_an_order_made_by_hand() -> None:
    text = CASES["gemm_serial_k"].text().replace("coords=(t.n * BN, t.m * 64), ", "coords=(t.n * BN, row), ").replace("            total = acc", "            row = (t.m // 2 * 2 + t.m % 2) * 64\n            total = acc")
    assert verify_text(text).verdict == "pass"


BAD = {
    "a division in the arm without rounds": ("paged_decode_gqa", ((INVERSE, "            if lo <= hi:\n                o = o * lm.rcp(l)\n"), ("lm.store(Op, o * inv,", "lm.store(Op, o,")), "D042"),
    "a bias that hides nothing": ("attention_mma_sync", ((NO_KEYS_BEHIND, "x = sc + lm.where(lm.iota(sc, axis=1, base=j * BN) < S, 0.0, 0.5)"),), "D010"),
    "a diagonal further on, left out": ("attention_causal", ((CAUSAL, DIAGONAL + "x = lm.where(lm.iota(sc, axis=1, base=(n - 1) * BN) > lm.iota(sc, axis=0, base=row0) + 1, -lm.inf, x)"),), "D037"),
}


@pytest.mark.parametrize(("name", "edits", "code"), BAD.values(), ids=list(BAD))
def test_what_is_wrong_in_these_words_is_refused(name: str, edits: tuple[tuple[str, str], ...], code: str) -> None:
    text = CASES[name].text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    assert [d.code for d in verdict_of(text, name)[0].errors] == [code]
