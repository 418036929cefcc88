"""Index arithmetic of fragments agrees with the ownership maps, whatever way the loops are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_backend.cuda.context import RoleState
from cake_backend.cuda.emitter import Names
from cake_backend.cuda.fragments import Index, Term, column_slot, elements, fragment, loop, row_slot, tile_col, tile_row
from cake_backend.cuda.inflight import InFlight
from cake_backend.cuda.positions import vec_element
from cake_backend.cuda.webs import Webs
from cake_ir.forms import element
from cake_ir.program import Role
from cake_ir.span import NOWHERE
from cake_ir.types import FragT


def evaluate(text: str, **values: int) -> int:
    """The value of generated C text on non-negative integers."""
    python = text.replace("(int)", "").replace("(u32)", "").replace("/", "//")
    for suffix in ("0u", "1u", "2u", "3u", "4u", "5u", "6u", "7u", "8u", "9u"):
        python = python.replace(suffix, suffix[0])
    return int(eval(python, {}, values))


TERMS = st.lists(st.tuples(st.integers(1, 32), st.integers(1, 9)), min_size=0, max_size=3)


@given(terms=TERMS, offset=st.integers(0, 70), by=st.integers(1, 40), data=st.data())
def test_quotients_and_remainders_keep_their_value(terms: list[tuple[int, int]], offset: int, by: int, data: st.DataObject) -> None:
    names = ("a", "b", "c")
    index = Index(tuple(Term(n, scale, count) for n, (scale, count) in zip(names, terms, strict=False)), offset)
    values = {n: data.draw(st.integers(0, count - 1)) for n, (_, count) in zip(names, terms, strict=False)}
    whole = evaluate(index.text, **values)
    assert whole == sum(s * values[n] for n, (s, _) in zip(names, terms, strict=False)) + offset
    assert evaluate(index.divided(by), **values) == whole // by
    assert evaluate(index.modulo(by), **values) == whole % by
    for n in range(3):
        assert evaluate(index.bit(n), **values) == whole >> n & 1


@given(scale=st.sampled_from((1, 2, 4, 8)), offset=st.integers(0, 7), value=st.integers(0, 200), by=st.sampled_from((1, 2, 4, 8, 16)))
def test_a_variable_of_unknown_range_is_handled_too(scale: int, offset: int, value: int, by: int) -> None:
    index = loop("i", scale, offset)
    assert evaluate(index.divided(by), i=value) == (scale * value + offset) // by
    assert evaluate(index.modulo(by), i=value) == (scale * value + offset) % by


class _Role:
    """What coordinates need of a context: the member's warps."""

    def __init__(self, warps: int) -> None:
        role = Role("work", 0, warps, None, 1, NOWHERE)
        self.role = RoleState(role, Names(), Webs(), InFlight(), False)


@pytest.mark.parametrize(
    ("t", "warps"),
    [
        (FragT("acc", 64, 128, "f32"), 4),
        (FragT("acc", 128, 64, "f32"), 4),
        (FragT("acc", 128, 128, "f32", warps=(2, 4)), 8),
        (FragT("acc", 64, 8, "f32", warps=(4, 1)), 4),
        (FragT("a", 64, 64, "bf16"), 4),
    ],
)
def test_rows_and_columns_of_a_tile_are_those_of_its_owner(t: FragT, warps: int) -> None:
    ctx = _Role(warps)
    f = fragment(t, warps)
    rows, cols = tile_row(ctx, t, loop("i")), tile_col(ctx, t, loop("i"))  # type: ignore[arg-type]  # only the role is looked at
    slots = row_slot(t, warps, loop("i")), column_slot(t, warps, loop("i"))
    rowvec = fragment(FragT("rowvec", t.rows, 1, "f32", warps=t.warps, parent="acc"), warps)
    colvec = fragment(FragT("colvec", 1, t.cols, "f32", warps=t.warps, parent="acc"), warps)
    for warp in range(warps):
        for lane in (0, 1, 5, 31):
            for i in range(elements(t, warps)):
                values = {"i": i, "warp": warp, "lane": lane}
                assert (evaluate(rows, **values), evaluate(cols, **values)) == element(f, warp, lane, i)
                if t.form == "acc":
                    assert element(rowvec, warp, lane, evaluate(slots[0], i=i))[0] == element(f, warp, lane, i)[0]  # type: ignore[index]
                    assert element(colvec, warp, lane, evaluate(slots[1], i=i))[1] == element(f, warp, lane, i)[1]  # type: ignore[index]


@pytest.mark.parametrize(("t", "warps"), [(FragT("vec", 1, 4096, "bf16", chunk=8, rank=1), 4), (FragT("vec", 64, 128, "f32", chunk=4), 8)])
def test_elements_of_a_vec_are_those_of_its_owner(t: FragT, warps: int) -> None:
    ctx, f = _Role(warps), fragment(t, warps)
    text = vec_element(ctx, t, loop("i"))  # type: ignore[arg-type]
    for warp, lane in ((0, 0), (warps - 1, 31), (1, 7)):
        for i in range(elements(t, warps)):
            at = evaluate(text, i=i, thread=32 * warp + lane)
            assert divmod(at, t.cols) == element(f, warp, lane, i)
