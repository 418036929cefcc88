"""Loops that sum a tensor and end before another loop over it does, cuts by masks of vectors, and running combinations that are reduced later."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d065_same_product import LARGEST
from cake_verify.rules.consistency.d066_sum_from_zero import _SUMS

CORPUS = Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus"
GROUPS, EDGES = ((CORPUS / f"{name}.py").read_text("utf-8") for name in ("groupnorm_silu", "edge_softmax"))
FIRST = """            for i in lm.range(n):
                x = lm.cast(lm.load(X, coords=(c0, i * ROWS, t.b), shape=(ROWS, C // G), form="acc", like=s1, clip=True), lm.f32)
                s1 = s1 + x
                s2 = s2 + x * x
"""
SHORT = FIRST.replace("lm.range(n)", "lm.range(n - 1)")


def found(text: str) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in verify_text(text, suggest=False).errors]


def test_a_sum_that_ends_before_the_second_pass_does_lacks_a_tile() -> None:
    assert GROUPS.count(FIRST) == 1 and found(GROUPS) == []
    ((code, message),) = found(GROUPS.replace(FIRST, SHORT))
    assert code == "Q012" and "what it sums lacks the rest" in message


def test_a_last_tile_may_be_summed_behind_the_loop_and_a_loop_that_keeps_its_sums_may_end_early() -> None:
    last = FIRST.replace("            for i in lm.range(n):\n", "").replace("\n    ", "\n")[4:].replace("i * ROWS", "(n - 1) * ROWS")
    assert found(GROUPS.replace(FIRST, SHORT + last)) == []
    kept = GROUPS.replace(FIRST, SHORT + "                lm.store(Y, lm.cast(s1, lm.f16), coords=(c0, i * ROWS, t.b), clip=True)\n")
    assert "Q012" not in {code for code, _ in found(kept)}


def test_a_vector_that_a_mask_cuts_is_cut_in_the_last_round() -> None:
    assert found(EDGES) == []
    for rounds, told in (("(hi - lo) // CH", "whole tiles only"), ("lm.cdiv(hi - lo, CH) - 1", "ends 1 round before the length")):
        code, message = found(EDGES.replace("n = lm.cdiv(hi - lo, CH)", f"n = {rounds}"))[0]
        assert code == "Q012" and told in message


@pytest.mark.parametrize("loop", [0, 1, 2])
def test_one_of_several_loops_over_a_sequence_ends_early(loop: int) -> None:
    parts = EDGES.split("for i in lm.range(n):")
    assert len(parts) == 4
    short = "for i in lm.range(n):".join(parts[: loop + 1]) + "for i in lm.range(n - 1):" + "for i in lm.range(n):".join(parts[loop + 1 :])
    ((code, message),) = found(short)
    assert code == "Q012" and "ends 1 round before the length" in message


def test_a_vector_starts_where_its_mask_counts_from() -> None:
    old = "x = lm.load(score, coords=(lo + i * CH,)"
    for n in (1, 2):  # what is loaded for the sum, and for the result with a mask that has a name
        parts = EDGES.split(old)
        ((code, message),) = found(old.join(parts[: n + 1]) + "x = lm.load(score, coords=(lo + (i + 1) * CH,)" + old.join(parts[n + 1 :]))
        assert code == "S033" and "behind the end of a sequence of `indptr`" in message


CHUNKS = (CORPUS / "prefill_paged_loaders.py").read_text("utf-8")


def test_rows_that_a_vector_places_end_where_their_sequence_does() -> None:
    assert found(CHUNKS) == []
    ((code, message),) = found(CHUNKS.replace("mask=own < fresh)", "mask=own < fresh + 1)"))
    assert code == "S033" and "behind the end of a sequence of `START`" in message


COUNTS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def counts(lm, X: LM.gmem1d[LM.i32, "N"], H: LM.gmem1d[LM.i32, 256], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(X, 0, 256)
    pool = lm.smem(1024)
    bins = pool.view(offset=0, shape=(256,), dtype=lm.i32)
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("one",))
    with work:
        for t in lm.tiles(sched):
            bins.store(lm.frag(shape=(256,), dtype=lm.i32, form="vec", init=0))
            lm.sync(own)
            for i in lm.range(lm.cdiv(N, 512)):
                x = lm.load(X, coords=(i * 512,), shape=(512,), form="vec", clip=True)
                at = lm.iota(x, 0, base=i * 512)
                bins.atomic(lm.where(at < N, 1, 0), x, op="add")
            lm.sync(own)
            lm.store(H, bins.load(form="vec"), coords=(0,))
"""


def test_a_count_by_atomics_comes_to_the_last_tile() -> None:
    assert found(COUNTS) == []
    assert found(COUNTS.replace("lm.cdiv(N, 512))", "lm.cdiv(N, 512) - 1)"))[0][0] == "Q012"


PARTS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def parts(lm, P: LM.gmem3d[LM.f32, "SPLITS", "M", 256], C: LM.gmem2d[LM.f32, "M", 256], M: LM.i32, *, SPLITS=4):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 2))
    sched = lm.scheduler(kind="grid", tiles=(M,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            for z in lm.static_range(SPLITS):
                total = total + lm.load(P, coords=(0, t.m, z), shape=(256,), form="vec")
            lm.store(C, total, coords=(0, t.m))
"""


def test_a_sum_over_parts_of_a_fixed_number_takes_the_last() -> None:
    assert found(PARTS) == []
    ((code, message),) = found(PARTS.replace("static_range(SPLITS)", "static_range(SPLITS - 1)"))
    assert code == "Q012" and "before `P` does" in message


def test_two_of_three_parts_may_be_all_that_is_meant_where_nothing_is_summed() -> None:
    """Queries and keys of packed projections are turned, values are not."""
    turned = PARTS.replace("total = total + lm.load(P, coords=(0, t.m, z), shape=(256,), form=\"vec\")", "lm.store(C, lm.load(P, coords=(0, t.m, z), shape=(256,), form=\"vec\"), coords=(0, 2 * t.m + z))")
    turned = turned.replace("static_range(SPLITS)", "static_range(2)").replace("SPLITS=4", "SPLITS=3").replace('C: LM.gmem2d[LM.f32, "M", 256]', 'C: LM.gmem2d[LM.f32, "M2", 256]').replace("M: LM.i32,", "M: LM.i32, M2: LM.i32,")
    turned = turned.replace("    work =", "    lm.assume(M2 == 2 * M)\n    work =").replace("            lm.store(C, total, coords=(0, t.m))\n", "").replace("            total = lm.frag(shape=(256,), dtype=lm.f32, form=\"vec\", init=0.0)\n", "")
    assert "Q012" not in {code for code, _ in found(turned)}


@pytest.mark.parametrize(("combined", "start", "end"), [("lm.max(most, s)", "-lm.inf", 'lm.reduce(most, "max", axis=1)'), ("most + lm.exp(s)", "0.0", "lm.sum(most, axis=1)")])
def test_scores_of_one_block_may_be_combined_with_those_of_the_next_where_a_row_is_reduced(combined: str, start: str, end: str) -> None:
    text = LARGEST.replace("lm.max(most, s)", combined).replace("init=-lm.inf", f"init={start}").replace('lm.reduce(most, "max", axis=1)', end)
    assert found(text) == []
    kept = text.replace('Y: LM.gmem1d[LM.f32, "M"]', 'Y: LM.gmem2d[LM.f32, "M", 64]').replace(f"lm.store(Y, {end}, coords=(t.m * 64,)", "lm.store(Y, most, coords=(0, t.m * 64)")
    assert found(kept)[0][0] == "S034"


def test_a_tile_that_nothing_is_added_to_is_reduced_over_all_warps_in_vain() -> None:
    assert found(GROUPS.replace("                s2 = s2 + x * x\n", ""))[0][0] == "D040"


def test_a_tile_that_starts_from_a_number_is_told_once_whether_it_is_stored_beside_its_sum_or_not() -> None:
    text = _SUMS.replace("init=0.0", "init=1.0")
    assert [code for code, _ in found(text)] == ["D066"]
    kept = text.replace('Y: LM.gmem1d[LM.f32, "R"]', 'Y: LM.gmem1d[LM.f32, "R"], Z: LM.gmem2d[LM.f32, "R", 256]').replace("            lm.store(Y,", "            lm.store(Z, total, coords=(0, t.r))\n            lm.store(Y,")
    assert [code for code, _ in found(kept)] == ["D069"]
    assert found(kept.replace("init=1.0", "init=1e-6")) == []


RING = """
@cake.schedule(target="sm_80")
def fading(lm, X: LM.gmem2d[LM.f32, "T", 256], Y: LM.gmem2d[LM.f32, "T", 256], T: LM.i32, *, AHEAD=4):
    lm.launch(grid="tiles")
    pool = lm.smem(AHEAD * 1024)
    rows = pool.view(offset=0, shape=(1, 256), dtype=lm.f32, stage=AHEAD)
    work = lm.role(warps=range(0, 2))
    ring = lm.pipeline(stages=AHEAD)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("one",))
    with work:
        for t in lm.tiles(sched):
            h = lm.frag(shape=(1, 256), dtype=lm.f32, form="vec", init=0)
            for i in lm.static_range(FIRST):
                s = lm.step(ring)
                rows.cp_async(X, coords=(0, i), stage=s)
                lm.cp_commit()
            for i in lm.range(T):
                lm.cp_wait(pending=AHEAD - 2)
                lm.sync(meet)
                s = lm.step(ring)
                rows.cp_async(X, coords=(0, i + NEXT), stage=s)
                lm.cp_commit()
                h = h * 0.5 + rows[s.prev(AHEAD - 1)].load(form="vec", like=h)
                lm.store(Y, h, coords=(0, i))
            lm.cp_wait(pending=0)
"""


@pytest.mark.parametrize(("first", "following", "told"), [("AHEAD - 1", "AHEAD - 1", ""), ("AHEAD - 1", "AHEAD", "nothing brings the 1 between"), ("AHEAD", "AHEAD - 1", "have brought")])
def test_copies_of_a_loop_go_on_where_those_in_front_of_it_end(first: str, following: str, told: str) -> None:
    errors = found(RING.replace("FIRST", first).replace("NEXT", following))
    assert [code for code, _ in errors][:1] == (["D067"] if told else [])
    assert not told or told in errors[0][1]


def test_one_tile_in_front_of_a_loop_may_have_served_something_else() -> None:
    """A first look at a row, and a loop that begins with it again."""
    again = LARGEST.replace("            for j in lm.range(N // 64):\n", "            lm.cp_wait(pending=0)\n            for j in lm.range(N // 64):\n")
    assert "D067" not in {code for code, _ in found(again.replace("(j + 1) * 64", "j * 64"))}
