"""Masks that do not follow their tile or go past their loop, what fills tiles up, and sums that take too much or too little."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency import (
    d042_empty_sum,
    d045_past_the_loop,
    d046_filled_sum,
    d049_left_behind,
)

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

REFUSED = [
    # positions and what moves their tile
    ("blocksparse_prefill", "lm.iota(w, 1, base=lm.ld(cols, i) * BKV)", "lm.iota(w, 1)", "D043", "moves it with `i`"),
    ("blocksparse_prefill", "lm.iota(w, 0, base=t.qb * BQ)", "lm.iota(w, 0)", "D043", "moves it with `qb`"),
    ("nsa_selected", "lm.iota(x, 1, base=b * BS)", "lm.iota(x, 1)", "D043", "moves it with `i`"),
    ("paged_prefill", "lm.iota(x, 0, base=kvlen - qlen + t.m * 64)", "lm.iota(x, 0)", "D043", "moves it with `m`"),
    ("prefill_varlen_sm120", "lm.iota(p, 0, base=t.qb * BQ + nk - nq)", "lm.iota(p, 0, base=nk - nq)", "D043", "moves it with `qb`"),
    # lengths that ranks share
    ("decode_cluster_merge", "lm.where(lm.iota(x, 1, base=(t.part + i * RANKS) * PAGE) < n, x, -lm.inf)", "x * 1.0", "D036", "nothing masks them"),
    ("decode_cluster_merge", "* PAGE) < n,", "* PAGE) < n + 1,", "D036", "lets 1 column too many through"),
    ("decode_cluster_merge", "base=(t.part + i * RANKS) * PAGE", "base=t.part * PAGE", "D036", "does not follow the tile"),
    # masks and loops that state one diagonal
    ("prefill_varlen_sm120", "col <= row and", "col <= row + 1 and", "D045", "see 1 column behind the end of the loop over `j`"),
    ("paged_prefill", "col <= pos and", "col < pos + 3 and", "D045", "see 2 columns behind the end of the loop over `i`"),
    # what fills tiles up
    ("blocksparse_prefill", "lm.where(key <= lm.iota(w, 0, base=t.qb * BQ) and key < S, w * sm, -lm.inf)", "w * sm", "D010", "not neutral"),
    ("nsa_selected", "lm.where(key <= t.t, x * (scale * 1.44269504), -lm.inf)", "x * (scale * 1.44269504)", "D010", "not neutral"),
    ("cross_entropy_grad", "lm.where(lm.iota(head, 0) == target, head, 0.0)", "head", "D046", "a very low number, is not neutral in this sum"),
    ("cross_entropy_grad", "mine + lm.where(lm.iota(z, 0, base=p * PART) == target, z, 0.0)", "mine + z", "D046", "a very low number, is not neutral in this sum"),
    # running values
    ("prefill_varlen_sm120", "lm.where(top == -lm.inf, 0.0, top)", "0.0", "D041", "less something that no round changes"),
    ("blocksparse_prefill", "lm.where(new == -lm.inf, 0.0, new)", "0.0", "D041", "less something that no round changes"),
    ("decode_cluster_merge", "                l = l * fix + lm.reduce(e, \"add\", axis=1)\n", "", "D040", "`l` never changes"),
    ("layernorm_backward", "            sum_b = sum_b + dy\n", "", "D040", "`sum_b` never changes: wherever it is read it is zero"),
    ("vocab_lse", "m = lm.rowvec(z, init=-lm.inf)", "m = lm.rowvec(z, init=lm.inf)", "D040", "it starts at inf"),
    ("cross_entropy", "                total = total * lm.exp2((top - most) * log2e) + lm.exp2((x - most) * log2e)\n", "", "D040", "`total` never changes"),
    ("retrieve_topk", "                best = lm.topk(x, axis=1, base=j * BN, into=best)\n", "", "D040", "the empty list"),
    ("attention_causal", "                m = m_new\n", "", "D041", "`m` is not brought up to date in this loop"),
    ("cross_entropy", "                top = most\n", "", "D041", "`top` is not brought up to date in this loop"),
    ("attention_causal", "                l = l * fix + lm.reduce(p, \"add\", axis=1, partial=True)\n", "", "D049", "`l` is relative to what `m` was"),
    ("attention_causal", "                o = o * fix\n", "", "D041", "`o` keeps what earlier rounds have summed"),
    ("stencil_halo", "                above = here\n", "", "D040", "`above` stays at the element"),
    ("causal_conv1d", "                b = c\n", "", "D040", "`b` stays at the element"),
    ("conv_silu_rounds", "                p1 = u\n", "", "D040", "`p1` stays at the element"),
    ("residual_inplace", "                rows = rows + 1\n", "", "D040", "adds 0 to `DONE`"),
    ("cluster_softmax", "top = lm.max(top, tops[s].ld(4 * c))", "pass", "D040", "minus infinity"),
    ("cross_entropy_grad", "                den = den * lm.exp(top - fresh) + lm.exp(z - fresh)\n", "", "D049", "`den` is relative to what `top` was"),
    # sums that take a term twice, or leave one out
    ("layernorm_cluster", "for c in lm.static_range(1, PARTS)", "for c in lm.static_range(PARTS)", "D050", ""),
    ("column_sums", "for j in lm.static_range(1, 4)", "for j in lm.static_range(4)", "D050", ""),
    ("cross_entropy_grad", "for p in lm.range(1, parts)", "for p in lm.range(parts)", "D050", ""),
    ("noaux_routing", "total + lm.sum(lm.where(col == v[1], score, 0.0), axis=1)", "total + lm.sum(score, axis=1)", "D047", "adds the same to `total`"),
    ("noaux_routing", "for k in lm.static_range(K):\n                v = best[k]\n                total", "for k in lm.static_range(K - 1):\n                v = best[k]\n                total", "Q016", ""),
    ("router_top2", "for e in lm.static_range(PICK):\n                (v, who) = best[e]\n                norm", "for e in lm.static_range(PICK - 1):\n                (v, who) = best[e]\n                norm", "Q016", ""),
    # counts that round down
    ("skinny_fixup", "    blocks = lm.cdiv(K, TK)", "    blocks = K // TK", "Q012", "`K // 64` rounds down"),
    ("nvfp4_bmm_umma", "offset=((t.e * lm.cdiv(N, 128)", "offset=((t.e * (N // 128)", "Q012", "nothing reads `SFB` from"),
    ("prefill_varlen_sm120", "tiles=(lm.cdiv(MAXQ, BQ),", "tiles=(MAXQ // BQ,", "Q012", "is in no tile"),
    ("gemm_serial_k", "lm.cdiv(M, 64), lm.cdiv(K, BK)", "lm.cdiv(M, 64), K // BK", "Q012", "`K // 64` rounds down"),
    ("residual_inplace", "lm.cdiv(ROWS, WARPS)", "ROWS // WARPS", "Q012", "`ROWS // 4` rounds down"),
    ("gemm_split_send", "lm.cdiv(lm.cdiv(K, BK), 2)", "lm.cdiv(K, BK) // 2", "Q012", "`lm.cdiv(K, 64) // 2` rounds down"),
    ("attention_token_table", "lm.range(lm.cdiv(n, BN))", "lm.range(n // BN)", "Q012", "whole tiles only"),
    ("kv_append", "lm.range(lm.cdiv(n, ROWS))", "lm.range(n // ROWS)", "Q012", "whole tiles only"),
    ("decode_split_table", "each = lm.cdiv(pages, S)", "each = pages // S", "Q012", "S shares of"),
    # scales
    ("nvfp4_bmm_umma", "lm.tmem_copy(ca.cols(16 * j, 16), fa[s]", "lm.tmem_copy(ca.cols(16 * j, 16), fb[s]", "S045", "scales `a`, whose rows move with `m`"),
]  # fmt: skip


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


@pytest.mark.parametrize(("name", "old", "new", "code", "message"), REFUSED, ids=[f"{r[0]}: {r[3]}, {r[4][:40]}" for r in REFUSED])
def test_a_careful_reader_would_see_it_and_so_does_one_rule(name: str, old: str, new: str, code: str, message: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    (error,) = verify_text(good.replace(old, new), suggest=False).errors
    assert error.code == code and message in error.message, (error.code, error.message)


def test_rows_and_columns_that_move_together_need_no_base() -> None:
    text = (CORPUS / "chunk_scores.py").read_text("utf-8")
    assert "lm.iota(acc, axis=1) < lm.iota(acc, axis=0)" in text and codes(text) == []


def test_rows_of_a_group_may_be_counted_from_their_tile() -> None:
    text = (CORPUS / "gemm_grouped.py").read_text("utf-8")
    store = "            mine.store(lm.cast(acc, lm.bf16))"
    assert text.count(store) == 1
    for mask in ("lm.iota(acc, 0, base=64 * math.index) < t.rows", "lm.iota(acc, 0) < t.rows - 64 * math.index", "lm.iota(acc, 0, base=64 * math.index) < lm.ld(OFFS, t.group + 1) - t.row0"):
        assert "D043" not in codes(text.replace(store, f"            kept = lm.where({mask}, acc, 0.0)\n" + store.replace("acc", "kept")))
    assert "D043" in codes(text.replace(store, "            kept = lm.where(lm.iota(acc, 0) < lm.ld(OFFS, t.group + 1), acc, 0.0)\n" + store.replace("acc", "kept")))


def test_positions_may_be_followed_by_what_they_are_compared_with() -> None:
    text = (CORPUS / "decode_cluster_merge.py").read_text("utf-8")
    old = "lm.iota(x, 1, base=(t.part + i * RANKS) * PAGE) < n,"
    assert codes(text.replace(old, "lm.iota(x, 1) < n - (t.part + i * RANKS) * PAGE,")) == []


def test_a_mask_that_keeps_back_what_its_loop_brings_is_the_authors_choice() -> None:
    text = d045_past_the_loop.PAGE.passing
    assert codes(text.replace("<= lm.iota(s, 0, base=t.m * 64)", "< lm.iota(s, 0, base=t.m * 64) + 1")) == []
    assert codes(text.replace("<= lm.iota(s, 0, base=t.m * 64)", "< lm.iota(s, 0, base=t.m * 64)")) == []
    assert codes(text.replace("lm.cdiv((t.m + 1) * 64, 64)", "S // 64").replace("<= lm.iota(s, 0, base=t.m * 64)", "<= lm.iota(s, 0, base=t.m * 64) + 1")) == []


def test_what_is_neutral_may_fill_a_tile_up() -> None:
    passing = d046_filled_sum.PAGE.passing
    assert codes(passing.replace("lm.exp(x)", "x").replace(", fill=-lm.inf", "")) == []
    assert codes(passing.replace("lm.exp(x)", "x * x").replace(", fill=-lm.inf", "")) == []
    assert codes(passing.replace("lm.exp(x)", "(x - 1.0) * (x - 1.0)").replace(", fill=-lm.inf", "")) == ["D046"]
    assert codes(passing.replace("lm.exp(x)", "lm.where(lm.iota(x, 0, base=i * 256) < N, lm.exp(x), 0.0)").replace(", fill=-lm.inf", "")) == []
    assert codes(passing.replace(", fill=-lm.inf", "").replace("lm.assume(N > 0)", "lm.assume(N > 0 and N % 256 == 0)")) == []


def test_the_largest_of_absolute_values_may_meet_zeros() -> None:
    text = d046_filled_sum.PAGE.passing.replace(", fill=-lm.inf", "").replace("lm.sum(total, axis=1)", 'lm.reduce(total, "max", axis=1)')
    assert codes(text.replace("total + lm.exp(x)", "lm.max(total, lm.abs(x))")) == []
    assert codes(text.replace("total + lm.exp(x)", "lm.max(total, x)").replace("init=0.0", "init=-1e30")) == ["D046"]


@pytest.mark.parametrize(
    ("name", "old", "new", "total"),
    [("blocksparse_prefill", "lm.where(den > 0, acc / den, 0.0)", "acc / den", "den"), ("attention_token_table", "lm.where(l > 0.0, o * lm.rcp(l), 0.0)", "o * lm.rcp(l)", "l")],
)
def test_lists_between_offsets_may_be_empty_which_is_a_warning_since_a_host_may_know_better(name: str, old: str, new: str, total: str) -> None:
    text = (CORPUS / f"{name}.py").read_text("utf-8")
    assert text.count(old) == 1
    verdict = verify_text(text.replace(old, new), suggest=False)
    (told,) = [d for d in verdict.diagnostics if d.code == "D042"]
    assert verdict.verdict == "pass" and told.severity == "warning" and f"`{total}` may still be 0 here" in told.message


def test_a_sequence_that_decides_where_its_result_goes_may_be_empty() -> None:
    text = (CORPUS / "attention_varlen.py").read_text("utf-8")
    assert "lm.where(l >" not in text and "D042" not in codes(text)
    assert codes(d042_empty_sum.PAGE.passing) == []


def test_a_sum_of_the_first_block_may_be_brought_up_to_date_behind_the_loop() -> None:
    text = d049_left_behind.PAGE.failing
    kept = text.replace("            for k in", "            then = most\n            for k in").replace("lm.store(S, total,", "lm.store(S, total * lm.exp(then - most),")
    assert codes(text) == ["D049"] and codes(kept) == []


def test_the_fix_hands_on_what_the_window_left_behind() -> None:
    text = (CORPUS / "conv_silu_rounds.py").read_text("utf-8")
    for line in ("p3 = p2", "p2 = p1", "p1 = u"):
        (error,) = verify_text(text.replace(f"                {line}\n", "")).errors
        assert verify_text(applied(text.replace(f"                {line}\n", ""), error.fixes[0].edits)).verdict == "pass"


def test_a_window_that_nobody_slides_is_none() -> None:
    text = (CORPUS / "stencil_halo.py").read_text("utf-8")
    assert codes(text.replace("                above = here\n                here = below\n", "")) == []


SHARES = """
@cake.schedule(target=("sm_80", "sm_90a"))
def parts(lm, X: LM.gmem2d[LM.f32, "N", 256], Y: LM.gmem2d[LM.f32, "S", 256], N: LM.i32, S: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(S > 0 and N % 8 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(S,), names=("s",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            n = lm.cdiv(N, 8)
            for i in lm.range(t.s * (n // S), (t.s + 1) * (n // S)):
                total = total + lm.load(X, coords=(0, i * 8), shape=(256,))
            lm.store(Y, total, coords=(0, t.s))
"""


def test_shares_that_round_down_leave_the_rest_to_nobody_unless_there_is_none() -> None:
    assert codes(SHARES) == ["Q012"]
    assert codes(SHARES.replace("N % 8 == 0", "lm.cdiv(N, 8) % S == 0")) == []
    assert codes(SHARES.replace("(t.s + 1) * (n // S))", "n)")) == []
    assert codes(SHARES.replace("n // S", "(n + S - 1) // S").replace("(t.s + 1) * ((n + S - 1) // S))", "lm.min(n, (t.s + 1) * ((n + S - 1) // S)))")) == []


def test_an_argument_that_is_divided_into_shares_may_be_known_to_be_whole() -> None:
    assert codes(SHARES.replace("lm.cdiv(N, 8)", "N").replace("i * 8", "i")) == []


def test_a_tile_of_one_number_may_be_stored_or_give_others_their_shape() -> None:
    text = (CORPUS / "layernorm_backward.py").read_text("utf-8")
    for old, new in (("            sum_b = sum_b + dy\n", ""), ("lm.atomic(DBETA, sum_b, coords=(0,), op=\"add\", order=\"any\")", "lm.store(DBETA, sum_b, coords=(0,))")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert "D040" not in codes(text)


def test_a_count_that_rounds_down_what_is_known_to_be_whole_is_none() -> None:
    text = (CORPUS / "skinny_fixup.py").read_text("utf-8").replace("    blocks = lm.cdiv(K, TK)", "    blocks = K // TK").replace("lm.assume(K % 8 == 0)", "lm.assume(K % 64 == 0)")
    assert codes(text) == []
