"""Outputs that branches divide among them, and cases of what memory holds."""

from __future__ import annotations

from cake_verify.gates import verify_text

HEADS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def heads(lm, X: LM.gmem2d[LM.f32, "T", "W"], SLOT: LM.gmem1d[LM.i32, "T"], Q: LM.gmem2d[LM.f32, "T", "QW"], C: LM.gmem2d[LM.f32, "S", "CW"], V: LM.gmem2d[LM.f32, "S", "CW"],
          T: LM.i32, W: LM.i32, QW: LM.i32, CW: LM.i32, S: LM.i32, NQ: LM.i32, NK: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(QW == NQ * 128)
    lm.assume(CW == NK * 128)
    lm.assume(W == QW + 2 * CW)
    lm.assume(NQ > 0 and NK > 0)
    lm.assume_values(SLOT, 0, S)
    work = lm.role(warps=range(0, 1))
    space = lm.scheduler(kind="grid", tiles=(NQ + 2 * NK, T), names=("h", "tok"))
    with work:
        for t in lm.tiles(space):
            slot = lm.ld(SLOT, t.tok)
            low = lm.load(X, coords=(t.h * 128, t.tok), shape=(64,), form="vec")
            high = lm.load(X, coords=(t.h * 128 + 64, t.tok), shape=(64,), form="vec", like=low)
            if t.h < NQ:
                lm.store(Q, low, coords=(t.h * 128, t.tok), clip=True)
                lm.store(Q, high, coords=(t.h * 128 + 64, t.tok), clip=True)
            elif t.h < NQ + NK:
                lm.store(C, low, coords=((t.h - NQ) * 128, slot), clip=True)
                lm.store(C, high, coords=((t.h - NQ) * 128 + 64, slot), clip=True)
            else:
                lm.store(V, low, coords=((t.h - NQ - NK) * 128, slot), clip=True)
                lm.store(V, high, coords=((t.h - NQ - NK) * 128 + 64, slot), clip=True)
"""
DIVIDED = dict.fromkeys("QCV", "an output")


def lacking(text: str, outputs: dict[str, str]) -> list[object]:
    errors = verify_text(text, outputs=outputs).errors
    assert all(d.code == "Q013" for d in errors), errors
    return [d.facts["tensor"] for d in errors]


def test_heads_that_branches_divide_among_outputs_fill_each_of_them() -> None:
    assert lacking(HEADS, DIVIDED) == []
    for was, now, tensor in (
        ("if t.h < NQ:", "if t.h <= NQ:", "C"), ("elif t.h < NQ + NK:", "elif t.h <= NQ + NK:", "V"), ("if t.h < NQ:", "if t.h + 1 < NQ:", "Q"),
        ("elif t.h < NQ + NK:", "elif t.h < NQ + NK - 1:", "C"), ("lm.store(Q, high, coords=(t.h * 128 + 64, t.tok), clip=True)", "pass", "Q"),
    ):  # fmt: skip
        assert lacking(HEADS.replace(was, now), DIVIDED)[:1] == [tensor], now


def test_heads_of_an_extent_that_nothing_ties_to_them_may_be_fewer() -> None:
    loose = HEADS.replace("    lm.assume(CW == NK * 128)\n", "").replace("2 * CW)", "2 * NK * 128)")
    assert lacking(loose.replace("elif t.h < NQ + NK:", "elif t.h < NQ + NK - 1:"), DIVIDED) == []


PICKED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def loss(lm, X: LM.gmem2d[LM.f32, "B", 256], LABEL: LM.gmem1d[LM.i32, "B"], LOSS: LM.gmem1d[LM.f32, "B"], G: LM.gmem2d[LM.f32, "B", 256], B: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(LABEL, -100, 256)
    work = lm.role(warps=range(0, 1))
    space = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(space):
            label = lm.ld(LABEL, t.b)
            x = lm.load(X, coords=(0, t.b), shape=(256,), form="vec")
            total = lm.reduce(x, "add", axis=None)
            if label >= 0:
                lm.store(LOSS, total, coords=(t.b,))
            else:
                lm.store(LOSS, 0.0, coords=(t.b,))
            lm.store(G, x - total, coords=(0, t.b))
"""
BOTH = dict.fromkeys(("LOSS", "G"), "an output")
WITHOUT = PICKED.replace("            else:\n                lm.store(LOSS, 0.0, coords=(t.b,))\n", "")


def test_an_output_that_one_case_leaves_out_while_another_output_is_stored() -> None:
    assert lacking(PICKED, BOTH) == []
    (error,) = verify_text(WITHOUT, outputs=BOTH).errors
    assert error.code == "Q013" and error.message == "nothing writes `LOSS`, an output, of a tile for which `label >= 0` is false, and `G` is written for it"
    assert [d.code for d in verify_text(PICKED.replace("lm.store(LOSS, total, coords=(t.b,))", "pass"), outputs=BOTH).errors] == ["Q013"]


def test_a_case_that_leaves_out_the_whole_tile_is_the_authors_choice() -> None:
    whole = WITHOUT.replace("            lm.store(G,", "                lm.store(G,")
    assert lacking(whole, BOTH) == []


def test_a_case_that_no_declared_value_takes_needs_no_store() -> None:
    assert lacking(WITHOUT.replace("LABEL, -100, 256", "LABEL, 0, 256"), BOTH) == []


def test_a_case_whose_output_keeps_what_it_held_says_so() -> None:
    assert lacking(WITHOUT.replace('LOSS: LM.gmem1d[LM.f32, "B"]', 'LOSS: LM.gmem1d[LM.f32, "B"].inout'), BOTH) == []
    assert lacking(WITHOUT, {"LOSS": "an output"}) == []  # where nothing else is asked for, it may be that nothing is meant


ARMS = PICKED.replace("            lm.store(G, x - total, coords=(0, t.b))\n", "").replace("                lm.store(LOSS, total, coords=(t.b,))\n", """                lm.store(LOSS, total, coords=(t.b,))
                lm.store(G, x - total, coords=(0, t.b))
""").replace("                lm.store(LOSS, 0.0, coords=(t.b,))\n", """                lm.store(LOSS, 0.0, coords=(t.b,))
                lm.store(G, x * 0.0, coords=(0, t.b))
""")


def test_an_output_that_one_arm_leaves_out_while_both_store_another() -> None:
    assert lacking(ARMS, BOTH) == []
    for line, tensor in (("lm.store(LOSS, 0.0, coords=(t.b,))", "LOSS"), ("lm.store(LOSS, total, coords=(t.b,))", "LOSS"), ("lm.store(G, x * 0.0, coords=(0, t.b))", "G")):
        assert lacking(ARMS.replace(line, "pass"), BOTH) == [tensor], line


def test_an_output_that_tells_which_case_it_is_leaves_the_other_open() -> None:
    told = ARMS.replace("lm.store(LOSS, total,", "lm.store(LOSS, 1.0,").replace("total = lm.reduce(x, \"add\", axis=None)", "total = 2.0")
    assert lacking(told.replace("                lm.store(G, x * 0.0, coords=(0, t.b))\n", ""), BOTH) == []


FEW = """
@cake.schedule(target=("sm_80", "sm_90a"))
def few(lm, X: LM.gmem2d[LM.f32, "M", 256], Y: LM.gmem2d[LM.f32, "M", 256], M: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(M > 0 and M <= 4)
    work = lm.role(warps=[0])
    one = lm.scheduler(kind="grid", tiles=(1,), names=("x",))
    with work:
        for t in lm.tiles(one):
            w = lm.load(X, coords=(0, 0), shape=(256,))
            lm.store(Y, w + 1.0, coords=(0, 0))
            if M > 1:
                lm.store(Y, w + 2.0, coords=(0, 1))
            if M > 2:
                lm.store(Y, w + 3.0, coords=(0, 2))
            if M > 3:
                lm.store(Y, w + 4.0, coords=(0, 3))
"""


def test_conditions_on_arguments_are_tried_where_they_turn() -> None:
    assert lacking(FEW, {"Y": "an output"}) == []
    for was, now in (("if M > 3:", "if M > 4:"), ("if M > 2:", "if M > 3:"), ("if M > 1:", "if M > 2:")):
        assert lacking(FEW.replace(was, now), {"Y": "an output"}) == ["Y"], now
    for was, now in (("if M > 3:", "if M >= 3:"), ("if M > 2:", "if M >= 2:"), ("if M > 1:", "if M >= 1:")):
        (error,) = verify_text(FEW.replace(was, now)).errors
        assert error.code == "S033" and f"M = {now[-2]}" in error.message, now
