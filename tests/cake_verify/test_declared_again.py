"""A fragment that every tile declares anew is started there, whatever stands in front of the loop."""

from cake_verify import verify_text

TEXT = """
@cake.schedule(target="sm_90a")
def k(lm, X: LM.gmem2d[LM.f32, "R", 64], Y: LM.gmem2d[LM.f32, "R", 64], R: LM.i32):
    lm.launch(grid="persistent")
    w = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(R, 64),), names=("m",))
    with w:
        o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            for i in lm.range(3):
                x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc", clip=True)
                o = o * 2.0 + x
            lm.store(Y, o, coords=(0, t.m * 64), clip=True)
"""


def test_a_declaration_with_init_gives_the_place_a_value() -> None:
    assert verify_text(TEXT).verdict == "pass"


def test_without_init_the_first_read_is_still_a_fault() -> None:
    found = verify_text(TEXT.replace(", init=0.0)", ")")).shown()
    assert [d.code for d in found if d.severity == "error"] == ["D009"]


def test_a_fragment_without_init_inside_an_expression_is_nobodys_value() -> None:
    text = TEXT.replace("o = o * 2.0 + x", 'o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc") + x')
    (found,) = [d for d in verify_text(text).shown() if d.severity == "error"]
    assert found.code == "D009" and found.fixes[0].edits[0].text.strip(", )") == "init=0.0"


def test_a_fragment_that_only_lends_its_shape_needs_no_value() -> None:
    text = TEXT.replace("o = o * 2.0 + x", 'o = o + x * lm.cast(lm.iota(lm.frag(shape=(64, 64), dtype=lm.f32, form="acc"), 0), lm.f32)')
    assert verify_text(text).verdict == "pass"
