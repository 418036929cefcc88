"""Values followed where they were lost before: through lists of the best, sends to peers, sums over axes that one operand names, and choices by column."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

REFUSED = [
    ("retrieve_topk", "row = t.q * 128 + 64 * score.index", "row = t.q * 128 + 64 * (1 - score.index)", "S034", "stores what was loaded at `NQ`"),
    ("retrieve_topk", "lm.mma(acc, sq.rows(64 * score.index, 64), sk[s], init=True)", "lm.mma(acc, sk[s], sq.rows(64 * score.index, 64), init=True)", "S034", "`NK`"),
    ("gemm_split_send", "lm.mma(acc, sa[s], sb[s],", "lm.mma(acc, sb[s], sa[s],", "S034", "stores rows along `N`"),
    ("gemm_blocksparse", "lm.mma(acc, sv[s], sb[s].T)", "lm.mma(acc, sv[s], sb[s])", "S034", "was summed over `N`"),
    ("softmax_two_pass", 'coords=(j * BLOCK, t.r), shape=(BLOCK,), clip=True, fill=-1e30, cache', 'coords=((j + 1) * BLOCK, t.r), shape=(BLOCK,), clip=True, fill=-1e30, cache', "S034", "stores what was loaded"),
    ("allgather_ring", "coords=(0, (t.b * PARTS + t.p) * 64, t.p)", "coords=((t.b * PARTS + t.p) * 64, 0, t.p)", "D035", "each other's place"),
    ("gelu_one_role", "tma_store(Y, coords=(i * 64, t.m * 64))", "tma_store(Y, coords=(t.m * 64, i * 64))", "D035", "each other's place"),
    ("gelu_one_role", "tile.tma_load(X, coords=(i * 64, t.m * 64)", "tile.tma_load(X, coords=(t.m * 64, i * 64)", "D035", "each other's place"),
    ("gemm_blocksparse", "coords=(t.n * BN, c * 64)", "coords=(c * 64, t.n * BN)", "D035", "each other's place"),
    ("moe_gather_up", "for k in lm.range(kt):", "for k in lm.range(kt - 1):", "S035", "leave out `K`"),
    ("retrieve_topk", "for i in lm.static_range(TOP):", "for i in lm.static_range(TOP - 1):", "Q012", "nothing writes `VAL` from 3 on"),
    ("gemm_stream_k", "lm.store(WS, acc * 1.0, coords=(0, 0, t.u))", "pass", "S043", "nothing in this launch writes `WS`"),
    ("gemm_stream_k", "lm.spin(READY, u, 1)", "pass", "S039", "`WS`"),
    ("gemm_stream_k", "lm.spin(READY, u, 1)", "lm.spin(READY, 0, 1)", "S039", "`WS`"),
    ("gemm_stream_k", "lm.signal(READY, t.u, 1)", "lm.signal(READY, t.u, 0)", "S041", "READY"),
    ("tcgen05_mlp", "sx = pool.view(offset=0,", "sx = pool.view(offset=x_bytes + 2 * w_bytes,", "S007", "reads `sx` again"),
    ("layernorm_cluster", "lm.iota(pair, axis=1) < 64,", "lm.iota(pair, axis=1) < 65,", "S028", "no read takes `pair + squares`"),
    ("layernorm_cluster", "lm.iota(pair, axis=1) < 64,", "lm.iota(pair, axis=1) < 0,", "S028", "no read takes `pair + total`"),
]


@pytest.mark.parametrize(("name", "old", "new", "code", "message"), REFUSED, ids=[f"{n}: {new}" for n, _, new, _, _ in REFUSED])
def test_what_contradicts_the_rest_of_the_text_is_refused(name: str, old: str, new: str, code: str, message: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    errors = verify_text(good.replace(old, new), suggest=False).errors
    assert [e.code for e in errors] == [code] and message in errors[0].message


PACKAGED = [
    ("gemm_fp8/hopper", "scale_a[s].cols(64 * math.index, 64)", "scale_a[s].cols(0, 64)", "S034", "combined with what was loaded at `MP`"),
    ("gemm_fp8/hopper", "scale_a[s].cols(64 * math.index, 64)", "scale_a[s].cols(64 * (1 - math.index), 64)", "S034", "`MP`"),
    ("gemm_fp8/hopper", "scale_a.tma_load(SA, coords=(t.m * BM, k)", "scale_a.tma_load(SA, coords=((t.m + 1) * BM, k)", "S034", "`MP`"),
    ("gemm_fp8/hopper", "t.m * BM + 64 * math.index))", "t.m * BM + 64 * (1 - math.index)))", "S034", "stores what was loaded at `M`"),
    ("gemm_fp8/hopper_tall_share", "t.m * BM + 128 * math.index + 64))", "t.m * BM + 128 * (1 - math.index) + 64))", "S034", "`M`"),
]


@pytest.mark.parametrize(("name", "old", "new", "code", "message"), PACKAGED, ids=[f"{n}: {new}" for n, _, new, _, _ in PACKAGED])
def test_scales_and_results_belong_to_the_products_rows(name: str, old: str, new: str, code: str, message: str) -> None:
    good = (CORPUS.parents[2] / "cake_kernels" / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    errors = verify_text(good.replace(old, new), suggest=False).errors
    assert [e.code for e in errors] == [code] and message in errors[0].message


SHIFT = '''
@cake.schedule(target="sm_90a")
def shift(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", "N"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            for j in lm.range(lm.cdiv(N, 512)):
                x = lm.load(X, coords=(j * 512, t.r + 1), shape=(512,), clip=True)
                y = lm.load(X, coords=(j * 512, t.r), shape=(512,), clip=True)
                lm.store(Y, x - y, coords=(j * 512, t.r), clip=True)
'''


def test_a_row_further_on_may_be_meant() -> None:
    assert not verify_text(SHIFT).errors


@pytest.mark.parametrize("bound", [1, 40, 64])
def test_a_choice_of_which_both_sides_are_read_passes(bound: int) -> None:
    good = (CORPUS / "layernorm_cluster.py").read_text("utf-8").replace("lm.iota(pair, axis=1) < 64,", f"lm.iota(pair, axis=1) < {bound},")
    assert verify_text(good).verdict == "pass"


IN_PLACE = '''
@cake.schedule(target="sm_90a")
def twice(lm, X: LM.tma2d[LM.f32, "R", 128], Y: LM.tma2d[LM.f32, "R", 128], R: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(4096)
    tile = pool.view(offset=0, shape=(8, 128), dtype=lm.f32)
    same = pool.view(offset=0, shape=(8, 128), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(R, 8),), names=("r",))
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.store_wait(pending=0)
            lm.sync(meet)
            tile.tma_load(X, coords=(0, t.r * 8), stage=s, barrier=full)
            lm.wait(full, stage=s)
            x = tile.load(form="vec")
            lm.sync(meet)
            same.store(x + x)
            lm.fence_proxy()
            lm.sync(meet)
            same.tma_store(Y, coords=(0, t.r * 8))
        lm.store_wait(pending=0)
'''


def test_a_tile_updated_in_place_through_another_view_passes() -> None:
    verdict = verify_text(IN_PLACE)
    assert verdict.verdict == "pass", [d.to_json() for d in verdict.diagnostics]
    assert verify_text(IN_PLACE.replace("same.tma_store", "tile.tma_store")).verdict == "pass"
