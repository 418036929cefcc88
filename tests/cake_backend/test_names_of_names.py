"""Forty names, each defined by the one before twice: lowering, ranking and simulating read each of them once, or refuse what would be too long."""

import time

import numpy as np
import pytest

from cake_backend.cost.rank import rank
from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.program import Program

TEXT = """@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem1d[LM.f32, "N"], N: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(N > 0)
    #
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(TILES,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.r * 512,), shape=(512,), clip=True)
            for i in lm.range(ROUNDS):
                lm.store(Y, x, coords=(t.r * 512 + OFFSET,), clip=True)
"""
FORMS = ["# + #", "# * #", "lm.min(#, #)", "lm.cdiv(#, 2) + # // 3", "(# << 1) - #"]


def program(form: str, **where: str) -> Program:
    names = ["a0 = N", *(f"a{i} = {form.replace('#', f'a{i - 1}')}" for i in range(1, 40))]
    text = TEXT.replace("#", "\n    ".join([*names, *([where["host"]] if "host" in where else [])]))
    for place, usual in (("TILES", "lm.cdiv(N, 512)"), ("ROUNDS", "1"), ("OFFSET", "0")):
        text = text.replace(place, where.get(place, usual))
    made = specialise(parse(text).schedules[0]).program
    assert made is not None
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", [{"TILES": "lm.cdiv(a39, 512)"}, {"host": "lm.assume(a39 != 5)"}, {"ROUNDS": "lm.min(a39, 2)"}, {"OFFSET": "a39"}], ids=str)
def test_names_of_names_are_lowered_ranked_and_simulated_once(form, where):
    p, started = program(form, **where), time.process_time()
    if "TILES" in where or "host" in where:  # the launcher would evaluate it
        with pytest.raises(NotLowered, match="an expression this long"):
            lower(p)
    else:
        assert len(lower(p).text) < 20_000
    rank([("a", p, None)], {"N": 512})
    result = simulate(p, {"X": np.ones(512, np.float32), "Y": np.ones(512, np.float32)}, {"N": 512}, limit=500)
    assert {f.code for f in result.faults} <= {"X006", "X010"}
    assert time.process_time() - started < 2


def test_a_loop_without_end_is_given_up_by_the_simulator():
    p = program("# + #", ROUNDS="a39")
    result = simulate(p, {"X": np.ones(512, np.float32), "Y": np.ones(512, np.float32)}, {"N": 512}, limit=500)
    assert [f.code for f in result.faults] == ["X010"]


def test_two_thousand_names_of_names_are_no_matter():
    names = "\n    ".join(f"b{i} = {f'b{i - 1}' if i else 'N'} + 1" for i in range(2000))
    text = TEXT.replace("#", names).replace("TILES", "lm.cdiv(b1999, 512)").replace("ROUNDS", "lm.max(b1999, 1)").replace("OFFSET", "0")
    p = specialise(parse(text).schedules[0]).program
    assert p is not None
    assert rank([("a", p, None)], {"N": 512}).predictions["a"].withheld
    assert {f.code for f in simulate(p, {"X": np.ones(512, np.float32), "Y": np.ones(512, np.float32)}, {"N": 512}, limit=500).faults} == {"X010"}
    with pytest.raises(NotLowered, match="an expression this long"):
        lower(p)
