"""Atoms of shared memory: exact, disjoint, and refined without losing anybody."""

import pytest
import safety_schedules as schedules
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cake_ir.layout import ViewLayout, atoms, view_problem
from cake_verify.analyses.regions import OutsideView, Regions, stage_mask


@st.composite
def rectangles(draw: st.DrawFn) -> tuple[ViewLayout, int, int, int, int]:
    view = ViewLayout(
        draw(st.sampled_from([0, 1024, 2048])), draw(st.sampled_from([1, 8, 10, 16, 24, 64])), draw(st.sampled_from([8, 12, 16, 32, 64, 128])),
        draw(st.sampled_from([8, 16, 32])), 1, draw(st.sampled_from([None, "32b", "64b", "128b"])),
    )  # fmt: skip
    assume(view_problem(view) is None)
    row, col = draw(st.integers(0, view.rows - 1)), draw(st.integers(0, view.cols - 1))
    return view, row, draw(st.integers(1, view.rows - row)), col, draw(st.integers(1, view.cols - col))


@given(rectangles())
@settings(max_examples=150, deadline=None)
def test_mask_of_a_rectangle_is_what_the_layout_says(case: tuple[ViewLayout, int, int, int, int]) -> None:
    view, row, rows, col, cols = case
    expected = 0
    for lo, hi in atoms(view, 0, row, rows, col, cols):
        expected |= ((1 << (hi - lo)) - 1) << lo
    assert stage_mask(view, row, rows, col, cols, 1) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 31), st.integers(1, 32), st.integers(0, 3)), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_refined_atoms_are_disjoint_and_cover_every_region(wanted: list[tuple[int, int, int, int]]) -> None:
    regions = Regions(schedules.program(schedules.text("gemm_ws")))
    kept = []
    for stage, row, rows, col in wanted:
        rows = min(rows, 32 - row)
        region = regions.region("smem_a", stage, row * 4, rows * 4, col * 16, 16)
        mask = stage_mask(regions.views["smem_a"], row * 4, rows * 4, col * 16, 16, regions.granule) << (stage * 16384 // regions.granule)
        kept.append((region, mask))
    masks = [regions.mask(atom) for atom in range(len(regions.cells))]
    for i, a in enumerate(masks):
        assert all(not a & b for b in masks[i + 1 :])
    for region, mask in kept:
        assert len(set(region)) == len(region)
        assert sum(masks[a] for a in region) == mask


def test_views_of_different_swizzle_share_atoms_where_they_share_bytes() -> None:
    regions = Regions(schedules.program(schedules.text("gemm_sm80")))
    ring = regions.region("smem_a", 0, 0, 128, 16, 16)
    whole = regions.region("smem_c", 0, 0, 128, 0, 128)
    assert set(ring) <= set(whole)


def test_rectangle_outside_its_view_is_refused() -> None:
    regions = Regions(schedules.program(schedules.text("gemm_ws")))
    with pytest.raises(OutsideView):
        regions.region("smem_a", 0, 96, 64, 0, 64)
