"""Target limits are the measured tables' limits, and instruction verdicts honour what the assembler does not check."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files

import pytest

from cake_ir.targets import DEVICES, TARGETS, UnknownDevice, UnknownTarget, device, instruction, strictest, target, targets_with
from cake_ir.targets.features import FEATURES, NARROWER

DATA = json.loads(files("cake_ir.targets").joinpath("data", "targets.json").read_text())


@pytest.mark.parametrize("name", TARGETS)
def test_literals_are_the_values_of_the_data(name: str) -> None:
    t, raw = target(name), DATA["targets"][name]
    narrow = NARROWER.get(name, {})

    def value(key: str) -> int:
        return raw[key]["value"]

    assert ".".join(map(str, t.compute_capability)) == raw["compute_capability"]
    assert (t.smem_per_sm, t.smem_optin, t.smem_reserved) == (
        value("smem_per_sm_bytes"), value("smem_per_block_optin_bytes"), value("smem_reserved_per_block_bytes"))  # fmt: skip
    assert (t.smem_default, t.smem_granularity) == (value("smem_per_block_default_bytes"), value("smem_alloc_granularity_bytes"))
    assert (t.regs, t.max_regs, t.min_regs) == (
        value("registers_per_sm"), value("registers_per_thread_max"), value("registers_per_thread_min_ptxas"))  # fmt: skip
    assert t.reg_unit * 32 == value("register_alloc_unit_per_warp") and t.sub_partitions == value("sub_partitions")
    assert (t.max_threads, t.threads_per_sm, t.warps_per_sm, t.blocks_per_sm) == (
        value("threads_per_block_max"), value("threads_per_sm_max"), value("warps_per_sm_max"), value("blocks_per_sm_max"))  # fmt: skip
    assert (t.named_barriers, t.named_barriers_per_sm) == (value("named_barriers_per_block"), value("named_barriers_per_sm"))
    assert t.param_bytes == value("kernel_param_bytes_max")
    assert t.cluster_max == (1 if "CLUSTER" in narrow else value("cluster_max_portable"))
    assert t.cluster_max_nonportable == (1 if "CLUSTER" in narrow else value("cluster_max_nonportable"))
    tmem = raw.get("tmem", {"value": {"columns": 0, "lanes": 0}})["value"]
    assert (t.tmem_columns, t.tmem_lanes) == (tmem["columns"], tmem["lanes"])
    assert t.vector_bytes == (32 if raw["features"]["ld_st_256bit"]["value"] else 16)
    assert t.features == {f for f, key in FEATURES.items() if raw["features"][key]["value"] and f not in narrow}
    assert t.narrower == narrow


def test_narrowing_only_removes_what_the_assembler_takes() -> None:
    for name, features in NARROWER.items():
        for feature, why in features.items():
            assert DATA["targets"][name]["features"][FEATURES[feature]]["value"] is True
            assert why


def test_consumer_blackwell_has_no_multicast_and_no_cluster_although_it_assembles() -> None:
    assert targets_with("MULTICAST") == targets_with("CLUSTER") == ("sm_90a", "sm_100a", "sm_103a")
    assert target("sm_120a").cluster_max == target("sm_121a").cluster_max == 1
    assert targets_with("WGMMA") == ("sm_90a",)
    assert targets_with("TCGEN05_I8") == ("sm_100a",)


@pytest.mark.parametrize("name", DEVICES)
def test_devices_are_the_boards_of_the_data(name: str) -> None:
    d, raw = device(name), DATA["skus"][name]
    assert d.target == raw["target"] and d.target in TARGETS
    assert (d.sm_count, d.l2_bytes, d.dram_gb_s, d.boost_mhz) == (
        raw["sm_count"], raw["l2_bytes"], raw["dram_bandwidth_gb_s"], raw["boost_clock_mhz"])  # fmt: skip
    if d.tensor_peak:
        assert abs(d.tensor_peak["bf16"] / raw["dense_flop_per_clk_per_sm"]["bf16"] - 1) < 0.02


def test_unknown_names_are_refused_with_the_nearest() -> None:
    for name, nearest in (("sm_90", "sm_90a"), ("H100", "sm_90a"), ("sm100a", "sm_100a")):
        with pytest.raises(UnknownTarget) as caught:
            target(name)
        assert caught.value.nearest == nearest
    with pytest.raises(UnknownDevice) as missing:
        device("H200")
    assert missing.value.nearest == "H200-SXM"


def test_a_form_the_assembler_takes_but_hardware_refuses_is_unusable() -> None:
    v = instruction("ldmatrix.misaligned_imm", "sm_90a")
    assert v.assembles and not v.usable and "16-byte" in v.reason


def test_usable_means_assembled_and_not_known_illegal_for_every_form() -> None:
    raw = json.loads(files("cake_ir.targets").joinpath("data", "instructions.json").read_text())
    order = raw["verdict_legend"]["order"]
    assert tuple(order) == TARGETS
    for family in raw["families"]:
        for row in family["forms"]:
            for i, name in enumerate(order):
                expected = row["ptxas_13_0"][i] in "AW" and not row.get("illegal_because")
                assert instruction(row["id"], name).usable == expected


def test_an_unknown_form_is_not_usable_and_gets_neighbours() -> None:
    v = instruction("mma.sync.m16n8k32.f32.e4m3.e4m3.f16", "sm_90a")
    assert not v.usable and not v.known and "mma.sync.m16n8k32.f32.e4m3.e4m3.f32" in v.nearest


def test_occupancy_of_known_kernels() -> None:
    h = target("sm_90a")
    assert h.entry_registers(384) == 168 and h.entry_registers(512) == 128 and h.entry_registers(128) == 255
    assert h.entry_registers(320) == 168 and h.entry_registers(576) == 96 and h.entry_registers(288, 2) == 96  # as the assembler has it
    assert h.blocks_that_fit(smem=229_376, threads=384, regs=168) == 1
    assert h.blocks_that_fit(smem=32, threads=128, regs=64) == 8
    assert h.blocks_that_fit(smem=0, threads=32, regs=32, barriers=16) == 4
    assert h.blocks_that_fit(smem=232_449, threads=128, regs=64) == 0


def test_strictest_names_the_target_that_limits() -> None:
    assert strictest(("sm_80", "sm_89", "sm_90a"), "smem_optin") == (101_376, "sm_89")
    with pytest.raises(ValueError, match="not a limit"):
        strictest(("sm_80",), "family")


def test_importing_targets_reads_no_table_and_only_the_standard_library() -> None:
    code = (
        "import sys, cake_ir.targets as t; from cake_ir.targets import instructions as i; "
        "assert i._table.cache_info().currsize == 0; "
        "bad = [m for m in sys.modules if m.split('.')[0] in ('numpy', 'pydantic', 'json', 'cuda')]; assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
