"""Wrong numbers are located in the schedule's own terms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_backend.diagnose import Finding, diagnose
from cake_backend.diagnose.tiles import output_tiles
from cake_ir.program import Program

Make = Callable[..., Any]
AXES = {"M": 512, "N": 1024, "K": 512}


def ids(findings: list[Finding]) -> list[str]:
    return [f.id for f in findings]


def test_the_tiling_of_an_output_is_read_off_its_store(example: Callable[..., Program]) -> None:
    tiles = output_tiles(example("gemm_ws"), "C")
    assert tiles is not None
    assert (tiles.rows, tiles.columns, tiles.row_field, tiles.column_field) == (128, 256, "m", "n")
    assert (tiles.step_rows, tiles.step_columns, tiles.member_rows) == (64, 64, 64)
    assert tiles.tile_of(300, 700) == (2, 2) and tiles.part(300, 700) == (0, 2) and tiles.parts == (2, 4)
    index = output_tiles(example("kmeans_assign"), "IDX")
    assert index is not None and (index.rows, index.row_field, index.member_rows) == (256, "m", 128)


def test_a_wrong_tile_is_named_with_its_store(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    program = example("gemm_ws")

    def spoil(out: Any) -> None:
        out[128:256, 256:512] += 40.0

    found = diagnose(wrong(case(spoil, **AXES)), program)
    assert ids(found) == ["W01"]
    assert "tile (m=1, n=1)" in found[0].claim and found[0].role == "math" and found[0].basis == ("simulated",)
    store = next(op for op in program.ops if op.name == "tma_store")
    assert found[0].line == store.span.line


def test_one_members_rows_are_told_apart_from_the_tile(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[64:128, :64] += 40.0
        out[192:256, :64] += 40.0

    found = diagnose(wrong(case(spoil, **AXES)), example("gemm_ws"))
    assert ids(found) == ["W04"] and "member 1 of `math`, column slice 0" in found[0].claim


def test_slices_that_are_right_in_every_tile_are_told_apart(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out.reshape(512, 4, 256)[:, :, 64:] += 40.0

    found = diagnose(wrong(case(spoil, **AXES)), example("gemm_ws"))
    assert ids(found) == ["W04"] and "column slice 1, 2, 3" in found[0].claim and "member" not in found[0].claim


def test_when_every_tile_is_wrong_no_tile_is_blamed(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out += 40.0

    program = example("gemm_ws")
    found = diagnose(wrong(case(spoil, M=256, N=512, K=512)), program)
    assert ids(found) == ["W01"] and found[0].claim.startswith("every tile") and found[0].line == next(op for op in program.ops if op.name == "mma").span.line


def test_a_tile_field_that_no_load_uses_is_named(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    program = example("gemm_ws", ("t.n * BN), stage=s", "t.m * BN), stage=s"))

    def spoil(out: Any) -> None:
        out[128:, :] += 40.0

    found = diagnose(wrong(case(spoil, M=300, N=200, K=256)), program)
    assert "no load uses the tile's `n`" in found[0].claim and found[0].certain
    assert found[0].line == [op for op in program.ops if op.name == "tma_load"][1].span.line


def test_edge_tiles_are_recognised(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[256:300] += 40.0

    found = diagnose(wrong(case(spoil, M=300, N=1024, K=512)), example("gemm_ws"))
    assert ids(found) == ["W02"] and found[0].certain


def test_nan_points_at_what_was_never_initialised(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[:128, :256] = np.nan

    program = example("gemm_ws")
    found = diagnose(wrong(case(spoil, **AXES)), program)
    assert "W08" in ids(found)
    finding = next(f for f in found if f.id == "W08")
    assert "init=" in finding.edit and finding.line == next(op for op in program.ops if op.name == "mma").span.line
    assert finding.numbers["non-finite"] == 128 * 256


def test_poison_that_is_left_counts_whole_tiles(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[128:384, 256:512] = 1e30

    found = diagnose(wrong(case(spoil, unwritten=2 * 128 * 256, **AXES)), example("gemm_ws"))
    assert found[0].id == "W03" and "2 whole tiles of 128 x 256" in found[0].claim and found[0].route == "verifier"


def test_a_lane_pattern_is_not_called_a_tile(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[:, 3::16] += 40.0

    found = diagnose(wrong(case(spoil, **AXES)), example("gemm_ws"))
    assert ids(found) == ["W05"] and "modulo" in found[0].claim and "swizzle" in found[0].edit


def test_a_missing_part_of_the_sum_is_counted(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[:128, :256] *= 7 / 8

    found = diagnose(wrong(case(spoil, distribution="positive", **AXES)), example("gemm_ws"))
    part = next(f for f in found if f.id == "W07")
    assert "1 of 8 k tiles are missing" in part.claim and part.numbers["k tiles"] == 8


def test_a_fault_that_shows_when_the_ring_wraps_names_the_ring(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[:128, :256] += 40.0

    right = case(None, M=512, N=512, K=256)
    bad = case(spoil, M=512, N=512, K=1024)
    assert right["status"] == "PASSED"
    found = diagnose(wrong(right, bad), example("gemm_ws"))
    ring = next(f for f in found if f.id == "W06")
    assert "`ab`" in ring.claim and ring.numbers == {"stages": 4, "least wrong": 16, "most right": 4}


def test_one_kind_of_data_is_named(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[5, 7] += 400.0

    found = diagnose(wrong(case(None, **AXES), case(spoil, distribution="special", **AXES)), example("gemm_ws"))
    assert {"W09", "W10"} <= set(ids(found)) and "`special`" in next(f.claim for f in found if f.id == "W10")


def test_held_out_cases_tell_no_more_than_that_they_are_wrong(wrong: Make, example: Callable[..., Program]) -> None:
    found = diagnose(wrong({"case": "h", "status": "INCORRECT_NUMERICAL", "heldout": True}), example("gemm_ws"))
    assert ids(found) == ["W09"] and found[0].absent == ("where the errors lie",) and found[0].line is None


def test_without_a_program_blocks_are_given_as_rows_and_columns(case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[:64, :64] += 40.0

    found = diagnose(wrong(case(spoil, **AXES)))
    assert ids(found) == ["W01"] and "rows 0+64 columns 0+64" in found[0].claim and found[0].line is None
    assert any("program" in a for a in found[0].absent)


def test_indices_out_of_range_are_the_candidates_fault() -> None:
    verdict = {"ok": False, "elements": 100, "failures": 3, "worst": 1.0, "extra": {"out_of_range": 3, "different_index": 3, "ties_not_lowest": None}}
    record = {"status": "INCORRECT_NUMERICAL", "numerics": {"cases": [{"status": "INCORRECT_NUMERICAL", "outputs": {"IDX": verdict}}]}}
    found = diagnose(record)
    assert ids(found) == ["W11"] and "3 indices" in found[0].claim


def test_what_wrong_values_are_is_said_beside_where_they_lie(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[128:256, 256:512] *= 2

    (found,) = diagnose(wrong(case(spoil, **AXES)), example("gemm_ws"))
    assert found.id == "W01" and found.claim.endswith("; wrong elements are 2 times what belongs there") and "look for a scale" in found.edit
    assert abs(found.numbers["factor"] - 2) < 1e-3 and found.numbers["tiles"]


def test_a_tile_that_holds_its_neighbour_is_traced_to_it(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    def spoil(out: Any) -> None:
        out[128:256, 256:512] = out[:128, 256:512].copy()

    (found,) = diagnose(wrong(case(spoil, **AXES)), example("gemm_ws"))
    assert found.claim.endswith("wrong places hold what belongs 128 rows back") and "compare coordinates and slots" in found.edit


def test_scattered_elements_with_one_relation_are_not_called_scattered(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    hit = np.random.default_rng(1).uniform(size=(512, 1024)) < 0.02

    def spoil(out: Any) -> None:
        out[hit] *= -1

    (found,) = diagnose(wrong(case(spoil, **AXES)), example("gemm_ws"))
    assert found.id == "W13" and "wrong elements are -1 times what belongs there" in found.claim


def test_scattered_errors_of_an_ordered_simulation_are_no_race(example: Callable[..., Program], case: Make, wrong: Make) -> None:
    noise = np.random.default_rng(2).standard_normal((512, 1024)) * (np.random.default_rng(3).uniform(size=(512, 1024)) < 0.02)

    def spoil(out: Any) -> None:
        out += 40 * noise

    made = case(spoil, **AXES)
    (raced,), (ordered,) = diagnose(wrong(made), example("gemm_ws")), diagnose(wrong({**made, "policy": "canonical"}), example("gemm_ws"))
    assert (raced.id, raced.route, ordered.id, ordered.route) == ("W09", "verifier", "W09", "candidate")
    assert "race" in raced.edit and "nothing running out of order" in ordered.claim
