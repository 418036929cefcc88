"""The launch manifest: strict reading, round trip, and evaluation on concrete tensors."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from cake_backend.binding import BindError, TensorLayout, bind
from cake_backend.manifest import Manifest
from cake_backend.manifest_json import ManifestError

GEMM: dict[str, Any] = {
    "version": 1,
    "schedule": "gemm_ws",
    "target": "sm_90a",
    "launches": [
        {
            "entry": "gemm_ws", "block": 384, "cluster": [2, 1, 1], "smem": 230464, "ctas_per_sm": 1,
            "grid": {"kind": "persistent", "tiles": ["cdiv(M, 128)", "cdiv(N, 256)"], "cluster": [2, 1]},
            "pdl": False,
            "params": [
                {"kind": "tmap", "map": 0}, {"kind": "tmap", "map": 1}, {"kind": "tmap", "map": 2},
                {"kind": "ptr", "tensor": "C"}, {"kind": "stride", "tensor": "C", "dim": 0},
                {"kind": "extent", "tensor": "C", "dim": 1}, {"kind": "scalar", "name": "M", "ctype": "i32"},
                {"kind": "expr", "expr": "cdiv(K, 64)", "ctype": "i32"}, {"kind": "hang"},
            ],
        }
    ],
    "maps": [
        {"tensor": "A", "dtype": "bf16", "rank": 2, "box": [64, 128], "swizzle": "128b", "l2": 256, "fill": "zero"},
        {"tensor": "B", "dtype": "bf16", "rank": 2, "box": [64, 128], "swizzle": "128b", "l2": 256, "fill": "zero"},
        {"tensor": "C", "dtype": "bf16", "rank": 2, "box": [64, 64], "swizzle": "128b", "l2": 256, "fill": "zero"},
    ],
    "tensors": {n: {"rank": 2, "dtype": "bf16", "mode": m} for n, m in (("A", "in"), ("B", "in"), ("C", "out"))},
    "scalars": {"M": "i32", "N": "i32", "K": "i32"},
    "guards": [{"expr": "K > 0", "message": "K must be positive", "line": 6}],
    "workspaces": [],
}  # fmt: skip


def gemm(m: int, n: int, k: int, data: dict[str, Any] | None = None) -> dict[str, Any]:
    tensors = {"A": (m, k), "B": (n, k), "C": (m, n)}
    manifest = Manifest.from_json(data or GEMM)
    return bind(manifest, {t: TensorLayout.dense(s, "bf16") for t, s in tensors.items()}, {"M": m, "N": n, "K": k})


def edited(path: str, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(GEMM)
    at: Any = data
    *parents, last = path.split("/")
    for key in parents:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return data


def test_round_trip_through_json() -> None:
    manifest = Manifest.from_json(GEMM)
    assert Manifest.loads(manifest.dumps()) == manifest
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))) == manifest


def test_tiles_are_rounded_to_the_cluster_along_its_axis() -> None:
    launch = gemm(300, 200, 256)["launches"][0]
    assert launch["tiles"] == 4 * 1, "three m tiles become four, one n tile stays"
    assert (launch["persistent"], launch["cluster"], launch["smem"]) == (True, [2, 1, 1], 230464)


def test_parameters_become_numbers() -> None:
    params = gemm(300, 200, 256)["launches"][0]["params"]
    assert params[3:] == [
        {"kind": "ptr", "tensor": "C"},
        {"kind": "u64", "value": 200},
        {"kind": "i32", "value": 200},
        {"kind": "i32", "value": 300},
        {"kind": "i32", "value": 4},
        {"kind": "hang"},
    ]


def test_tensor_maps_count_from_the_innermost() -> None:
    a = gemm(300, 200, 256)["maps"][0]
    assert (a["dims"], a["strides"], a["box"]) == ([256, 300], [512], [64, 128])


def test_an_empty_axis_gives_an_empty_grid_and_no_map_of_what_is_empty() -> None:
    bound = gemm(0, 200, 256)
    assert bound["launches"][0]["tiles"] == 0
    assert [m is None for m in bound["maps"]] == [True, False, True]


def test_a_launch_whose_outputs_are_empty_has_nothing_to_do() -> None:
    bound = gemm(0, 200, 256, edited("launches/0/grid", {"kind": "persistent", "tiles": ["cdiv(N, 256)"], "cluster": [2]}))
    assert bound["launches"][0]["tiles"] == 0, "the tiles are along N, and no element of C is there"


def test_an_empty_tensor_that_a_launch_reads_is_refused() -> None:
    data = edited("guards", [])
    with pytest.raises(BindError, match="tensor map 0 of `A`: the tensor is empty"):
        gemm(300, 200, 0, data)


def test_a_guard_that_fails_names_its_line_and_values() -> None:
    data = edited("guards/0/expr", "K > 1000")
    with pytest.raises(BindError, match=r"K must be positive .*K=256") as error:
        gemm(300, 200, 256, data)
    assert error.value.line == 6


def test_a_stride_the_copy_engine_cannot_take_is_refused() -> None:
    with pytest.raises(BindError, match="stride of 402 bytes"):
        gemm(300, 200, 201)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("maps/0/box", [128, 128], "256 bytes wide, at most 128"),
        ("maps/0/box", [4, 128], "8 bytes wide"),
        ("maps/0/box", [64, 512], "box extent of 512"),
        ("scalars", {"M": "i32", "N": "i32", "K": "u32", "Z": "i32"}, "no value for the scalar `Z`"),
        ("tensors/A/rank", 3, "rank 3, found a tensor of rank 2"),
        ("tensors/A/dtype", "f16", "is f16, found a tensor of bf16"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(path: str, value: Any, message: str) -> None:
    with pytest.raises(BindError, match=message):
        gemm(300, 200, 256, edited(path, value))


def test_a_scalar_that_overflows_is_refused() -> None:
    with pytest.raises(BindError, match="does not fit i32"):
        bind(
            Manifest.from_json(GEMM),
            {t: TensorLayout.dense((64, 64), "bf16") for t in "ABC"},
            {"M": 2**31, "N": 1, "K": 1},
        )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 2, "manifest version 2"),
        ("extra", 1, "unknown key `extra`"),
        ("launches", [], "no launches"),
        ("launches/0/block", 0, "launches.0..block"),
        ("launches/0/block", True, "launches.0..block"),
        ("launches/0/entry", "a b; drop", "no kernel name"),
        ("launches/0/params/0", {"kind": "tmap", "map": 3}, "map 3 of 3"),
        ("launches/0/params/0", {"kind": "tmap", "map": 0, "dim": 1}, "unknown key `dim`"),
        ("launches/0/params/0", {"kind": "raw", "value": 1}, "one of tmap"),
        ("launches/0/params/3", {"kind": "ptr", "tensor": "D"}, "`D`, which is neither"),
        ("launches/0/params/4", {"kind": "stride", "tensor": "C", "dim": 2}, "dimension 2 of `C`"),
        ("launches/0/params/6", {"kind": "scalar", "name": "Q", "ctype": "i32"}, "scalar `Q`"),
        ("launches/0/params/8", {"kind": "counters"}, "the manifest has none"),
        ("launches/0/grid/tiles", ["cdiv(Q, 128)"], "reads `Q`"),
        ("launches/0/grid/tiles", ["__import__('os')"], "outside the grammar|unknown|reads"),
        ("launches/0/grid/kind", "dynamic", "one of persistent, tiles"),
        ("guards/0/expr", None, "expected an expression"),
        ("maps/0/rank", 3, "rank 3 and a box of 2"),
        ("maps/0/swizzle", "256b", "one of none, 32b"),
        ("tensors", [], "expected an object"),
        ("scalars/M", "i7", "expected one of i32"),
    ],
)
def test_a_manifest_that_is_wrong_names_the_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        Manifest.from_json(edited(path, value))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100000, '{"version": 1}', '"x"'])
def test_text_that_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(ManifestError):
        Manifest.loads(text)


def test_workspaces_are_buffers_with_evaluated_shapes() -> None:
    data = edited("workspaces", [{"name": "kd", "shape": ["cdiv(M, 64) * 64", "K"], "dtype": "bf16"}])
    data["launches"][0]["params"].append({"kind": "ptr", "tensor": "kd"})
    bound = gemm(300, 200, 256, data)
    assert bound["workspaces"]["kd"] == {"shape": [320, 256], "strides": [256, 1], "dtype": "bf16", "nbytes": 320 * 256 * 2}
