"""Accumulators that are scaled while they hold zeros."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d052_before_its_product import PAGE

PRODUCT = '            lm.mma(s, a, bs.ldmatrix(form="b"))\n'
TEXT = PAGE.passing
EARLY = PAGE.failing


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def test_a_factor_in_front_of_the_product() -> None:
    assert codes(TEXT) == []
    (error,) = verify_text(EARLY).errors
    assert error.code == "D052" and error.facts["accumulator"] == "s"
    assert codes(EARLY.replace("s = s * scale", "s = lm.where(lm.iota(s, 1) < 32, s * scale, 0.0)")) == ["D052"]


@pytest.mark.parametrize("between", [
    "            s = s + scale\n", "            s = lm.where(lm.iota(s, 1) < 32, s, -1e30)\n", f"{PRODUCT}            s = s * scale\n",
    f"            for k in lm.range(2):\n    {PRODUCT}            s = s * scale\n", f"            if scale > 0.0:\n    {PRODUCT}            s = s * scale\n",
])  # fmt: skip
def test_biases_masks_and_products_in_front_are_left_alone(between: str) -> None:
    assert "D052" not in codes(TEXT.replace(PRODUCT, between + PRODUCT, 1).replace("            s = s * scale\n            lm.store", "            lm.store"))
