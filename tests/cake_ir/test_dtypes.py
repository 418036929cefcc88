"""The dtype table and the casts."""

from __future__ import annotations

import pytest

from cake_ir.dtypes import DTYPES, UnknownDType, cast, cast_on, dtype, nearest_dtype
from cake_ir.targets import TARGETS, instruction


def test_the_table_is_the_closed_list_of_the_language() -> None:
    assert " ".join(DTYPES) == "bool i8 u8 i32 u32 i64 u64 f16 bf16 tf32 f32 e4m3 e5m2 e2m1 e2m3 e3m2 ue8m0"


def test_limits_agree_with_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    import numpy as np

    for d in DTYPES.values():
        kind = getattr(ml_dtypes, d.numpy_name, None) or np.dtype(d.numpy_name)
        if d.is_float and d.name != "tf32":
            info = ml_dtypes.finfo(kind)
            assert float(info.max) == d.max_finite, d.name
            assert 2.0**-info.nmant == 2 * d.unit_roundoff, d.name
        elif d.is_integer:
            assert float(np.iinfo(kind).max) == d.max_finite, d.name


def test_packed_types_count_bytes_not_containers() -> None:
    assert dtype("e2m1").bytes_for(32) == 16
    assert dtype("e2m3").bytes_for(32) == 24
    with pytest.raises(ValueError, match="end inside a byte"):
        dtype("e2m1").bytes_for(3)


@pytest.mark.parametrize(("name", "nearest"), [("float32", "f32"), ("bf6", "bf16"), ("e4m3fn", "e4m3"), ("int4", "i8"), ("zzzzzz", None)])
def test_unknown_names_get_the_nearest(name: str, nearest: str | None) -> None:
    assert nearest_dtype(name) == nearest
    with pytest.raises(UnknownDType):
        dtype(name)


def test_every_pair_but_to_bool_has_a_chain_and_detours_lose_nothing() -> None:
    for src in DTYPES:
        for dst in DTYPES:
            found = cast(src, dst)
            if dst == "bool" and src != "bool":
                assert found is None
                continue
            assert found is not None, (src, dst)
            assert found.steps[0] == src and found.steps[-1] == dst
            for middle in found.steps[1:-1]:
                if DTYPES[src].is_float:
                    assert DTYPES[middle].mantissa_bits >= DTYPES[src].mantissa_bits


# The probe that shows each hardware step, where the table has one.
_PROBES = {
    ("f32", "bf16"): "cvt.rn.bf16x2.f32", ("f32", "f16"): "cvt.rn.f16x2.f32", ("f32", "tf32"): "cvt.rna.tf32.f32",
    ("f32", "e4m3"): "cvt.e4m3x2.f32", ("f16", "e4m3"): "cvt.e4m3x2.f16x2", ("e4m3", "f16"): "cvt.f16x2.e4m3x2",
    ("f32", "e5m2"): "cvt.e5m2x2.f32", ("f16", "e5m2"): "cvt.e5m2x2.f16x2", ("e5m2", "f16"): "cvt.f16x2.e5m2x2",
    ("f32", "e2m1"): "cvt.e2m1x2.f32", ("e2m1", "f16"): "cvt.f16x2.e2m1x2", ("f32", "e2m3"): "cvt.e2m3x2.f32",
    ("e2m3", "f16"): "cvt.f16x2.e2m3x2", ("f32", "e3m2"): "cvt.e3m2x2.f32", ("e3m2", "f16"): "cvt.f16x2.e3m2x2",
    ("f32", "ue8m0"): "cvt.ue8m0x2.f32", ("ue8m0", "bf16"): "cvt.bf16x2.ue8m0x2",
}  # fmt: skip


def test_one_step_casts_exist_exactly_where_the_assembler_takes_them() -> None:
    for (src, dst), probe in _PROBES.items():
        found = cast(src, dst)
        assert found is not None and found.cost == 1
        assert found.targets == {t for t in TARGETS if instruction(probe, t).usable}, probe


def test_stochastic_rounding_follows_the_assembler() -> None:
    for t in TARGETS:
        assert isinstance(cast_on("f32", "bf16", t, "rs"), str) != instruction("cvt.rs.bf16x2.f32", t).usable


def test_refusals_name_the_targets_that_have_the_cast() -> None:
    assert cast_on("bf16", "e4m3", "sm_80") == (
        "sm_80 has no conversion bf16 to e4m3, it exists on sm_89, sm_90a, sm_100a, sm_103a, sm_120a, sm_121a"
    )
    assert "compare with 0" in str(cast_on("f32", "bool", "sm_90a"))
    assert "rounds rz or rp" in str(cast_on("f32", "ue8m0", "sm_100a", "rn"))
    assert not isinstance(cast_on("f32", "tf32", "sm_80", "rn"), str)


def test_saturation_is_stated_for_types_without_infinity() -> None:
    for name in ("e4m3", "e2m1", "e2m3", "e3m2"):
        found = cast("f32", name)
        assert found is not None and found.saturates and not DTYPES[name].has_inf
