"""Numbers from memory that place an access: stated, looked at, or refused."""

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d061_unbounded_number import PAGE

BARE = str(PAGE.failing)


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).diagnostics if d.severity == "error"]


def changed(*pairs: tuple[str, str]) -> str:
    text = BARE
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_what_nothing_bounds_is_refused_once() -> None:
    [error] = [d for d in verify_text(BARE).diagnostics if d.severity == "error"]
    assert error.code == "D061" and "`ids`" in error.message and "lm.assume_values(ids, 0, V)" in error.help
    twice = changed(("            lm.store(out, ", "            other = lm.load(table, coords=(0, row + 1), shape=(1, 128))\n            lm.store(out, other + "))
    assert codes(twice) == ["D061"]


@pytest.mark.parametrize(
    "text",
    [
        changed(('    work = lm.role', '    lm.assume_values(ids, 0, V)\n    work = lm.role')),
        changed(("coords=(0, row)", "coords=(0, lm.min(lm.max(row, 0), V - 1))")),
        changed(("coords=(0, row), shape=(1, 128)", "coords=(0, row), shape=(1, 128), clip=True")),
        changed(('table: LM.gmem2d[LM.bf16, "V", 128]', "table: LM.gmem2d[LM.bf16]")),
        changed(("            lm.store(out, lm.load", "            if row != -1:\n                lm.store(out, lm.load")),
    ],
    ids=["stated", "brought into range", "clipped", "no extents", "looked at"],
)
def test_what_is_bounded_in_some_way_passes(text: str) -> None:
    assert "D061" not in codes(text)


def test_the_sum_of_a_number_and_something_else_is_looked_at() -> None:
    flat = changed(('table: LM.gmem2d[LM.bf16, "V", 128]', 'table: LM.gmem1d[LM.bf16, "V"]'), ("lm.load(table, coords=(0, row), shape=(1, 128))", "lm.load(table, coords=(row + t.t * 128,), shape=(128,), form=\"vec\")"),
                   ('out: LM.gmem2d[LM.bf16, "T", 128]', 'out: LM.gmem1d[LM.bf16, "N"]'), ("coords=(0, t.t))", "coords=(t.t * 128,), clip=True)"), ("T: LM.i32,", "T: LM.i32, N: LM.i32,"))  # fmt: skip
    assert "D061" in codes(flat)
