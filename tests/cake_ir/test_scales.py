"""Block scales are declared by a closed list of blocks, dtypes and layouts."""

from __future__ import annotations

import pytest

from cake_ir.frontend import parse, specialise
from cake_ir.ops.mma import SCALES
from cake_verify.gates import verify_text
from cake_verify.rules.construct.n090_not_in_build import PAGE

GOOD = PAGE.failing


@pytest.mark.parametrize(("option", "value"), [(option, value) for option, known in SCALES.items() for value in known])
def test_every_value_of_the_list_is_taken_and_left_undecided(option: str, value: str) -> None:
    old = {"block": "block=32", "dtype": "block=32, dtype=lm.ue8m0", "layout": 'layout="tmem_128x4"'}[option]
    new = {"block": f"block={value}", "dtype": f"block=32, dtype=lm.{value}", "layout": f'layout="{value}"'}[option]
    text = GOOD.replace(old, new)
    assert specialise(parse(text, "t").schedules[0], {}, "sm_100a").program is not None
    assert verify_text(text, suggest=False).verdict == "undecided"


@pytest.mark.parametrize(("old", "new", "option"), [
    ("block=32", "block=64", "block"), ("32, dtype=lm.ue8m0", "32, dtype=lm.bf16", "dtype"), ('layout="tmem_128x4"', 'layout="rows"', "layout"),
])  # fmt: skip
def test_any_other_is_refused_where_it_is_written(old: str, new: str, option: str) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    (error,) = verify_text(text, suggest=False).errors
    assert error.code == "N061" and f"has no {option} " in error.message
    line = text.split("\n")[error.span.line - 1]
    assert line[error.span.column - 1 :].startswith(new.rsplit("=", 1)[1])
