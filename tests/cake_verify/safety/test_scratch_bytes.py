"""The scratch of a reduction may lie where something else lay that is no longer wanted: the reduction reads what it has written itself."""

from __future__ import annotations

from pathlib import Path

from cake_verify.gates import verify_text

DECODE = (Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus" / "decode_part.py").read_text("utf-8")
APART = "max_part = pool.view(offset=4 * kv + 16 * BN * 2,"


def test_a_scratch_in_the_place_of_a_swizzled_view_is_read_as_it_was_written() -> None:
    assert APART in DECODE
    assert verify_text(DECODE.replace(APART, "max_part = pool.view(offset=4 * kv,")).verdict == "pass"


def test_a_scratch_in_the_place_of_what_is_still_wanted_is_refused() -> None:
    (error,) = verify_text(DECODE.replace("sum_part = pool.view(offset=4 * kv + 16 * BN * 2 + 256,", "sum_part = pool.view(offset=2 * kv,")).errors
    assert error.code == "S007"
