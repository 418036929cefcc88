"""Where tiles of sequences, ranks and members meet their ends: one slip in a text that is right, and the rule that knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

SLIPS = [
    # rows that have a number each go on behind their sequence
    ("prefill_paged_loaders", "coords=(0, t.h, q0 + own), mask=own < fresh)", "coords=(0, t.h, q0 + own))", "S013"),
    # positions do not depend on what lies in the place that they are positions of
    ("prefill_paged_loaders", "own = lm.iota(o, axis=0, base=row0)", "own = lm.iota(o, axis=0, base=0)", "Q001"),
    # a mask is one part of what `&` holds together
    ("prefill_paged_loaders", "key = lm.iota(z, axis=1, base=j * 128)", "key = lm.iota(z, axis=1)", "D036"),
    # a maximum over all warps is one, too
    ("decode_part", "lm.where(lm.iota(z, axis=1, base=j * BN) < length, z * scale, -lm.inf)", "z * scale", "D036"),
    ("decode_part", "base=j * BN) < length,", "base=j * BN) <= length,", "D036"),
    # ranks tell the blocks of one cluster apart
    ("rmsnorm_bwd_cluster", 'lm.atomic(DW, quarter, coords=(me * part,), order="any")', "lm.store(DW, quarter, coords=(me * part,))", "Q001"),
    # arguments beside a coordinate move it for all blocks alike
    ("qkv_rope_epilogue", "coords=((t.h - HQ) * 128, row0)", "coords=(row0, (t.h - HQ) * 128)", "Q001"),
    # offsets without an extent mark off one group at least
    ("fp8_grouped_promote", 'form="rowvec", like=total, mask=live)', 'form="rowvec", like=total)', "S033"),
    # the last round runs wherever the first one is
    ("indexer_logits", "coords=(j * BN, me), mask=key < L)", "coords=(j * BN, me))", "S033"),
    # what stands in front of a loop is its first rounds
    ("reduce_then_gather", "lm.range(1, RANKS)", "lm.range(1, RANKS - 1)", "Q012"),
]


@pytest.mark.parametrize(("name", "good", "bad", "code"), SLIPS)
def test_the_slip_is_refused_and_the_text_is_not(name: str, good: str, bad: str, code: str) -> None:
    text = (CORPUS / f"{name}.py").read_text("utf-8")
    assert text.count(good) == 1 and verify_text(text).verdict == "pass"
    assert [d.code for d in verify_text(text.replace(good, bad)).errors] == [code]


def test_another_mask_beside_a_length_is_right() -> None:
    text = (CORPUS / "decode_part.py").read_text("utf-8")
    mask = "lm.iota(z, axis=1, base=j * BN) < length"
    assert verify_text(text.replace(mask, f"({mask}) & (lm.iota(z, axis=1, base=j * BN) >= 0)")).verdict == "pass"


def test_a_cluster_for_all_tiles_may_place_by_rank() -> None:
    text = (CORPUS / "rmsnorm_bwd_cluster.py").read_text("utf-8")
    stored = text.replace('lm.atomic(DW, quarter, coords=(me * part,), order="any")', "lm.store(DW, quarter, coords=(me * part,))")
    one = stored.replace("tiles=(lm.cdiv(ROWS, EACH),)", "tiles=(4,)").replace("lm.max(lm.min(EACH, ROWS - t.block * EACH), 0)", "EACH").replace(".zeroed, ROWS", ", ROWS")
    assert not [d for d in verify_text(one.replace('lm.launch(grid="tiles"', 'lm.assume(ROWS == 64)\n    lm.launch(grid="tiles"')).errors if d.code == "Q001"]


EVERY_OTHER = """
@cake.schedule(target=("sm_80", "sm_90a"))
def every_other(lm, X: LM.gmem2d[LM.f32, "R", 512], Y: LM.gmem2d[LM.f32], R: LM.i32, ODD: LM.i32):
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            lm.store(Y, lm.load(X, coords=(0, t.r), shape=(512,)), coords=(0, 2 * t.r + ODD))
"""


def test_what_one_launch_leaves_out_beside_an_argument_another_one_writes() -> None:
    assert verify_text(EVERY_OTHER).verdict == "pass"


PARTS = """
@cake.schedule(target="sm_90a")
def parts(lm, X: LM.gmem2d[LM.f32, "R", 512], Y: LM.gmem2d[LM.f32, "P", 512], R: LM.i32, P: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(P == lm.cdiv(R, 8))
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(P,), names=("p",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(512,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(lm.min(8, R - t.p * 8)):
                total = total + lm.load(X, coords=(0, t.p * 8 + i), shape=(512,), form="vec", like=total)
            lm.store(Y, total, coords=(0, lm.cta_id()))
"""


def test_a_block_that_has_one_tile_may_place_by_its_own_number() -> None:
    assert verify_text(PARTS).verdict == "pass"
    assert [d.code for d in verify_text(PARTS.replace("lm.cta_id()", "0")).errors] == ["Q001"]
