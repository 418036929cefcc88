"""As many coordinates as the tensor has dimensions, whatever touches it."""

import pytest

from cake_verify import verify_text

TEXT = """
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem2d[LM.f32, "N", 128], Z: LM.gmem1d[LM.f32, "N"].zeroed, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 128 == 0)
    w = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(N // 128,), names=("c",))
    with w:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.c * 128,), shape=(128,), form="vec")
            lm.store(Y, x, coords=(0, t.c * 128))
            lm.atomic(Z, lm.reduce(x, "add"), coords=(t.c * 128,), op="add")
"""


@pytest.mark.parametrize(
    "right, wrong, told",
    [
        ("lm.load(X, coords=(t.c * 128,)", "lm.load(X, coords=(t.c * 128, 0)", "`X` has 1 dimensions but `coords` gives 2"),
        ("coords=(0, t.c * 128))", "coords=(t.c * 128,))", "`Y` has 2 dimensions but `coords` gives 1"),
        ("lm.reduce(x, \"add\"), coords=(t.c * 128,)", "lm.reduce(x, \"add\"), coords=(t.c * 128, 0)", "`Z` has 1 dimensions but `coords` gives 2"),
    ],
)
def test_one_coordinate_a_dimension(right: str, wrong: str, told: str) -> None:
    assert TEXT.count(right) == 1
    found = [(d.code, d.message) for d in verify_text(TEXT.replace(right, wrong)).diagnostics if d.severity == "error"]
    assert found == [("D011", told)]
    assert "D011" not in [d.code for d in verify_text(TEXT).diagnostics]
