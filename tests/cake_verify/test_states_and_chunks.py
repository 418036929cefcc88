"""States that loops carry from chunk to chunk, and accumulators that are rescaled part by part."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d079_state_of_the_chunk import PAGE as CARRIED
from cake_verify.rules.consistency.d080_weighed_alike import PAGE as WEIGHED
from cake_verify.rules.consistency.d081_columns_left import PAGE as COLUMNS

STATE, CHUNK, PARTS = (str(p.passing) for p in (CARRIED, WEIGHED, COLUMNS))
DECAY = "                st = st * lm.exp(last)\n"
ROWS = "            y = y * lm.exp(row)\n"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_a_state_without_its_decay() -> None:
    assert codes(STATE) == []
    assert codes(STATE.replace(DECAY, "")) == ["D079"]
    assert codes(STATE.replace(DECAY, "").replace("lm.exp(last - g)", "lm.exp2((last - g) * 1.44)")) == ["D079"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("lm.exp(last - g)", "lm.exp(g - last)"),
        ("lm.exp(last - g)", "lm.exp(g)"),
        ("last = lm.ld(G, c * 64 + 63)", "last = lm.ld(G, T - 1)"),  # one place for all chunks
        ("lm.mma(st, lm.cast(x, lm.bf16, form=\"a\"), k.T.ldmatrix(form=\"b\"))", "lm.mma(st, lm.cast(x, lm.bf16, form=\"a\"), k.T.ldmatrix(form=\"b\"), init=True)"),
    ],
)
def test_what_needs_no_decay(was: str, now: str) -> None:
    assert "D079" not in codes(STATE.replace(DECAY, "").replace(was, now))


def test_a_part_of_the_state_that_is_not_weighed() -> None:
    assert codes(CHUNK) == []
    assert codes(CHUNK.replace(ROWS, "")) == ["D080"]
    assert codes(CHUNK.replace(ROWS, "").replace("z * lm.exp(row - col)", "z * lm.exp(col - row)")) == []
    assert codes(CHUNK.replace(ROWS, "").replace("lm.mma(y, q.ld", "lm.mma(y, v.ld")) != ["D080"]


def test_columns_that_a_loop_does_not_rescale() -> None:
    assert codes(PARTS) == []
    assert codes(PARTS.replace("lm.static_range(64 // 16)", "lm.static_range(64 // 16 - 1)")) == ["D081"]
    assert "D081" not in codes(PARTS.replace("lm.static_range(64 // 16)", "lm.static_range(64 // 16 - 1)").replace("x * f)", "x)"))


def test_weights_that_another_exponential_brings_on_to_the_end_of_all() -> None:
    text = STATE.replace(DECAY, "").replace("            for c in", "            whole = lm.ld(G, T - 1)\n            for c in")
    assert codes(text.replace("lm.exp(last - g)", "lm.exp(last - g) * lm.exp(whole - last)")) == []


def test_weights_by_a_normaliser_that_is_the_same_in_all_rounds() -> None:
    text = STATE.replace(DECAY, "").replace("T: LM.i32)", "T: LM.i32, L: LM.gmem1d[LM.f32, 64])").replace("            for c in", '            norm = lm.load(L, coords=(0,), shape=(64,), form="rowvec", like=st)\n            for c in')
    text = text.replace('                g = lm.load(G, coords=(c * 64,), shape=(64,), form="colvec", like=st)\n', "").replace("lm.exp(last - g)", "lm.exp(last - norm)")
    assert codes(text) == []


def test_a_weight_beside_a_weighed_part_is_no_state() -> None:
    skip = CHUNK.replace(ROWS, "").replace('S: LM.gmem3d[LM.bf16, "N", 64, 64]', "W: LM.gmem2d[LM.bf16, 64, 64]").replace("st.cp_async(S, coords=(0, 0, t.c))", "st.cp_async(W, coords=(0, 0))")
    assert codes(skip) == []


def test_columns_that_are_scaled_once_behind_the_sum_may_be_some() -> None:
    fade = PARTS[PARTS.index("                for c in lm.static_range") : PARTS.index("            lm.arrive(faded")]
    once = fade.replace("\n        ", "\n").replace("        ", "", 1).replace("64 // 16", "3").replace("x * f", "x * lm.ld(F, 0)")
    text = PARTS.replace(fade, "").replace("            f = lm.ld(F, k)\n", "").replace("        y = lm.tmem_load(o)\n", once + "        y = lm.tmem_load(o)\n")
    assert text.count("static_range(3)") == 1
    assert codes(text) == []
