"""Numbers that a loop hands from one round to the next: values of run time, never the first round's."""

import numpy as np
import pytest

from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.printer import print_program

TEXT = '''\
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32, "R", 128], Y: LM.gmem2d[LM.f32, "R", 128], R: LM.i32, *, H=64):
    lm.launch(grid="persistent")
    pool = lm.smem(4 * 512)
    v = pool.view(offset=0, shape=(128,), dtype=lm.f32, stage=4)
    work = lm.role(warps=range(0, 1))
    ring = lm.pipeline(stages=4)
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",))
    with work:
{body}
'''


def made(body):
    text = TEXT.format(body="\n".join(f"        {line}" for line in body.strip("\n").split("\n")))
    return specialise(parse(text).schedules[0])


def printed(body):
    result = made(body)
    assert result.program is not None, [(f.code, f.message) for f in result.faults]
    again = specialise(parse(print_program(result.program)).schedules[0]).program
    assert again is not None
    assert print_program(again) == print_program(result.program)
    return [line.strip() for line in print_program(result.program).split("    with work:\n")[1].splitlines()]


def faults(body):
    return [(f.code, f.message) for f in made(body).faults]


def ran(body, rows=5):
    program = made(body).program
    assert program is not None
    x = np.arange(rows * 128, dtype=np.float32).reshape(rows, 128)
    y = np.full((rows, 128), np.nan, np.float32)
    result = simulate(program, {"X": x, "Y": y}, {"R": rows}, ctas=1)
    assert result.ok, result.faults
    return x, result.outputs["Y"]


COUNTED = """
n = 0
for t in lm.tiles(sched):
    x = lm.load(X, coords=(0, t.r), shape=(128,))
    if n > 2:
        x = x * 2.0
    lm.store(Y, x + lm.cast(n, lm.f32), coords=(0, t.r))
    n = n + 1
"""


def test_a_number_that_a_loop_counts_up_is_kept_from_round_to_round():
    x, y = ran(COUNTED)
    want = np.stack([row * (2 if i > 2 else 1) + i for i, row in enumerate(x)])
    assert np.array_equal(y, want)


def test_the_count_starts_in_front_of_the_loop():
    lines = printed(COUNTED)
    assert lines[0] == "n = 0"
    assert "if (n > 2):" in lines


def test_a_sum_of_reductions_may_start_from_a_literal():
    body = """
    for t in lm.tiles(sched):
        total = 0
        for i in lm.range(t.r + 1):
            total = total + lm.reduce(lm.load(X, coords=(0, i), shape=(128,)), "add")
        lm.store(Y, lm.load(X, coords=(0, t.r), shape=(128,)) * 0.0 + total, coords=(0, t.r))
    """
    x, y = ran(body.replace("\n    ", "\n"))
    assert np.allclose(y[:, 0], x.sum(1).cumsum())


def test_an_inner_loop_counts_over_the_rounds_of_the_outer_one():
    body = """
n = 0
for t in lm.tiles(sched):
    for i in lm.range(3):
        n = n + 1
    lm.store(Y, lm.load(X, coords=(0, t.r), shape=(128,)) * 0.0 + lm.cast(n, lm.f32), coords=(0, t.r))
"""
    _, y = ran(body)
    assert y[:, 0].tolist() == [3, 6, 9, 12, 15]


def test_a_number_that_each_round_sets_anew_stays_known_at_compile_time():
    lines = printed("""
w = 64
for t in lm.tiles(sched):
    w = 128
    lm.store(Y, lm.load(X, coords=(0, t.r), shape=(w,)), coords=(0, t.r))
""")
    assert "w = 64" not in lines


def test_a_static_loop_that_moves_an_offset_is_written_out():
    lines = printed("""
for t in lm.tiles(sched):
    at = 0
    for i in lm.static_range(2):
        lm.store(Y, lm.load(X, coords=(at, t.r), shape=(H,)), coords=(at, t.r))
        at += H
""")
    assert sum("coords=(64, t.r)" in line for line in lines) == 2  # a load and a store


def test_numbers_that_follow_each_other_are_all_carried():
    body = """
a, b, c = 0, 0, 0
for t in lm.tiles(sched):
    c = b
    b = a
    a = a + 1
    lm.store(Y, lm.load(X, coords=(0, t.r), shape=(128,)) * 0.0 + lm.cast(c, lm.f32), coords=(0, t.r))
"""
    _, y = ran(body)
    assert y[:, 0].tolist() == [0, 0, 1, 2, 3]


def test_a_number_that_a_loop_may_leave_unchanged_has_no_value_behind_it():
    found = faults("""
for t in lm.tiles(sched):
    m = 1
    for i in lm.range(t.r):
        m = 2
    lm.store(Y, lm.load(X, coords=(0, t.r), shape=(128,)) * m, coords=(0, t.r))
""")
    assert found == [("N027", "`m` has one value before the loop and another inside it")]


@pytest.mark.parametrize(
    ("start", "body", "message"),
    [
        ("0", ["v[p].store(x)", "p = lm.step(ring)"], "`p` enters the loop as 0 and leaves an iteration as slot of ring `ring`"),
        ("0.0", ["lm.store(Y, x + p, coords=(0, t.r))", "p = x"], "`p` enters the loop as 0.0 and leaves an iteration as f32 `vec` 1x128"),
        ("0", ["lm.store(Y, x * p, coords=(0, t.r))", "p = True"], "`p` enters the loop as 0 and leaves an iteration as True"),
    ],
)
def test_what_cannot_be_carried_is_refused(start, body, message):
    lines = [f"p = {start}", "for t in lm.tiles(sched):", "    x = lm.load(X, coords=(0, t.r), shape=(128,))", *(f"    {b}" for b in body)]
    found = faults("\n".join(lines))
    assert [c for c, _ in found] == ["D013"]
    assert found[0][1].startswith(message.split(" 1x128")[0])


def test_a_value_of_run_time_keeps_its_type_over_a_loop():
    found = faults("""
n = R // 2
for t in lm.tiles(sched):
    lm.store(Y, lm.load(X, coords=(0, n), shape=(128,)), coords=(0, t.r))
    n = lm.cast(n, lm.f32)
""")
    assert [c for c, _ in found] == ["D013"]


def test_a_name_may_mean_something_else_in_a_loop_that_binds_it_first():
    printed("""
s = R // 2
for t in lm.tiles(sched):
    s = lm.step(ring)
    v[s].store(lm.load(X, coords=(0, t.r), shape=(128,)))
    lm.store(Y, v[s].load(form="vec"), coords=(0, t.r))
""")


def test_a_number_that_differs_between_the_arms_of_a_branch_is_a_value_of_run_time():
    body = """
for t in lm.tiles(sched):
    n = 1
    if t.r > 2:
        n = 2
    if t.r == 1:
        f = 0.5
    else:
        f = 3
    lm.store(Y, lm.load(X, coords=(0, t.r), shape=(128,)) * 0.0 + lm.cast(n, lm.f32) * f, coords=(0, t.r))
"""
    printed(body)
    _, y = ran(body)
    assert y[:, 0].tolist() == [3, 0.5, 3, 6, 6]


def test_a_number_that_a_branch_sets_for_itself_stays_known_at_compile_time():
    lines = printed("""
for t in lm.tiles(sched):
    if t.r > 2:
        w = 64
        lm.store(Y, lm.load(X, coords=(0, t.r), shape=(w,)), coords=(0, t.r))
    else:
        w = 128
    w = 32
    lm.store(Y, lm.load(X, coords=(0, t.r), shape=(w,)), coords=(0, t.r))
""")
    assert not any(line.startswith("w =") for line in lines)


def test_a_count_under_a_condition_is_carried():
    body = """
n, total = 0, 0.0
for t in lm.tiles(sched):
    x = lm.load(X, coords=(0, t.r), shape=(128,))
    if t.r % 2 == 0:
        n += 1
        total = total + lm.reduce(x, "max")
    lm.store(Y, x * 0.0 + lm.cast(n, lm.f32) + total, coords=(0, t.r))
"""
    printed(body)
    x, y = ran(body)
    top = np.cumsum([row.max() if i % 2 == 0 else 0 for i, row in enumerate(x)])
    assert y[:, 0].tolist() == (top + np.array([1, 1, 2, 2, 3])).tolist()


def test_a_name_that_every_round_binds_before_it_reads_it_may_change_its_type():
    body = """
for t in lm.tiles(sched):
    for n in lm.static_range(2):
        for i in lm.static_range(128 // (128, 32)[n]):
            a = lm.load(X, coords=((128, 32)[n] * i, t.r), shape=(1, (128, 32)[n]), form="vec")
            lm.store(Y, a * 2.0, coords=((128, 32)[n] * i, t.r))"""
    wide, narrow = [line for line in printed(body.replace("for n in lm.static_range(2):", "n = 0\n    for u in lm.static_range(2):") + "\n        n = n + 1") if "lm.load" in line]
    assert ("128" in wide, "32" in narrow) == (True, True)


OTHER = """
for t in lm.tiles(sched):
    a = lm.load(X, coords=(0, t.r), shape=(1, 128), form="vec")
    for i in lm.{loop}:
        a = lm.load(X, coords=(32 * i, t.r), shape=(1, 32), form="vec")
        lm.store(Y, a, coords=(32 * i, t.r))
    lm.store(Y, a, coords=(0, t.r))"""


@pytest.mark.parametrize("loop", ["range(4)", "static_range(4)"])
def test_behind_a_loop_that_runs_a_name_is_what_the_last_round_bound(loop):
    names = [line.split(" = ")[0] for line in printed(OTHER.format(loop=loop)) if "lm.load" in line]
    assert len({*names}) == 2
    assert printed(OTHER.format(loop=loop))[-1].startswith(f"lm.store(Y, {names[1]}")


def test_behind_a_loop_that_may_not_run_a_name_of_two_types_is_not_read():
    assert faults(OTHER.format(loop="range(t.r)")) == [("N027", "`a` has one value before the loop and another inside it")]
    assert faults(OTHER.format(loop="range(0)")) == []


PICKED = """
@cake.schedule(target="sm_90a")
def pick(lm, X: LM.gmem2d[LM.f32, "B", 64], cut: LM.gmem1d[LM.f32, "B"], OUT: LM.gmem1d[LM.i32, "B"], SEEN: LM.gmem1d[LM.i32, "B"], B: LM.i32, LAST: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(16)
    scratch = pool.view(offset=0, shape=(2,), dtype=lm.i32)
    work = lm.role(warps=range(0, 2))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            limit = lm.ld(cut, t.b)
            START
            for i in lm.range(2):
                x = lm.load(X, coords=(i * 32, t.b), shape=(32,), form="vec")
                here = lm.reduce(lm.where(x > limit, lm.iota(x, 0, base=i * 32), 99), "min", across=work, scratch=scratch, sync=meet)
                least = lm.min(least, here)
                lm.sync(meet)
            lm.store(OUT, least, coords=(t.b,))
"""


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("least = LAST - 1", 40),
        ("least = LAST", 41),
        ("at = LAST\n            least = at\n            lm.store(SEEN, at, coords=(t.b,))", 41),
        ("least = LAST + 2\n            lm.store(SEEN, least, coords=(t.b,))", 43),
        ("least = lm.ld(SEEN, t.b)", -1),
    ],
)
def test_a_uniform_number_becomes_what_a_reduction_leaves(start, first):
    program = specialise(parse(PICKED.replace("START", start)).schedules[0]).program
    assert program is not None
    text = print_program(program)
    again = specialise(parse(text).schedules[0]).program
    assert again is not None and print_program(again) == text
    x = np.random.default_rng(3).standard_normal((6, 64)).astype(np.float32)
    cut = np.array([1.0, 9.0, 2.0, 9.0, -9.0, 1.5], np.float32)
    result = simulate(program, {"X": x, "cut": cut, "OUT": np.zeros(6, np.int32), "SEEN": np.full(6, -1, np.int32)}, {"B": 6, "LAST": 41}, ctas=2)
    assert result.ok, result.faults
    want = [min([first, *np.flatnonzero(row > c)]) for row, c in zip(x, cut, strict=True)]
    assert result.outputs["OUT"].tolist() == want


def test_a_second_name_that_is_carried_keeps_the_first_ones_start():
    body = PICKED.replace("START", "other = 5\n            least = 7").replace("                least = lm.min", "                other = lm.min(other, least)\n                least = lm.min").replace("OUT, least,", "OUT, least + other,")
    program = specialise(parse(body).schedules[0]).program
    assert program is not None
    ops = [op for s in program.body[0].body[0].body if hasattr(s, "value") and hasattr(op := s.value, "id")]
    assert ops and all(program.ops[op.id] is op for op in ops)


FLAG = """
alive = 1
for t in lm.tiles(sched):
    x = lm.load(X, coords=(0, t.r), shape=(128,))
    if CONDITION:
        if lm.ld(X, 0) > 2.0:
            alive = 0
        lm.store(Y, x, coords=(0, t.r))
"""


def test_an_arm_that_would_have_to_run_first_is_told():
    ((code, message),) = faults(FLAG.replace("lm.ld(X, 0) > 2.0", "t.r > 3").replace("CONDITION", "alive > 1"))
    assert code == "N068" and "`alive` is 1 in every round" in message
    assert faults(FLAG.replace("lm.ld(X, 0) > 2.0", "t.r > 3").replace("CONDITION", "alive > 0")) == []


def test_choices_in_front_of_a_loop_and_first_rounds_are_none():
    clamped = "n = H\nif n > 100:\n    n = 100\n" + COUNTED.strip("\n").replace("n > 2", "n > 2")
    assert faults(clamped) == []
    first = """
for t in lm.tiles(sched):
    x = lm.load(X, coords=(0, t.r), shape=(128,))
    first = True
    for k in lm.static_range(3):
        if first:
            x = x * 2.0
            first = False
    lm.store(Y, x, coords=(0, t.r))
"""
    assert faults(first) == []
