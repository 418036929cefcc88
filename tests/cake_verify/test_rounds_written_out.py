"""Loops of which a first round stands by itself, or two rounds at a time are written out: the same kernels, as somebody who wants the branch out of the loop writes them."""

from __future__ import annotations

import ast
import copy

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text
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


CHUNKS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def local(lm, Q: LM.gmem3d[LM.bf16, "BH", "S", 64], K: LM.gmem3d[LM.bf16, "BH", "S", 64], V: LM.gmem3d[LM.bf16, "BH", "S", 64], O: LM.gmem3d[LM.bf16, "BH", "S", 64], BH: LM.i32, S: LM.i32, CHUNK: LM.i32, scale: LM.f32):
    """Llama 4: causal inside chunks of CHUNK positions."""
    lm.launch(grid="tiles")
    lm.assume(S > 0 and CHUNK % 64 == 0 and CHUNK > 0)
    pool = lm.smem(3 * 8192)
    qs = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    ks = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    vs = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, 64), BH), names=("m", "h"))
    with work:
        for t in lm.tiles(sched):
            qs.cp_async(Q, coords=(0, t.m * 64, t.h))
            lm.cp_commit()
            s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(s, init=-lm.inf)
            l = lm.rowvec(s, init=0.0)
            first = t.m * 64 // CHUNK * CHUNK // 64
            for j in lm.range(first, t.m + 1):
                ks.cp_async(K, coords=(0, j * 64, t.h))
                vs.cp_async(V, coords=(0, j * 64, t.h))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(meet)
                lm.mma(s, qs.ldmatrix(form="a"), ks.ldmatrix(form="b"), init=True)
                x = s * scale
                if j == t.m:
                    x = lm.where(lm.iota(s, 1) <= lm.iota(s, 0), x, -lm.inf)
                top = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2(x - top)
                fix = lm.exp2(m - top)
                l = l * fix + lm.sum(p, axis=1)
                o = o * fix
                m = top
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), vs.T.ldmatrix(form="b"))
                lm.sync(meet)
            lm.store(O, lm.cast(o / l, lm.bf16), coords=(0, t.m * 64, t.h), clip=True)
'''
DIAGONAL = "if j == t.m:"


@pytest.mark.parametrize("asked", [DIAGONAL, "if j >= t.m:", "if t.m == j:", "if (j + 1) * 64 == t.m * 64 + 64:"])
def test_positions_in_the_one_tile_on_the_diagonal(asked: str) -> None:
    assert verify_text(CHUNKS.replace(DIAGONAL, asked)).verdict == "pass"


def test_positions_in_every_tile_do_not_stand_still() -> None:
    assert "D043" in [d.code for d in verify_text(CHUNKS.replace(DIAGONAL, "if scale > 0.0:")).errors]
