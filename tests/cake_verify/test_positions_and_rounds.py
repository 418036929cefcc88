"""Masks that look behind the last row, positions that do not follow their tile, and rounds that all do the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d043_still_positions import _PICK as _LABELS
from cake_verify.rules.consistency.d072_into_the_next_part import _GROUPS
from cake_verify.rules.consistency.d073_overwritten_product import _SCALED
from cake_verify.rules.consistency.d074_kept_against_a_number import _PICK
from cake_verify.rules.consistency.d075_first_tile_alone import _SPREAD
from cake_verify.rules.consistency.d077_no_maximum_yet import _BY_WARPS
from cake_verify.rules.consistency.d078_asked_once import _WEIGHTED
from cake_verify.rules.schedule.q023_behind_the_last_row import _CAUSAL

CORPUS = Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def corpus(name: str, *edits: tuple[str, str]) -> str:
    return changed((CORPUS / f"{name}.py").read_text("utf-8"), *edits)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("nsa_by_warps", "<= tok, scores", "<= tok + 1, scores", ["Q023"]),
        ("nsa_by_warps", "<= tok, scores", "< tok + 1, scores", []),
        ("nsa_by_warps", "<= tok, scores", "<= tok - 1, scores", []),
        ("moba_lists", "<= row, scores", "<= row + 1, scores", ["Q023"]),
        ("mla_two_groups", "lm.iota(scores, 1) < n, scores", "lm.iota(scores, 1) < n + 1, scores", ["D036"]),
        ("decode_by_warps", "lm.iota(scores, 1) < n, scores", "lm.iota(scores, 1) < n + 1, scores", ["D036"]),
        ("cluster_histogram", "lm.iota(x, 0, base=lo + i * CH)", "lm.iota(x, 0)", ["D043"]),
        ("cluster_histogram", "lm.where(at < hi, 1, 0)", "lm.where(at < hi + 1, 1, 0)", ["D072"]),
        ("cluster_histogram", "lm.where(at < hi, 1, 0)", "1", ["D072"]),
        ("cluster_histogram", "lm.cdiv(lm.cdiv(L, 4), 4) * 4", "lm.cdiv(L, 4) // 4 * 4", ["Q012"]),
        ("tril_inverse", "lm.cdiv(H, WARPS)", "H // WARPS", ["Q012"]),
        ("decode_by_warps", "lm.cdiv(n, BLK * WARPS)", "n // (BLK * WARPS)", ["Q012"]),
        ("flash_alibi", "lm.cdiv(lm.min(row0 + BM, S), BN)", "lm.min(row0 + BM, S) // BN", ["Q012"]),
        ("cluster_histogram", "coords=(lo + i * CH, t.b)", "coords=(lo + (i + 1) * CH, t.b)", ["D043"]),
        ("edge_softmax", "                x = lm.load(score, coords=(lo + i * CH,), shape=(CH,), form=\"vec\", mask=inside", "                x = lm.load(score, coords=(lo + (i + 1) * CH,), shape=(CH,), form=\"vec\", mask=inside", ["S033"]),
        ("spec_reject", "lm.iota(r, 0, base=c * C)", "lm.iota(r, 0)", ["D043"]),
        ("spec_reject", "lm.where(r == top, lm.iota(r, 0, base=c * C), V)", "lm.iota(r, 0, base=c * C)", ["D071"]),
        ("noaux_routing", "                s = lm.sum(lm.where(col == v[1], score, 0.0), axis=1)", "                s = lm.sum(score, axis=1)", ["D047"]),
        ("noaux_routing", "                s = lm.sum(lm.where(col == v[1], score, 0.0), axis=1)", "                s = lm.sum(score + lm.cast(k, lm.f32), axis=1)", []),
    ],
)
def test_one_change_of_a_good_text(name: str, old: str, new: str, told: list[str]) -> None:
    assert codes(corpus(name)) == []
    assert codes(corpus(name, (old, new))) == told


@pytest.mark.parametrize(("old", "new"), [("", ""), ("    lm.assume(QT == lm.cdiv(S, 64))", "    lm.assume(S % 64 == 0 and QT == lm.cdiv(S, 64))"), ("lm.iota(s, 1, base=j * 64) <=", "lm.iota(s, 1, base=j * 64) < S and lm.iota(s, 1, base=j * 64) <=")])
def test_a_look_ahead_is_told_where_nothing_else_keeps_out_what_is_behind_the_end(old: str, new: str) -> None:
    text = _CAUSAL.replace(old, new) if old else _CAUSAL
    assert codes(text) == []
    ahead = changed(text, ("base=t.m * 64), s, -lm.inf", "base=t.m * 64) + 1, s, -lm.inf"))
    assert codes(ahead) == ([] if old else ["Q023"])


def test_what_is_reduced_in_front_of_a_loop_may_be_spread_by_it() -> None:
    text = corpus("noaux_routing", ("                s = lm.sum(lm.where(col == v[1], score, 0.0), axis=1)\n", ""))
    text = changed(text, ("            for k in lm.static_range(K):\n                v = best[k]\n                lm.store", "            s = lm.sum(score, axis=1)\n            for k in lm.static_range(K):\n                v = best[k]\n                lm.store"))
    assert codes(text) == []


def test_parts_that_are_whole_tiles_need_no_mask() -> None:
    text = changed(_GROUPS, ("lm.where(lm.iota(x, 0, base=lo + i * 256) < hi, x, 0.0)", "x"), ("            lo = lm.ld(OFFS, t.g)\n            hi = lm.ld(OFFS, t.g + 1)\n", "            lo = lm.min(t.g * part, N)\n            hi = lm.min(lo + part, N)\n"),
                   ("    with work:", "    part = lm.cdiv(lm.cdiv(N, G), 256) * 256\n    with work:"), ("lm.assume(G1 == G + 1)", "lm.assume(G1 == G + 1 and G > 0)"))  # fmt: skip
    assert codes(text) == []
    assert codes(changed(text, ("lm.cdiv(lm.cdiv(N, G), 256) * 256", "lm.cdiv(N, G)"))) == ["D072"]


def test_a_product_that_every_round_overwrites() -> None:
    assert codes(_SCALED) == []
    over = changed(_SCALED, ("acc = acc + part * lm.ld(S, k)", "acc = part * lm.ld(S, k)"))
    assert codes(over) == ["D073"]
    assert codes(changed(over, ("                acc = part * lm.ld(S, k)\n", "                acc = part * lm.ld(S, k)\n                lm.store(C, acc, coords=(t.n * 8, t.m * 16), clip=True)\n"))) != ["D073"]
    assert codes(changed(over, ("for k in lm.range(G)", "for k in lm.range(1)"), ("K == 16 * G and G > 0", "K == 16 and G == 1"))) == []
    assert codes(corpus("fp8_two_rings", ("                if k == 0:\n                    acc = part * (sa * sb)\n                else:\n                    acc = acc + part * (sa * sb)\n            lm.arrive(go_1", "                acc = part * (sa * sb)\n            lm.arrive(go_1"))) == ["D073"]


def test_a_number_of_a_tensor_that_nobody_uses() -> None:
    verdict = verify_text(corpus("gated_linear_attention", ("                st = st * decay\n", "")), suggest=False)
    assert verdict.verdict == "pass" and [(d.code, d.severity) for d in verdict.diagnostics if "`decay` is never used" in d.message] == [("Q003", "warning")]


@pytest.mark.parametrize(("old", "new", "told"), [("best = lm.max(best, top)", "place = place * 1", ["D074"]), ("lm.where(top > best, here, place)", "lm.where(best < top, here, place)", []), ("best = lm.max(best, top)", "best = lm.where(top > best, top, best)", [])])
def test_the_position_of_a_maximum_is_kept_with_it(old: str, new: str, told: list[str]) -> None:
    assert [c for c in codes(changed(_PICK, (old, new)))][:1] == told


def test_a_sum_that_stays_at_the_first_tile() -> None:
    dropped = ("                mine = mine + lm.where(lm.iota(z, 0, base=p * PART) == target, z, 0.0)\n", "")
    assert codes(corpus("cross_entropy_grad", dropped)) == ["D075"]
    assert codes(_SPREAD) == [] and codes(changed(_SPREAD, ("                total = total + x\n", ""))) == ["D075"]
    assert "D075" not in codes(changed(_SPREAD, ("                total = total + x\n", "                top = top + total * 0.0\n")))
    assert "D075" not in codes(changed(_SPREAD, ("                total = total + x\n", ""), ("lm.range(1, N // 256)", "lm.range(2, N // 256)")))


def test_the_same_is_read_of_what_every_cta_sends() -> None:
    assert codes(corpus("layernorm_cluster", ("                squares = squares + inbox.ld(128 * c + 64)\n", ""))) == ["D076"]
    assert codes(corpus("layernorm_cluster", ("                squares = squares + inbox.ld(128 * c + 64)\n", "                squares = squares + inbox.ld(128 * c + 65)\n"))) != []


def test_a_member_without_an_element_has_no_maximum() -> None:
    bare = changed(_BY_WARPS, ("base = lm.where(top > -lm.inf, top, 0.0)", "base = top + 0.0"))
    assert codes(_BY_WARPS) == [] and codes(bare) == ["D077"]
    assert codes(changed(bare, ("m = lm.rowvec(like, init=-lm.inf)", "m = lm.rowvec(like, init=-1e30)"))) == []
    assert codes(changed(bare, ("l * lm.exp(m - base)", "l * lm.where(m > -lm.inf, lm.exp(m - base), 0.0)"))) == []
    assert codes(corpus("decode_by_warps", ("base = lm.where(m_new > -lm.inf, m_new, 0.0)", "base = m_new"))) == ["D077"]


def test_filled_columns_of_copies_ahead_and_of_guarded_blocks() -> None:
    assert codes(corpus("flash_alibi", ("lm.where(col <= row, s * scale_log2 + slope * away, -lm.inf)", "s * scale_log2 + slope * away"))) == ["D010"]
    assert codes(corpus("nsa_by_warps", ("lm.where(blk * BLK + lm.iota(scores, 1) <= tok, scores * scale_log2, -lm.inf)", "scores * scale_log2"))) == ["D010"]


_SEQUENCES = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def largest(lm, X: LM.gmem1d[LM.f32, "N"], OFFS: LM.gmem1d[LM.i32, "G1"].const, Y: LM.gmem1d[LM.f32, "G"], N: LM.i32, G: LM.i32, G1: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(G1 == G + 1)
    lm.assume_values(OFFS, 0, N + 1, sorted=True)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lo = lm.ld(OFFS, t.g)
            hi = lm.ld(OFFS, t.g + 1)
            top = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=-lm.inf)
            for i in lm.range(lm.cdiv(hi - lo, 256)):
                left = hi - lo - i * 256
                x = lm.load(X, coords=(lo + i * 256,), shape=(256,), mask=lm.in_bounds(top, left, left), fill=-lm.inf)
                top = lm.max(top, x)
            lm.store(Y, lm.reduce(top, "max", axis=1), coords=(t.g,))
'''


def test_a_mask_of_a_sequence_may_end_before_it_and_where_nothing_is_said_of_its_end() -> None:
    assert codes(_SEQUENCES) == []
    long = changed(_SEQUENCES, ("lm.in_bounds(top, left, left)", "lm.in_bounds(top, left + 1, left + 1)"))
    assert codes(long) == ["S033"]
    assert "S033" not in codes(changed(_SEQUENCES, ("lm.in_bounds(top, left, left)", "lm.in_bounds(top, left - 1, left - 1)")))
    assert codes(changed(long, ("lm.assume_values(OFFS, 0, N + 1, sorted=True)", "lm.assume_values(OFFS, 0, N, sorted=True)"))) == []


def test_positions_of_the_tile_before_are_those_of_another_load() -> None:
    ahead = ("                x = lm.load(X, coords=(p * 256, t.b), shape=(256,), clip=True)\n", "                x = lm.load(X, coords=(p * 256, t.b), shape=(256,), clip=True)\n                y = lm.load(X, coords=((p + 1) * 256, t.b), shape=(256,), clip=True)\n")
    text = changed(_LABELS, ahead, ("lm.iota(x, 0, base=p * 256) == label, x, 0.0)", "lm.iota(y, 0, base=p * 256) == label, x, y * 0.0)"))
    assert "D043" not in codes(text)
    assert codes(changed(_LABELS, ("coords=(p * 256, t.b)", "coords=((p + 1) * 256, t.b)")))[:1] == ["D043"]


def test_who_asks_about_a_sum_in_one_place_asks_in_all() -> None:
    assert codes(_WEIGHTED) == []
    bare = changed(_WEIGHTED, ("lm.where(weight > 0.0, total / weight, 0.0)", "total / weight"))
    assert codes(bare) == ["D078"]
    assert codes(changed(bare, ("lm.where(weight > 0.0, lm.log(weight), -lm.inf)", "lm.log(weight)"))) == []
    assert codes(changed(bare, ("total / weight", "total / lm.max(weight, 1e-20)"))) == []
    assert codes(changed(bare, ("total / weight", "lm.where(total > 0.0, total / weight, 0.0)"))) == []
    assert codes(corpus("decode_cluster_merge", ("lm.where(total > 0, sum_o / total, 0.0)", "sum_o / total"))) == ["D078"]
