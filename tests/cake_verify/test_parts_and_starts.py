"""Parts of a tensor, first rounds and scales: the near misses that the rules about them let pass."""

from __future__ import annotations

from cake_verify import verify_text
from cake_verify.rules.consistency import d055_places_apart, d056_first_round, d057_one_part, d059_own_scale
from cake_verify.rules.safety import s038_send


def _codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).diagnostics if d.severity == "error"]


def _page(module: object) -> str:
    return str(module.PAGE.passing)  # type: ignore[attr-defined]  # a rule's module


def test_elements_that_lie_a_constant_apart_may_be_meant() -> None:
    assert _codes(_page(d055_places_apart).replace("g = lm.load(G, coords=(0, first + i)", "g = lm.load(G, coords=(0, first + i + 1)")) == []


def test_a_sum_over_rounds_is_no_pair_of_places() -> None:
    text = _page(d055_places_apart).replace("                x = lm.load", "                acc = lm.load(X, coords=(0, 0), shape=(128,), clip=True)\n                x = lm.load").replace("x * lm.sigmoid(g)", "lm.max(acc, x * lm.sigmoid(g))")
    assert _codes(text) == []


def test_an_accumulator_with_a_value_in_front_of_its_loop_needs_no_first_round() -> None:
    text = _page(d056_first_round).replace("init=(k == t.m)", "init=(k == 0)")
    assert _codes(text) == ["D056"]
    inside = text.replace('        acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc")\n', "").replace("            for k", '            acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc", init=0.0)\n            for k')
    assert _codes(inside) == []


def test_the_same_elements_twice_are_no_fault_where_all_of_the_axis_is_read() -> None:
    text = _page(d057_one_part).replace("lm.silu(gate) * up", "lm.silu(gate) * up + again").replace("            lm.store", "            again = lm.load(X, coords=(t.c * 128, t.t), shape=(128,))\n            lm.store")
    assert _codes(text) == []


def test_a_tensor_with_a_row_for_every_tile_is_read_at_that_row() -> None:
    text = _page(d057_one_part).replace("coords=(H + t.c * 128, t.t)", "coords=(H + t.c * 128, 0)").replace("gate = lm.load(X, coords=(t.c * 128, t.t)", "gate = lm.load(X, coords=(t.c * 128, 0)")
    assert _codes(text) == ["D057"]


def test_a_scale_is_a_factor_of_what_was_divided_by_it() -> None:
    text = _page(d059_own_scale)
    assert _codes(text.replace("lm.cast(x * lm.rcp(s), lm.e4m3)", "lm.cast((x * x) * lm.rcp(s), lm.e4m3)")) == []
    assert _codes(text.replace("lm.cast(x * lm.rcp(s), lm.e4m3)", "lm.cast(x * 2.0 * s, lm.e4m3)")) == ["D059"]


def test_a_send_that_only_its_sender_receives_is_refused() -> None:
    assert _codes(_page(s038_send).replace("cta=1 - lm.cta_rank()", "cta=lm.cta_rank()")) == ["S038"]
