"""`lm.frag(init=..)` of narrow types: every element of a packed register starts as the rounded value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, compiles, generated, passes, simulated

TEXT = """
@cake.schedule(target="sm_90a")
def start(lm, Y: LM.gmem2d[LM.f32, 16, 16]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 1))
    with work:
        x = lm.frag(shape=(16, 16), dtype=lm.{dtype}, form="{form}", init={init})
        lm.store(Y, lm.cast(x, lm.f32), coords=(0, 0))
"""


@pytest.mark.parametrize(
    ("dtype", "form", "init", "want"),
    [("bf16", "acc", "-1e30", -1.00025555e30), ("f16", "acc", "1.5", 1.5), ("bf16", "vec", "-lm.inf", -np.inf), ("e4m3", "vec", "-3.3", -3.25), ("f32", "acc", "0.1", 0.1)],
)
def test_all_elements_start_as_the_rounded_value(tmp_path: Path, dtype: str, form: str, init: str, want: float) -> None:
    text = TEXT.format(dtype=dtype, form=form, init=init)
    tensors = {"Y": np.zeros((16, 16), np.float32)}
    passes(text)
    compiles(text, "sm_90a")
    got = simulated(text, tensors, {}, target="sm_90a")
    agree(got, generated(text, tensors, {}, tmp_path, target="sm_90a"))
    np.testing.assert_allclose(got["Y"], want, rtol=1e-6)
