"""Disturbances inside a kernel: every copy and every store of every schedule gets them, and a right kernel cannot tell them from a slow device."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bench.verify.cases import CASES
from bench.verify.silicon_build import boxes_of, late_inputs, room_in
from bench.verify.silicon_delays import delayed
from bench.verify.silicon_inside import MOST_SHARED, SCRATCH_BYTES, SWITCHES
from bench.verify.silicon_neighbours import MODES, QUIET, mode_of
from bench.verify.silicon_sample import hopper_subjects
from bench.verify.truth import program_of
from cake_backend.cuda.lower import Lowered, lower
from cake_backend.judge.device.launcher import STATIC_SMEM_LIMIT
from cake_backend.toolchain import compile_cuda


def lowered(name: str) -> Lowered:
    program = program_of(CASES[name].text(), CASES[name])
    assert program is not None
    return lower(program)


@pytest.mark.parametrize("name", hopper_subjects())
def test_every_copy_of_a_schedule_is_disturbed_with_the_bytes_of_its_own_box(name: str) -> None:
    made = lowered(name)
    boxes = boxes_of(made)
    kernel = made.text.partition('extern "C"')[2]
    head, _, changed = delayed(made.text, boxes, room_in(made.manifest)).text.partition('extern "C" __global__')
    loads = re.findall(r"\btma_load_\dd(?:_hint)?\(.*?, &(\w+),", kernel)
    smudged = re.findall(r"\btma_load_\dd(?:_hint)?\(cake_smudge\(.*?, (\d+)u\), &(\w+),", changed)
    assert [m for _, m in smudged] == loads and all(boxes[m] == int(n) for n, m in smudged)
    assert "cake_smudge" not in "".join(re.findall(r"\btma_load_\w+multicast\w*\(.*", changed)), "the peers' memory is what such a copy writes"
    for helper, call in ((r"tma_(?:store|reduce)_\w+|bulk_store", "cake_clog"), (r"store_shared\w*|stmatrix\w*", "cake_queue"), (r"tma_load_\w+|bulk_load", "cake_late")):
        for line in re.findall(rf"^DEVICE void (?:{helper})\(.*", head, re.M):
            assert call in line, line
    assert changed.count("cake_lag();") == kernel.count("pool = ") == (made.manifest.launches[0].smem > 0), "what shares nothing has no late start"


def test_the_scratch_is_there_where_shared_memory_is_left_for_it() -> None:
    made = lowered("gelu_one_role")
    assert room_in(made.manifest) and "scratch[1024]" in delayed(made.text, boxes_of(made)).text
    assert "scratch" not in delayed(made.text, boxes_of(made), room=False).text.replace("cake_scratch", "")
    (launch,) = made.manifest.launches
    for smem in (MOST_SHARED - SCRATCH_BYTES + 1, STATIC_SMEM_LIMIT - 1):
        assert not room_in(replace(made.manifest, launches=(replace(launch, smem=smem),))), "another launch, or none"


def test_a_disturbed_kernel_compiles_without_the_assembler_serialising_its_products() -> None:
    made = lowered("gemm_deep")
    build = compile_cuda(delayed(made.text, boxes_of(made)).text, "sm_90a", cache=None)
    assert build.cubin is not None and not build.serialised, build.log[-500:]


def test_a_crowded_kernel_multiplies_in_front_of_each_of_its_groups_and_is_not_serialised() -> None:
    made = lowered("gemm_deep")
    text = delayed(made.text, boxes_of(made), crowd=True).text
    kernel = text.partition('extern "C" __global__')[2]
    assert kernel.count("cake_crowd(cake_products, pool);") == made.text.count("\n          wgmma_fence();") == 1
    assert kernel.count("cake_spare(cake_products);") == kernel.count("wgmma_wait<0>();") > 0
    build = compile_cuda(text, "sm_90a", cache=None)
    assert build.cubin is not None and not build.serialised, build.log[-500:]


def test_only_what_the_kernel_before_may_still_write_comes_late() -> None:
    made = lowered("decode_gemm")
    assert late_inputs(CASES["decode_gemm"], made.manifest) == ["X"], "the weights are constant"
    assert late_inputs(CASES["gemm_deep"], lowered("gemm_deep").manifest) == []


def test_modes_take_turns_use_every_switch_and_begin_undisturbed() -> None:
    assert len(MODES) % 2 == 1 and len({m.name for m in MODES}) == len(MODES)
    assert mode_of(0) is QUIET and QUIET.switches == 0
    assert {mode_of(run).name for run in range(1, 20)} == {m.name for m in MODES}
    assert {x for m in MODES for x in m.inside} == set(SWITCHES)
    assert sum(SWITCHES.values()) < 256, "the bits above are random"
