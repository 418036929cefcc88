"""Names that are bound several times in a row: what is said of them is what running the lines leaves."""

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_ir import parse, specialise
from cake_ir.program import For
from cake_verify import verify_text
from cake_verify.analyses import trips
from cake_verify.analyses.count_text import compiled, texts

HEAD = """@cake.schedule(target="sm_90a")
def scan(lm, X: LM.gmem1d[LM.i32, "N"], Y: LM.gmem1d[LM.i32, "T"], T: LM.i32, N: LM.i32, M: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T == lm.cdiv(N, 4))
    lm.assume_values(X, 0, 1000)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
"""
TAIL = """
for k in lm.range(low):
    lm.store(Y, 1, coords=(t.t,))
"""


def schedule(lines: str, tail: str = TAIL) -> str:
    return HEAD + textwrap.indent(lines + tail, " " * 12)


def bound_of(lines: str):
    """The bound of the last loop as a function of N and M, or the name itself where it is not said."""
    made = specialise(parse(schedule(lines)).schedules[0])
    assert made.program is not None, made.faults
    loop = [x for x in trips.loops(made.program) if isinstance(x.stmt, For) and x.stmt.var.startswith("k")][-1]
    if any(n.op == "var" for n in loop.hi.parts()):
        return None
    (text,) = texts(made.program, [[loop.hi]])
    assert text is not None
    return compiled([text[0]])[0]


def value(lines: str, n: int, m: int) -> int:
    """What Python makes of the same lines."""
    scope = {"N": n, "M": m, "min": min, "max": max}
    exec(lines.replace("lm.static_range", "range").replace("lm.range", "range").replace("lm.", ""), {}, scope)
    return scope["low"]


NUMBERS = st.sampled_from(["N", "M", "0", "7", "i + M", "N - i", "2 * M"])
STEPS = st.one_of(
    st.builds("low = lm.{}(low, {})".format, st.sampled_from(["min", "max"]), NUMBERS),
    st.builds("low = low {} {}".format, st.sampled_from(["+", "-"]), NUMBERS),
    st.builds("if {} < {}:\n    low = lm.{}(low, {})".format, NUMBERS, NUMBERS, st.sampled_from(["min", "max"]), NUMBERS),
    st.builds("if {} < {}:\n    low = low + {}\nelse:\n    low = {}".format, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    st.builds("other = {}\nlow = low + other".format, NUMBERS),
)
ROUNDS = st.builds(lambda n, body: f"for i in lm.static_range({n}):\n" + textwrap.indent("\n".join(body), "    "), st.integers(1, 5), st.lists(STEPS, min_size=1, max_size=2))
LINES = st.lists(st.one_of(STEPS.map(lambda s: s.replace("i + M", "3 + M").replace("N - i", "N - 2")), ROUNDS), min_size=1, max_size=3)


@given(LINES, NUMBERS.filter(lambda x: "i" not in x), st.integers(1, 40), st.integers(0, 40))
@settings(max_examples=120, deadline=None)
def test_a_name_bound_in_a_row_stands_for_what_running_the_lines_leaves(steps, start, n, m):
    lines = "\n".join([f"low = {start}", *steps])
    bound = bound_of(lines)
    if bound is not None:
        assert bound({"N": n, "M": m, "tile": {}, "ld": None}) == (value(lines, n, m),)


@pytest.mark.parametrize("lines", [
    "low = N\nfor i in lm.static_range(8):\n    if M + i < N:\n        low = lm.min(low, M * i)",
    "low = 0\nlow = low + M\nif N < 5:\n    low = 2 * N",
    "low = N\nfor i in lm.range(4):\n    low = low // 2 + i",
])  # fmt: skip
def test_bindings_under_conditions_and_in_short_loops_are_said(lines):
    bound = bound_of(lines)
    assert bound is not None
    for n, m in ((1, 0), (9, 3), (20, 30)):
        assert bound({"N": n, "M": m, "tile": {}, "ld": None}) == (value(lines, n, m),)


@pytest.mark.parametrize("lines", [
    "low = N\nfor i in lm.range(N):\n    low = lm.min(low, i)",
    "low = N\nfor i in lm.static_range(17):\n    low = lm.min(low, i)",
    "low = N\nhigh = low\nlow = lm.min(low, high)",
    "low = N\nif low < 7:\n    low = 7",
    "low = N\nif M < 1:\n    low = low + 1\nif M < 2:\n    low = low + 1\nif M < 3:\n    low = low + 1\nif M < 4:\n    low = low + 1",
], ids=["rounds not known", "many rounds", "read in between", "read by its own condition", "four branches"])  # fmt: skip
def test_what_one_expression_cannot_say_keeps_its_name(lines):
    assert bound_of(lines) is None


def test_a_loop_from_the_least_to_the_greatest_of_several_numbers_in_memory_is_decided():
    lines = """low = N
high = 0
for i in lm.static_range(4):
    if t.t * 4 + i < N:
        low = lm.min(low, lm.ld(X, t.t * 4 + i))
        high = lm.max(high, lm.ld(X, t.t * 4 + i))
low = low // 8 * 8"""
    verdict = verify_text(schedule(lines, TAIL.replace("lm.range(low)", "lm.range(lm.cdiv(lm.max(high - low, 0), 8))")))
    assert verdict.verdict == "pass", [d.message for d in verdict.diagnostics]
