"""Elements that one vector places, along one axis of their tensor; and running vectors that are sent as they started."""

from __future__ import annotations

from pathlib import Path

from cake_verify.gates import verify_text

CORPUS = Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus"
PARTS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def parts(lm, X: LM.gmem2d[LM.f32, "T", 128], SLOT: LM.gmem1d[LM.i32, "T"], C: LM.gmem2d[LM.f32, "S", 128], T: LM.i32, S: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T % 32 == 0)
    lm.assume_values(SLOT, 0, S)
    work = lm.role(warps=range(0, 4))
    space = lm.scheduler(kind="grid", tiles=(T // 32,), names=("b",))
    with work:
        for t in lm.tiles(space):
            low = lm.load(X, coords=(0, t.b * 32), shape=(32, 64), form="vec")
            high = lm.load(X, coords=(64, t.b * 32), shape=(32, 64), form="vec", like=low)
            dst = lm.load(SLOT, coords=(t.b * 32,), shape=(32,), form="rowvec", like=low)
            lm.store(C, low, coords=(0, dst))
            lm.store(C, high, coords=(64, dst))
"""


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def test_a_vector_along_another_axis_than_beside_it() -> None:
    assert codes(PARTS) == []
    (error,) = verify_text(PARTS.replace("coords=(64, dst)", "coords=(dst, 64)")).errors
    assert error.code == "D035" and error.related[0][1] == "as here"


def test_a_mirrored_result_has_the_same_coordinates_in_each_others_place() -> None:
    mirrored = PARTS.replace("lm.store(C, high, coords=(64, dst))", "lm.store(C, low + high, coords=(dst, 0))")
    assert "D035" not in codes(mirrored)


def test_a_running_sum_that_is_sent_as_it_started() -> None:
    text = (CORPUS / "decode_cluster_merge.py").read_text("utf-8")
    line = '                l = l * fix + lm.reduce(e, "add", axis=1)\n'
    assert line in text and codes(text) == [] and codes(text.replace(line, "")) == ["D040"]
