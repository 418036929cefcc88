"""Loops of which a first round stands by itself, or two rounds at a time are written out: the same kernels, as somebody who wants the branch out of the loop writes them."""

from __future__ import annotations

import ast
import copy

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify.proposals.placed import called


class _Put(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self.value) if node.id == self.name and isinstance(node.ctx, ast.Load) else node


def _round(loop: ast.For, value: str) -> list[ast.stmt]:
    assert isinstance(loop.target, ast.Name)
    return [_Put(loop.target.id, ast.parse(value, mode="eval").body).visit(copy.deepcopy(s)) for s in loop.body]


def _ends(loop: ast.For) -> tuple[str, str]:
    assert isinstance(loop.iter, ast.Call)
    ends = [ast.unparse(a) for a in loop.iter.args]
    return ("0", ends[0]) if len(ends) == 1 else (ends[0], ends[1])


class _Peeled(ast.NodeTransformer):
    """The first round of every innermost loop by itself, where there is one."""

    always = False

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if called(node.iter) != "range" or any(isinstance(n, ast.For) and called(n.iter) == "range" for s in node.body for n in ast.walk(s)):  # type: ignore[arg-type]  # a call
            return node
        return self.of(node, *_ends(node))

    def of(self, node: ast.For, lo: str, hi: str) -> ast.AST | list[ast.stmt]:
        first = _round(node, lo)
        node.iter = ast.parse(f"lm.range({lo} + 1, {hi})", mode="eval").body
        return [*first, node] if self.always else [ast.If(ast.parse(f"{lo} < {hi}", mode="eval").body, first, []), node]


class _PeeledAlways(_Peeled):
    always = True


class _Pairs(_Peeled):
    """Two rounds at once, and what is left."""

    def of(self, node: ast.For, lo: str, hi: str) -> ast.AST | list[ast.stmt]:
        if lo != "0":
            return node
        pairs = ast.For(ast.Name("pair", ast.Store()), ast.parse(f"lm.range(({hi}) // 2)", mode="eval").body, [*_round(node, "2 * pair"), *_round(node, "2 * pair + 1")], [])
        node.iter = ast.parse(f"lm.range(({hi}) // 2 * 2, {hi})", mode="eval").body
        return [pairs, node]


WAYS = {"where there is one": _Peeled, "by itself": _PeeledAlways, "pairs": _Pairs}
GOOD = [
    ("cp_async_fp8", "where there is one"), ("gelu_one_role", "by itself"), ("moe_gather_up", "by itself"), ("flash_alibi", "where there is one"),  # D067
    ("attention_varlen", "by itself"), ("window_sinks", "by itself"), ("gated_delta_state", "by itself"),  # D052
    ("nsa_selected", "where there is one"), ("moba_lists", "where there is one"), ("decode_cp_async_gqa", "where there is one"),  # D042
    ("skinny_fixup", "where there is one"), ("splitk_collector", "where there is one"), ("mlp_one_launch", "by itself"),  # Q017
    ("gated_linear_attention", "where there is one"), ("gated_linear_attention", "pairs"), ("indexer_logits", "by itself"), ("edge_softmax", "pairs"),  # S090
    ("paged_prefill", "pairs"), ("gemm_deep", "pairs"), ("attention_mma_sync", "pairs"), ("cross_entropy", "pairs"),  # S034, S090
]  # fmt: skip


@pytest.mark.parametrize(("name", "way"), GOOD)
def test_rounds_written_out(name: str, way: str) -> None:
    text = ast.unparse(ast.fix_missing_locations(WAYS[way]().visit(ast.parse(CASES[name].text()))))
    verdict = verdict_of(text, name)[0]
    assert verdict.verdict == "pass", [(d.code, d.message) for d in verdict.diagnostics if d.severity == "error" or "not decided" in d.message]


def test_the_tile_behind_a_first_round_that_brings_none() -> None:
    text = CASES["flash_alibi"].text()
    old = "                if j + 1 < n:\n                    smem_k.cp_async(K, coords=(0, (j + 1) * BN, t.h))"
    assert old in text
    assert "D067" in [d.code for d in verdict_of(text.replace(old, old.replace("j + 1", "j + 2")), "flash_alibi")[0].errors]
