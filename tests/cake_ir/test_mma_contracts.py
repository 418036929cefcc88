"""MMA contracts against every form that was assembled."""

from __future__ import annotations

import re

import pytest

from cake_ir.targets import TARGETS, instruction
from cake_ir.targets.instructions import forms
from cake_ir.targets.mma import MmaKind, accumulator_problem, kind_of, place_problem, scale_problem, shape_problem

_CAKE = {"s8": "i8", "u8": "u8", "s32": "i32"}


def _ours(name: str) -> str:
    return _CAKE.get(name, name)


def _kind(family: str, target: str, a: str, b: str, scaled: bool = False) -> MmaKind:
    found = kind_of(family, target, a, b, scaled)  # type: ignore[arg-type]  # literals in the callers
    assert isinstance(found, MmaKind), found
    return found


def test_wgmma_contract_is_what_the_assembler_takes() -> None:
    checked = 0
    for form in forms("wgmma.m64n"):
        m = re.fullmatch(r"wgmma\.m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+)\.([SR])S", form)
        if not m:
            continue
        n, k, d, a, b, place = int(m[1]), int(m[2]), *map(_ours, m.groups()[2:5]), m[6]
        for target in TARGETS:
            kind = kind_of("wgmma", target, a, b)
            ok = isinstance(kind, MmaKind) and not (
                accumulator_problem(kind, d) or shape_problem("wgmma", kind, 64, n, k)
                or place_problem("wgmma", kind, "view" if place == "S" else "frag", "view", False, False)
            )  # fmt: skip
            assert ok == instruction(form, target).usable, (form, target, kind)
            checked += 1
    assert checked > 3000


def test_mma_sync_contract_is_what_the_assembler_takes() -> None:
    checked = 0
    for form in forms("mma.sync.m16n8k"):
        m = re.fullmatch(r"mma\.sync\.m16n8k(\d+)\.(?:kind::f8f6f4\.)?(f16|f32|s32)\.(\w+)\.(\w+)\.\2", form)
        if not m or m[3] in ("s4", "u4", "b1") or m[3] not in ("f16", "bf16", "tf32", "s8", "u8", "e4m3", "e5m2", "e2m1", "e2m3", "e3m2"):
            continue
        k, d, a, b = int(m[1]), _ours(m[2]), _ours(m[3]), _ours(m[4])
        narrow_kind = "kind::f8f6f4" in form and {a, b} <= {"e4m3", "e5m2"}
        for target in TARGETS:
            kind = kind_of("mma_sync", target, a, b)
            usable = instruction(form, target).usable
            if isinstance(kind, MmaKind) and kind.k != k:
                continue  # shorter K forms exist; the language uses the full one
            ok = isinstance(kind, MmaKind) and accumulator_problem(kind, d) is None
            if narrow_kind:
                ok = ok or not usable  # fp8 pairs have two spellings, and only the plain one reaches back to sm_89
                assert ok
            else:
                assert ok == usable, (form, target, kind)
            checked += 1
    assert checked > 200


def test_tcgen05_kinds_exist_where_the_assembler_takes_them() -> None:
    samples = {"f16": ("f16", "f16"), "tf32": ("tf32", "tf32"), "f8f6f4": ("e4m3", "e2m1"), "i8": ("i8", "i8")}
    for name, (a, b) in samples.items():
        for target in TARGETS:
            assert isinstance(kind_of("tcgen05", target, a, b), MmaKind) == instruction(f"tcgen05.mma.cg1.{name}.SS", target).usable


def test_block_scales_exist_on_blackwell_only_and_hopper_is_told_to_promote() -> None:
    assert "acc + part" in str(kind_of("wgmma", "sm_90a", "e4m3", "e4m3", scaled=True))
    fp4 = _kind("tcgen05", "sm_100a", "e2m1", "e2m1", scaled=True)
    assert fp4.k == 64
    assert scale_problem("sm_100a", fp4, 16, "e4m3", "tmem_128x4") is None
    assert scale_problem("sm_100a", fp4, 32, "ue8m0", "tmem_128x4") is None
    assert "every 16 elements" in (scale_problem("sm_100a", fp4, 128, "f32", "rowvec") or "")
    assert scale_problem("sm_120a", _kind("mma_sync", "sm_120a", "e4m3", "e4m3", scaled=True), 32, "ue8m0", "frag_row") is None


def test_block_scaled_kinds_exist_where_the_assembler_takes_them() -> None:
    probes = {
        ("mma_sync", "e4m3", "e4m3"): "mma.sync.m16n8k32.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
        ("mma_sync", "e2m1", "e2m1"): "mma.sync.m16n8k64.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        ("tcgen05", "e4m3", "e4m3"): "tcgen05.mma.cg1.mxf8f6f4.SS.block_scale.scale_vec::1X",
        ("tcgen05", "e2m1", "e2m1"): "tcgen05.mma.cg1.mxf4nvf4.SS.block_scale.scale_vec::4X",
    }
    for (family, a, b), probe in probes.items():
        for target in TARGETS:
            found = kind_of(family, target, a, b, scaled=True)  # type: ignore[arg-type]  # literals above
            assert isinstance(found, MmaKind) == instruction(probe, target).usable, (probe, target)


@pytest.mark.parametrize(
    ("family", "target", "a", "b", "says"),
    [
        ("wgmma", "sm_100a", "bf16", "bf16", "it exists on sm_90a"),
        ("tcgen05", "sm_103a", "i8", "i8", "it exists on sm_100a"),
        ("mma_sync", "sm_80", "e4m3", "e4m3", "sm_89, sm_90a"),
        ("wgmma", "sm_90a", "f32", "f32", "declare them tf32"),
        ("wgmma", "sm_90a", "bf16", "f16", "of one family"),
        ("wgmma", "sm_90a", "e2m1", "e2m1", "fp4 and fp6 operands exist in tcgen05"),
    ],
)
def test_missing_combinations_say_where_they_exist(family: str, target: str, a: str, b: str, says: str) -> None:
    assert says in str(kind_of(family, target, a, b))  # type: ignore[arg-type]  # parametrised literals


def test_shapes_and_places() -> None:
    bf16 = _kind("wgmma", "sm_90a", "bf16", "bf16")
    fp8 = _kind("wgmma", "sm_90a", "e4m3", "e4m3")
    assert shape_problem("wgmma", bf16, 128, 256, 64) is None
    assert "multiple of 8 between" in (shape_problem("wgmma", bf16, 64, 264, 64) or "")
    assert "64 rows a warpgroup" in (shape_problem("wgmma", bf16, 96, 128, 64) or "")
    assert "K = 24" in (shape_problem("wgmma", bf16, 64, 128, 24) or "")
    assert "whole warpgroups" in (shape_problem("wgmma", bf16, 64, 128, 64, warps=2) or "")
    assert "2 x 4 warps" in (shape_problem("mma_sync", bf16, 16, 128, 16, warps=8, split=(2, 4)) or "")
    assert place_problem("wgmma", bf16, "view", "view", True, True) is None
    assert "K-major only, b is a .T view" in (place_problem("wgmma", fp8, "view", "view", False, True) or "")
    assert "in registers" in (place_problem("wgmma", bf16, "frag", "view", True, False) or "")
    assert "lm.tmem_store" in (place_problem("tcgen05", bf16, "frag", "view", False, False) or "")
    assert ".ldmatrix" in (place_problem("mma_sync", bf16, "view", "view", False, False) or "")
    assert "accumulate in f32" in (accumulator_problem(bf16, "f16") or "")


def test_tensor_memory_shapes_follow_the_cta_count() -> None:
    bf16 = _kind("tcgen05", "sm_100a", "bf16", "bf16")
    assert shape_problem("tcgen05", bf16, 128, 256, 64) is None
    assert shape_problem("tcgen05", bf16, 256, 256, 64, ctas=2) is None
    assert "64 or 128" in (shape_problem("tcgen05", bf16, 256, 256, 64) or "")
    assert "multiple of 16" in (shape_problem("tcgen05", bf16, 128, 24, 64) or "")
    assert "multiple of 32" in (shape_problem("tcgen05", bf16, 256, 48, 64, ctas=2, a_place="tmem") or "")
