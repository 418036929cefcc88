"""What runs over an axis runs over all of it and no further: reductions, shifted and exchanged tiles, rows and columns behind a length."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency.d036_ragged_length import PAGE as LENGTHS
from cake_verify.rules.schedule.q014_shifted import PAGE as SHIFTED

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"


def corpus(name: str) -> str:
    return (CORPUS / f"{name}.py").read_text("utf-8")


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


# ------------------------------------------------------------------ reductions

NORM = '''
@cake.schedule(target="sm_90a")
def total(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32, N: LM.i32, *, B=512):
    lm.launch(grid="tiles")
    lm.assume(N > 0)
    lm.assume(R > 0)
    pool = lm.smem(64)
    part = pool.view(offset=0, shape=(4,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            s = lm.frag(shape=(B,), dtype=lm.f32, form="vec", init=0.0)
            for j in lm.range(FIRST, COUNT):
                s = s + lm.load(X, coords=((j + SHIFT) * B, t.r), shape=(B,), clip=True)
            lm.store(Y, lm.reduce(s, "add", across=work, scratch=part, sync=cta), coords=(t.r,))
'''


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2), st.integers(-1, 1), st.integers(-1, 2))
def test_a_sum_is_refused_exactly_where_it_misses_a_part_of_the_axis(first: int, more: int, shift: int) -> None:
    text = NORM.replace("FIRST", str(first)).replace("COUNT", f"lm.cdiv(N, B) + {more}" if more >= 0 else f"lm.cdiv(N, B) - {-more}").replace("SHIFT", str(shift))
    starts, ends = first + shift <= 0, more + shift >= 0
    found = codes(text)
    outside = first + shift < 0  # in front of the tensor: clipped here, and nothing is missed by it
    assert bool({"S034", "S035", "Q014"} & set(found)) == (not (starts and ends)) or outside, (first, more, shift, found)


def test_a_block_that_is_loaded_ahead_of_the_loop_counts() -> None:
    ahead = NORM.replace("FIRST", "1").replace("COUNT", "lm.cdiv(N, B)").replace("SHIFT", "0")
    ahead = ahead.replace('s = lm.frag(shape=(B,), dtype=lm.f32, form="vec", init=0.0)', "s = lm.load(X, coords=(0, t.r), shape=(B,), clip=True) * 1.0")
    assert codes(ahead) == []


def test_a_sum_of_which_a_tile_decides_the_part_is_left_alone() -> None:
    split = NORM.replace("FIRST", "t.r").replace("COUNT", "t.r + 1").replace("SHIFT", "0")
    assert not {"S034", "S035"} & set(codes(split))


# ------------------------------------------------------------------ shifted and exchanged


def test_tiles_that_start_a_tile_late_are_told_with_the_coordinate_that_fits() -> None:
    (error,) = verify_text(SHIFTED.failing).errors
    assert error.code == "Q014" and applied(SHIFTED.failing, error.fixes[0].edits).replace("(t.r)", "t.r") == SHIFTED.passing


def test_two_loads_may_look_ahead_and_a_longer_tensor_may_be_read_from_its_second_tile() -> None:
    two = SHIFTED.passing.replace("x + x", "x + lm.load(X, coords=((t.r + 1) * 512,), shape=(512,), clip=True)")
    assert "Q014" not in codes(two)
    longer = SHIFTED.failing.replace('X: LM.gmem1d[LM.f32, "N"]', 'X: LM.gmem1d[LM.f32, "NX"]').replace("N: LM.i32)", "N: LM.i32, NX: LM.i32)").replace('    lm.launch(grid="tiles")\n', '    lm.launch(grid="tiles")\n    lm.assume(NX == N + 512)\n')
    assert "Q014" not in codes(longer)


@pytest.mark.parametrize("name", ["softmax_two_pass", "transpose_tiles", "segment_mean"])
def test_exchanged_coordinates_are_told_and_put_back(name: str) -> None:
    good = corpus(name)
    right, wrong = {
        "softmax_two_pass": ("coords=(j * BLOCK, t.r), shape=(BLOCK,), clip=True, fill=-1e30)", "coords=(t.r, j * BLOCK), shape=(BLOCK,), clip=True, fill=-1e30)"),
        "transpose_tiles": ("coords=(t.n * 64, t.m * 64)", "coords=(t.m * 64, t.n * 64)"),
        "segment_mean": ("coords=(0, lo + i * ROWS)", "coords=(lo + i * ROWS, 0)"),
    }[name]  # fmt: skip
    broken = edited(good, (right, wrong))
    error = verify_text(broken).errors[0]
    assert error.code == "D035" and applied(broken, error.fixes[0].edits) == good


def test_a_window_that_slides_along_one_axis_is_no_exchange() -> None:
    window = edited(SHIFTED.passing, ('X: LM.gmem1d[LM.f32, "N"]', 'X: LM.gmem2d[LM.f32, 4, "N"]'), ("lm.load(X, coords=(t.r * 512,), shape=(512,), clip=True)", "lm.load(X, coords=(t.r * 4, 0), shape=(4, 128), clip=True)"),
                    ("lm.store(Y, x + x, coords=(t.r * 512,), clip=True)", "lm.store(Y, x + x, coords=(0, t.r * 4), clip=True)"), ('Y: LM.gmem1d[LM.f32, "N"]', "Y: LM.gmem2d[LM.f32]"))  # fmt: skip
    assert "D035" not in codes(window)


def test_of_two_loads_one_brings_another_tile() -> None:
    good = corpus("gelu_one_role")
    for wrong in ("coords=(i * 64, (t.m + 1) * 64), stage=s", "coords=((i + 1) * 64, t.m * 64), stage=s"):
        broken = edited(good, ("coords=(i * 64, t.m * 64), stage=s", wrong))
        assert "S034" in codes(broken)
    both = edited(good, ("coords=(i * 64, t.m * 64), stage=s", "coords=(i * 64, (t.m + 1) * 64), stage=s"), ("coords=((i + STAGES - 1) * 64, t.m * 64), stage=w", "coords=((i + STAGES - 1) * 64, (t.m + 1) * 64), stage=w"))
    assert codes(both) == [] and verify_text(both).diagnostics  # a shift of everything may be meant: a warning


# ------------------------------------------------------------------ behind a length


@pytest.mark.parametrize(("cond", "refused"), [("i * ROWS + r < n", False), ("i * ROWS + r <= n", True), ("i * ROWS + r < n + 1", True), ("i * ROWS + r < n - 1", False), ("True", True)])
def test_rows_behind_the_end_of_a_sequence_are_not_added(cond: str, refused: bool) -> None:
    assert ("S034" in codes(corpus("segment_mean").replace("i * ROWS + r < n", cond))) is refused


MASK = "lm.where(lm.iota(acc, axis=1, base=j * 128) < n, acc, -lm.inf)"


@pytest.mark.parametrize(("mask", "refused"), [
    (MASK, False), ("acc * 1.0", True), (MASK.replace("< n", "< n + 1"), True), (MASK.replace("< n", "<= n"), True), (MASK.replace("< n", "< n - 1"), False),
    (MASK.replace("j * 128", "0"), True), (MASK.replace("base=j * 128) < n", "base=0) < n - j * 128"), False), (MASK.replace("< n", "<= n - 1"), False),
    ("lm.where(lm.in_bounds(acc, rows=64, cols=n - j * 128), acc, -lm.inf)", False),
])  # fmt: skip
def test_columns_behind_a_length_read_from_memory_do_not_win(mask: str, refused: bool) -> None:
    assert ("D036" in codes(LENGTHS.passing.replace(MASK, mask))) is refused


def test_a_length_that_is_known_to_fill_tiles_needs_no_mask() -> None:
    whole = LENGTHS.passing.replace(MASK, "acc * 1.0").replace("lm.cdiv(n, 128)", "n").replace("lm.cdiv(lm.ld(LEN, 0), 128)", "lm.ld(LEN, 0)")
    assert codes(whole) == []


# ------------------------------------------------------------------ masks


def test_a_mask_that_has_a_name_selects_something() -> None:
    good = corpus("chunk_scores")
    broken = edited(good, ("lm.where(below, acc * beta, 0.0)", "acc * beta"))
    (error,) = verify_text(broken).errors
    assert error.code == "S036" and "`below`" in error.message
    assert codes(edited(broken, ("            below = lm.iota(acc, axis=1) < lm.iota(acc, axis=0)\n", ""))) == []
