"""Generated kernels, executed on the CPU by `emulator.hpp`, compute what the schedules say."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from corpus import program, source
from emulate import COMPILER, run

import cake_kernels
from cake_backend.cuda.lower import Lowered, lower
from cake_backend.judge.check import Reference

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
BF16 = ml_dtypes.bfloat16


def lowered(file: str, params: dict[str, Any] | None = None, target: str | None = None) -> Lowered:
    text = source(file)
    return lower(program(text, params, target), source=text)


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(BF16)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(wide(found) - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize(
    ("file", "target", "shape"),
    [
        ("gemm_ws", None, (200, 512, 160)),  # ragged rows and a ragged k tile, several tiles a CTA
        ("gemm_cluster", None, (300, 512, 192)),  # an odd number of row tiles: half a cluster lies outside
        ("gemm_cp_async", "sm_80", (200, 136, 200)),
        ("gemm_cp_async", "sm_90a", (136, 72, 40)),
    ],
)
def test_a_gemm_is_the_product(tmp_path: Path, file: str, target: str | None, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = normal(1, m, k), normal(2, n, k)
    out = run(lowered(file, target=target), {"A": a, "B": b, "C": np.full((m, n), 7, BF16)}, {"M": m, "N": n, "K": k}, tmp_path, clusters=2)
    assert relative(out["C"], wide(a) @ wide(b).T) < 4e-3


def test_a_ring_of_three_goes_around_as_a_ring_of_four_does(tmp_path: Path) -> None:
    a, b = normal(1, 300, 704), normal(2, 256, 704)  # eleven steps a tile: tiles begin at every slot
    tensors = {"A": a, "B": b, "C": np.full((300, 256), 7, BF16)}
    out = run(lowered("gemm_cluster", {"STAGES": 3}), tensors, {"M": 300, "N": 256, "K": 704}, tmp_path, clusters=1)
    assert relative(out["C"], wide(a) @ wide(b).T) < 4e-3


@pytest.mark.parametrize(("file", "points", "centroids"), [("kmeans_assign", 300, 600), ("kmeans_two_blocks", 300, 200)])
def test_an_assignment_finds_the_nearest_centroid(tmp_path: Path, file: str, points: int, centroids: int) -> None:
    x, mu = normal(1, 2, points, 128), normal(2, 2, centroids, 128)
    mu[:, centroids // 2] = mu[:, 3]  # a tie: the lower index wins
    x[:, 7] = mu[:, 3] * BF16(4)
    norms = (wide(mu) ** 2).sum(-1).astype(np.float32)
    tensors = {"X": x, "MU": mu, "MU_SQ": norms, "IDX": np.full((2, points), -1, np.int32), "DIST": np.zeros((2, points), np.float32)}
    out = run(lowered(file), tensors, {"NB": 2, "NP": points, "NK": centroids}, tmp_path, clusters=2)
    d = norms[:, None, :] - 2 * np.einsum("bpd,bkd->bpk", wide(x), wide(mu))
    assert (out["IDX"] == d.argmin(-1)).all()
    assert np.abs(out["DIST"] - d.min(-1)).max() < 1e-3


@pytest.mark.parametrize(("schedule", "width"), [("hopper", 128), ("hopper_deep", 24)])
def test_every_column_of_a_tile_can_win_and_equal_ones_leave_it_to_the_first(tmp_path: Path, schedule: str, width: int) -> None:
    """24 columns are three of 8: an odd number of them goes column by column, not in groups of four."""
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("kmeans_assign", schedule))
    count = 2 * width
    mu = normal(2, 1, count, 128)
    x = np.concatenate([mu * BF16(4), np.zeros((1, 20, 128), BF16)], axis=1)  # all centroids of one length are as far from zero
    norms = np.full((1, count), 128, np.float32)
    norms[0, 0] = np.inf  # which leaves zeros to the second
    points = x.shape[1]
    tensors = {"X": x, "MU": mu, "MU_SQ": norms, "IDX": np.full((1, points), -1, np.int32), "DIST": np.zeros((1, points), np.float32)}
    made = lower(program(text, {"BN": width, "D": 128}, "sm_90a"), source=text)
    out = run(made, tensors, {"NB": 1, "NP": points, "NK": count}, tmp_path)
    d = norms[:, None, :] - 2 * np.einsum("bpd,bkd->bpk", wide(x), wide(mu))
    assert (out["IDX"] == d.argmin(-1)).all()
    assert (out["IDX"][0, 1:count] == np.arange(1, count)).all() and (out["IDX"][0, count:] == 1).all()


def test_a_nan_score_never_wins(tmp_path: Path) -> None:
    x, mu = normal(1, 1, 128, 128), normal(2, 1, 256, 128)
    norms = (wide(mu) ** 2).sum(-1).astype(np.float32)
    norms[0, ::2] = np.nan  # also the first column of every chain
    tensors = {"X": x, "MU": mu, "MU_SQ": norms, "IDX": np.full((1, 128), -1, np.int32), "DIST": np.zeros((1, 128), np.float32)}
    out = run(lowered("kmeans_assign"), tensors, {"NB": 1, "NP": 128, "NK": 256}, tmp_path)
    d = norms[:, None, :] - 2 * np.einsum("bpd,bkd->bpk", wide(x), wide(mu))
    assert (out["IDX"] == np.where(np.isnan(d), np.inf, d).argmin(-1)).all()


@pytest.mark.parametrize("params", [{"D": 2048}, {"WARPS": 8, "CTAS": 4}])
def test_rmsnorm_divides_by_the_root_mean_square(tmp_path: Path, params: dict[str, int]) -> None:
    d = params.get("D", 4096)
    x, w = normal(1, 5, d), normal(2, d)
    out = run(lowered("rmsnorm", params), {"X": x, "W": w, "Y": np.zeros((5, d), BF16)}, {"ROWS": 5, "eps": 1e-5}, tmp_path, clusters=2)
    assert relative(out["Y"], wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-5) * wide(w)) < 4e-3


def test_a_scalar_is_summed_over_members_once_each(tmp_path: Path) -> None:
    """Each member holds one partial sum, equal on its lanes; adding lanes again made the total 32 times too large on a GPU."""
    path = Path(__file__).parents[3] / "cake_kernels" / "softmax" / "hopper_long.py"
    text = path.read_text()
    x = normal(3, 3, 4096)
    kernel = lower(program(text, {"N": 4096, "WARPS": 4, "PART": 512}, "sm_90a"), source=text)
    out = run(kernel, {"X": x, "Y": np.zeros_like(x)}, {"ROWS": 3}, tmp_path, clusters=2)
    e = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
    assert relative(out["Y"], e / e.sum(-1, keepdims=True)) < 6e-3


@pytest.mark.parametrize(("s", "d", "params"), [(300, 128, {}), (200, 128, {"CAUSAL": False, "BN": 64}), (128, 64, {"D": 64})])
def test_attention_is_the_softmax_of_scores_times_values(tmp_path: Path, s: int, d: int, params: dict[str, Any]) -> None:
    q, k, v = (normal(i, 1, 1, s, d) for i in range(3))
    scale = 1.4426950408889634 / d**0.5
    tensors = {"Q": q, "K": k, "V": v, "O": np.zeros_like(q), "LSE": np.zeros((1, 1, s), np.float32)}
    out = run(lowered("fmha_fwd", params), tensors, {"B": 1, "H": 1, "S": s, "scale_log2": scale}, tmp_path, clusters=1)
    scores = np.einsum("bhqd,bhkd->bhqk", wide(q), wide(k)) * scale
    if params.get("CAUSAL", True):
        scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    p = np.exp2(scores - top)
    total = p.sum(-1, keepdims=True)
    assert relative(out["O"], np.einsum("bhqk,bhkd->bhqd", p / total, wide(v))) < 4e-3
    assert np.abs(out["LSE"] - (top + np.log2(total))[..., 0]).max() < 1e-4


def test_a_chunked_recurrence_carries_its_state_in_registers(tmp_path: Path) -> None:
    sequences, heads, c, dk, dv = (150, 64, 30), 2, 64, 128, 128
    chunks = [-(-n // c) for n in sequences]
    first = np.r_[0, np.cumsum(chunks)[:-1]].astype(np.int32)
    starts = np.r_[0, np.cumsum(sequences)].astype(np.int32)
    blocks = sum(chunks) * heads
    t: dict[str, np.ndarray] = {n: normal(i, blocks, c, dk, scale=0.1) for i, n in enumerate(("KD", "QD", "KR"))}
    t |= {n: normal(i + 3, blocks, c, c, scale=0.1) for i, n in enumerate(("INV", "MQK"))}
    rng = np.random.default_rng(9)
    t["GT"] = rng.uniform(0.5, 1, (blocks, dk)).astype(np.float32)
    t["BETA"] = rng.uniform(0.5, 1, (blocks, c)).astype(np.float32)
    for i, n in enumerate(sequences):  # the last chunk of a sequence is padded with zeros
        tail = n - (chunks[i] - 1) * c
        for w in ((first[i] + chunks[i] - 1) * heads + h for h in range(heads)):
            for name in ("KD", "QD", "KR", "INV", "MQK", "BETA"):
                t[name][w, tail:] = 0
            t["INV"][w, :, tail:] = t["MQK"][w, :, tail:] = 0
    t["V"] = normal(20, int(starts[-1]), heads, dv, scale=0.1)
    t["O"] = np.full_like(t["V"], 9)
    t["S0"] = (rng.standard_normal((len(sequences) * heads, dv, dk)) * 0.1).astype(np.float32)
    t["S1"] = np.zeros_like(t["S0"])
    t["CU"], t["CHUNK0"] = starts, first
    out = run(lowered("kda_inter"), t, {"H": heads, "NSEQ": len(sequences)}, tmp_path)

    expected = np.zeros(t["V"].shape)
    for i in range(len(sequences)):
        for h in range(heads):
            state = wide(t["S0"][i * heads + h])
            for j in range(chunks[i]):
                w, lo = (first[i] + j) * heads + h, starts[i] + j * c
                hi = min(lo + c, starts[i + 1])
                v = np.zeros((c, dv))
                v[: hi - lo] = wide(t["V"][lo:hi, h])
                narrow = wide(state.astype(BF16))
                u = wide(((v.T - narrow @ wide(t["KD"][w]).T) * t["BETA"][w]).astype(BF16)) @ wide(t["INV"][w]).T
                u = wide(u.astype(BF16))
                expected[lo:hi, h] = (narrow @ wide(t["QD"][w]).T + u @ wide(t["MQK"][w]).T).T[: hi - lo]
                state = state * t["GT"][w] + u @ wide(t["KR"][w])
            assert np.abs(out["S1"][i * heads + h] - state).max() < 2e-3
    assert relative(out["O"], expected) < 6e-3


@pytest.mark.parametrize(
    ("schedule", "params"),
    [
        ("hopper_single", {"STAGES": 3, "UNROLL": 1}),  # a tile reaches into the next block of scales: the mask is one predicate 16 columns
        ("hopper_relay", {"BN": 112, "MEMBERS": 2, "ASTAGES": 2, "BSTAGES": 3, "GRID": 4}),
        ("hopper_split", {"BN": 56, "FIRST": 1, "WARM": True}),
        ("hopper", {"BN": 192, "STAGES": 3}),
        ("hopper_halves", {"LEAD": 64}),  # products in two groups, a turn passed between them
    ],
)
def test_an_fp8_gemm_promotes_each_block_with_the_scales_of_its_columns(tmp_path: Path, schedule: str, params: dict[str, Any]) -> None:
    task = cake_kernels.tasks()["gemm_fp8"]
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("gemm_fp8", schedule))
    axes = {"M": 70, "N": 264, "K": 384}
    inputs = task.inputs(axes, task.distribution("blocks"), 1)
    scalars = {name: int(value) for name, value in task.scalar_values(axes).items()}
    out = run(lower(program(text, params), source=text), {**inputs, "C": np.zeros((70, 264), BF16)}, scalars, tmp_path, clusters=2)
    assert relative(out["C"], task.oracle(inputs, axes, None)["C"]) < 5e-3


def test_a_column_mask_is_one_predicate_a_block_where_its_bound_falls_between_blocks() -> None:
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("gemm_fp8", "hopper_single"))
    assert "16 * (i_ / 8) < " in lower(program(text, {"STAGES": 3}), source=text).text
    odd = text.replace("128 - t.n * BN % 128", "127 - t.n * BN % 128")
    assert "lane & 3u" in lower(program(odd, {"STAGES": 3}), source=odd).text.split("__fmaf_rn(part")[1].split(";")[0]


@pytest.mark.parametrize(
    "params",
    [{"D": 64, "CAUSAL": True, "SKIP": True, "DEAL": 3, "MEMBERS": 3, "STAGES": 4, "REGS": 160, "LOAD_REGS": 32}, {"D": 128, "STAGED": True}],
    ids=["causal, three members", "full, two members"],
)
def test_attention_with_a_lagging_reference_is_attention(tmp_path: Path, params: dict[str, Any]) -> None:
    """Scores that fall along the keys outgrow the reference in every block."""
    task = cake_kernels.tasks()["attention"]
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("attention", "hopper"))
    params = params | {"QSTAGES": 2, "LAG": True, "SPLIT": 32, "POLY": 16}
    one = lower(program(text, params, "sm_90a"), source=text)
    axes = task.shape(f"sim_200_d{params['D']}{'_causal' if params.get('CAUSAL') else ''}").axes
    inputs = task.inputs(axes, task.distribution("rising"), 4)
    out = run(one, {**inputs, "O": np.zeros_like(inputs["Q"])}, dict(task.scalar_values(axes)), tmp_path, clusters=2)["O"]
    verdict = Reference(task, axes, inputs, None).compare({"O": out}, task.distribution("rising"))["O"]
    assert verdict.ok, verdict.reason
