"""Masks of filled columns, numbers of columns, rows of groups, members whose sums are lost: small edits of the benchmark's schedules."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.truth import judge
from cake_verify.gates import verify_text

EDITS = [
    ("attention_mma_sync", "base=j * BN) < S, sc", "base=j * BN) < S + 1, sc", "D010"),
    ("attention_mma_sync", "base=j * BN) < S, sc", "base=0) < S, sc", "D043"),
    ("kmeans_two_accumulators", "base=(kt - 1) * BN) < NK", "base=(kt - 1) * BN) <= NK", "D010"),
    ("gemm_grouped", "lm.min(64, t.rows - 64 * math.index)", "lm.min(64, t.rows - 64 * (1 - math.index))", "Q001"),
    ("gemm_grouped", "rows=rows)", "rows=rows - 1)", "Q001"),
    ("gemm_grouped", "if rows > 0:", "if rows > 1:", "S013"),
    ("attention_varlen", "if rows > 0:", "if rows != 1:", "S013"),
    ("gemm_split_k", "if math.index == 1:", "if math.index != 1:", "S035"),
    ("gemm_split_k", "if math.index == 0:", "if math.index != 0:", "S035"),
    ("attention_mma_sync", "lm.where(lm.iota(sc, axis=1, base=j * BN) < S, sc, -lm.inf)", "sc * 1.0", "D010"),
    ("attention_varlen", "lm.where(lm.iota(sc, axis=1, base=j * BN) < eos - bos, sc, -lm.inf)", "sc * 1.0", "D036"),
    ("attention_varlen", "base=j * BN) < eos - bos, sc", "base=j * BN) < eos - bos + 1, sc", "D036"),
    ("attention_causal", "seen & (col <= lm.iota(sc, axis=0, base=row0))", "seen & (col <= lm.iota(sc, axis=0, base=0))", "S034"),
    ("attention_causal", "lm.iota(sc, axis=1, base=(n - 1 - j) * BN)", "lm.iota(sc, axis=1, base=(n - j) * BN)", "S034"),
    ("gated_linear_attention", "lm.mma(st, vt, sk[s].T)", "lm.mma(st, vt, sk[s].T, init=True)", "S035"),
    ("shipped_kmeans", "axis=1, base=k * BN, into=best", "axis=1, base=0, into=best", "S034"),
    ("attention_causal", "base=(n - 1 - j) * BN) <= lm.iota(sc, axis=0, base=row0), sc", "base=(n - 1 - j) * BN) <= lm.iota(sc, axis=0, base=row0) + 1, sc", "D045"),
    ("attention_causal", "lm.where(lm.iota(sc, axis=1, base=(n - 1 - j) * BN) <= lm.iota(sc, axis=0, base=row0), sc, -lm.inf)", "sc", "D037"),
    ("attention_window", "col <= row and", "col <= row + 1 and", "D045"),
    ("retrieve_topk", "base=j * BN) < NK, acc", "base=j * BN) < NK + 1, acc", "D010"),
    ("attention_paged_decode", "if work.index == 0:", "if work.index != 0:", "Q001"),
    ("vocab_lse", "lm.iota(z, 1, base=v * VB)", "lm.iota(z, 1, base=v)", "D010"),
    ("prefill_varlen_sm120", "lm.iota(p, 1, base=j * BN)", "lm.iota(p, 1, base=0)", "D043"),
    ("prefill_varlen_sm120", "sv[u].T.ldmatrix(form=\"b\"))", "sv[u].T.ldmatrix(form=\"b\"), init=True)", "S035"),
    ("prefill_varlen_sm120", "sv.tma_load(V, coords=(t.h // GROUP * D, k0 + j * BN)", "sv.tma_load(V, coords=(t.h // GROUP * D, k0 + (j + 1) * BN)", "S034"),
    ("awq_split_k", "coords=((g + ST - 1) * TK // 2, t.n * TN)", "coords=((g + ST - 1) * TK // 2, (t.n + 1) * TN)", "S034"),
    ("skinny_fixup", "ws[u].ldmatrix(form=\"b\", like=o))", "ws[u].ldmatrix(form=\"b\", like=o), init=True)", "S035"),
    ("skinny_fixup", "coords=((k + ST - 1) * TK, t.n * TN)", "coords=((k + ST - 1) * TK, (t.n + 1) * TN)", "S034"),
    ("skinny_fixup", "if t.p < PARTS - 1:", "if t.p <= PARTS - 1:", "Q008"),
    ("vocab_lse", "                m = top\n", "                pass\n", "D040"),
    ("vocab_lse", "acc * lm.exp2((m - top) * 1.4426950408889634) + lm.reduce(", "acc + lm.reduce(", "D041"),
    ("mla_decode_split", "o = o * fix", "pass", "D041"),
    ("nsa_selected", "o = o * fix", "pass", "D041"),
    ("lora_shrink", "lm.cdiv(R, WARPS)", "R // WARPS", "Q012"),
    ("column_sums", "lm.cdiv(M, BM)", "M // BM", "Q012"),
    ("gemm_multicast_2x2", "lm.cdiv(M, 128)", "M // 128", "Q012"),
    ("gemm_grouped", "lm.cdiv(N, BN)", "N // BN", "Q012"),
    ("nvfp4_bmm_umma", "tiles=(lm.cdiv(M, 128)", "tiles=(M // 128", "Q012"),
    ("histogram", "lm.atomic(COUNT, bins.load(form=\"vec\", like=zero), coords=(0,), op=\"add\")", "lm.store(COUNT, bins.load(form=\"vec\", like=zero), coords=(0,))", "Q001"),
    ("blocksparse_prefill", "if i + 1 < end:", "if i + 1 <= end:", "D031"),
]


@pytest.mark.parametrize(("name", "old", "new", "code"), EDITS, ids=[f"{n}: {new}" for n, _, new, _ in EDITS])
def test_a_small_edit_is_refused_on_its_line_and_shown_by_the_simulator(name: str, old: str, new: str, code: str) -> None:
    case = CASES[name]
    good = case.text()
    assert good.count(old) == 1
    bad = good.replace(old, new)
    line = good[: good.index(old)].count("\n") + 1
    verdict = verify_text(bad, params=case.params, target=case.target)
    assert [d.code for d in verdict.errors] == [code]
    first = verdict.errors[0]
    lines = {first.span.line, *(span.line for span, _ in first.related)}
    assert any(abs(at - line) <= 2 for at in lines), (line, lines)
    assert judge(bad, name, most=4).state == "harmful"
