"""How text becomes a program: evaluation order, places, folding, options, spans."""

import pytest

from cake_ir import parse, specialise
from cake_ir.printer import print_program
from cake_ir.program import Assign, Expr, For, If, op_of, statements
from cake_ir.types import FragT, PairT, SlotT

HEAD = '''\
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], G: LM.gmem2d[LM.bf16], I: LM.gmem1d[LM.i32], N: LM.i32, *, T=4):
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=4, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=4)
    sched = lm.scheduler(kind="grid", tiles=(N,), names=("m",))
'''


def made(body, decls="", params=None):
    text = HEAD + decls + "    with work:\n" + "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    (template,) = parse(text).schedules
    return specialise(template, params)


def program(body, decls="", params=None):
    result = made(body, decls, params)
    assert result.program is not None, [f"{f.code} {f.message} {f.span}" for f in result.faults]
    return result.program


def faults(body, decls="", params=None):
    return [f.code for f in made(body, decls, params).faults]


def printed(body, decls=""):
    return print_program(program(body, decls)).split("    with work:\n")[1]


# ------------------------------------------------------------------ evaluation order


def test_a_step_inside_a_call_happens_once():
    lines = printed("x = a.load(form='acc') if False else a[lm.step(ring)].load(form='acc')\nlm.store(X, lm.cast(x, lm.f32), coords=(0, 0))")
    assert lines.count("lm.step(ring)") == 1
    assert lines.index("lm.step(ring)") < lines.index(".load(")


def test_looking_at_a_ring_before_stepping_it_on_one_line_keeps_the_order():
    lines = printed("s = lm.step(ring)\nold, new = lm.at(ring), lm.step(ring)\nlm.store(X, old.index + new.index * 0 + 1.0 if False else 1.0, coords=(0, 0))")
    assert lines.index("lm.at(ring)") < lines.rindex("lm.step(ring)")


def test_swapping_two_scalars_swaps_them():
    body = printed("x = N + 1\ny = N + 2\nx, y = y, x\nlm.store(I, x, coords=(y,))")
    kept = body.split("\n")[2:5]
    assert [line.strip() for line in kept] == ["tmp = x", "x = y", "y = tmp"]


def test_swapping_two_fragments_copies_one_of_them():
    p = program("x = lm.load(X, coords=(0, 0), shape=(64, 64), form='acc')\ny = x * 2.0\nx, y = y, x\nlm.store(X, x, coords=(0, 0))\nlm.store(X, y, coords=(0, 0))")
    names = [s.targets[0] for s in statements(p.body[0].body) if isinstance(s, Assign)]
    assert names == ["x", "y", "tmp", "x", "y"]


def test_an_operation_behind_a_run_time_condition_is_refused():
    assert faults("x = lm.ld(I, N) if N < 4 else 0\nlm.store(I, x, coords=(0,))") == ["N065"]
    assert faults("if N > 0 and lm.ld(I, 0) > 0:\n    lm.pdl_wait()") == ["N065"]
    assert faults("if lm.ld(I, 0) > 0 and N > 0:\n    lm.pdl_wait()") == []
    assert faults("x = lm.ld(I, N) if T == 4 else 0\nlm.store(I, x, coords=(0,))") == []


def test_reads_come_out_of_expressions_in_the_order_written():
    p = program("x = lm.ld(I, 0) * 10 + lm.ld(I, 1)\nlm.store(I, x, coords=(0,))")
    first, second = (op for op in p.ops if op.name == "ld")
    assert [op.operands["i"].attrs["value"] for op in (first, second)] == [0, 1]


# ------------------------------------------------------------------ places and types


def test_a_name_of_one_type_is_one_place_and_another_type_makes_another():
    p = program("x = lm.load(X, coords=(0, 0), shape=(64, 64), form='acc')\nx = x * 2.0\nx = lm.cast(x, lm.bf16)\nlm.store(X, lm.cast(x, lm.f32), coords=(0, 0))")
    names = [s.targets[0] for s in statements(p.body[0].body) if isinstance(s, Assign)]
    assert names == ["x", "x", "x_2"]


def test_a_variable_called_like_a_temporary_is_left_alone():
    body = printed("tmp = lm.load(X, coords=(0, 0), shape=(64, 64), form='acc')\ny = tmp\nlm.store(X, tmp, coords=(0, 0))\nlm.store(X, y, coords=(0, 0))")
    assert "y = tmp" in body and "lm.store(X, tmp" in body


def test_a_running_argument_weakens_at_the_loop_head():
    p = program(
        "acc = lm.load(X, coords=(0, 0), shape=(64, 64), form='acc')\n"
        "best = (lm.rowvec(acc, init=lm.inf), lm.rowvec(acc, init=0))\n"
        "for k in lm.range(N):\n    best = lm.argmin(acc, axis=1, base=k * 64, into=best)\n"
        "val, idx = lm.finish(best)\nlm.store(I, idx, coords=(0,))"
    )
    (loop,) = (s for s in p.body[0].body if isinstance(s, For))
    value = op_of(loop.body[0]).operands["value"]
    assert isinstance(value, Expr) and isinstance(value.type, PairT) and value.type.value.partial == "argmin"


def test_a_name_bound_on_one_path_only_is_not_bound():
    assert faults("if N > 0:\n    x = N + 1\nlm.store(I, x, coords=(0,))") == ["N027"]
    assert faults("if N > 0:\n    x = N + 1\nelse:\n    x = N + 2\nlm.store(I, x, coords=(0,))") == []


def test_both_arms_of_a_branch_bind_one_place():
    p = program(
        "x = lm.load(X, coords=(0, 0), shape=(64, 64), form='acc')\nif N > 0:\n    y = x * 2.0\n    x = lm.cast(x, lm.bf16)\n"
        "else:\n    y = x * 3.0\n    x = lm.cast(y, lm.bf16)\nlm.store(X, y + lm.cast(x, lm.f32), coords=(0, 0))"
    )
    (branch,) = (s for s in p.body[0].body if isinstance(s, If))
    assert [s.targets for s in branch.then] == [s.targets for s in branch.orelse] == [("y",), ("x_2",)]


def test_a_type_that_changes_over_a_loop_is_a_fault():
    body = "y = lm.cast(lm.load(X, coords=(0, 0), shape=(64, 64), form='acc'), lm.bf16)\nfor k in lm.range(N):\n    y = lm.cast(y, lm.f32) * 2.0"
    assert faults(body) == ["D013"]


def test_one_fault_does_not_hide_the_next_nor_cause_another():
    assert faults("x = lm.lood(X)\ny = x * 2.0\nlm.store(X, y, coords=(0, 0))\nz = lm.lead(X)") == ["N028", "N028"]


# ------------------------------------------------------------------ compile time


@pytest.mark.parametrize(
    ("text", "value"),
    [("T * 2 + 1", 9), ("2 ** T", 16), ("-T // 3", -2), ("7 % T", 3), ("min(T, 3)", 3), ("sum([i * i for i in range(T)])", 14), ("len((1, 2, 3)[1:])", 2),
     ("lm.cdiv(10, T)", 3), ("5 if T > 3 else 6", 5), ("1 if T == 4 and not T < 2 else 0", 1), ("(1 << T) | 1", 17), ("abs(-T)", 4), ("[1, 2, 3][-1]", 3),
     ("1 if None is None else 0", 1), ("1 if 0 < T < 5 else 0", 1), ("int(T) if False else T", 4)],
)  # fmt: skip
def test_compile_time_values_fold(text, value):
    p = program(f"lm.store(I, {text}, coords=(0,))")
    (op,) = p.ops
    assert op.operands["x"].attrs["value"] == value


@pytest.mark.parametrize("text", ["T / 0", "T // 0", "T % 0", "1 << 100", "2 ** 100", "9 ** 99", "(1, 2)[5]", "range(10, 0, 0)"])
def test_compile_time_slips_are_faults(text):
    assert made(f"lm.store(I, {text}, coords=(0,))").faults[0].code in ("N022", "N044")


def test_parameters_override_defaults_and_keep_their_kind():
    body = "lm.store(I, T, coords=(0,))"
    assert program(body, params={"T": 8}).ops[0].operands["x"].attrs["value"] == 8
    assert faults(body, params={"T": "8"}) == ["N031"]
    assert faults(body, params={"T": True}) == ["N031"]
    assert faults(body, params={"U": 8}) == ["N030"]


def test_a_static_branch_leaves_no_trace():
    p = program("if T > 3:\n    lm.pdl_wait()\nelse:\n    lm.nonsense()")
    assert [op.name for op in p.ops] == ["pdl_wait"]
    assert not any(isinstance(s, If) for s in p.body[0].body)


def test_chained_comparisons_and_elif_keep_their_meaning():
    body = printed("if 0 < N < 9:\n    lm.pdl_wait()\nelif N == 9:\n    lm.pdl_launch()")
    assert "if ((0 < N) and (N < 9)):" in body and "if (N == 9):" in body


# ------------------------------------------------------------------ options, slots, spans


def test_none_is_the_default_of_an_option():
    one = program("lm.store(X, lm.load(X, coords=(0, 0), shape=(64, 64), cache=None, mask=None), coords=(0, 0))")
    two = program("lm.store(X, lm.load(X, coords=(0, 0), shape=(64, 64)), coords=(0, 0))")
    assert print_program(one) == print_program(two)


def test_stage_may_be_written_on_the_view_or_as_an_option():
    one = program("s = lm.step(ring)\na[s].cp_async(G, coords=(0, 0), stage=s)", decls="").ops
    two = program("s = lm.step(ring)\na.cp_async(G, coords=(0, 0), stage=s)").ops
    assert isinstance(one[0].operands["stage"].type, SlotT)
    assert one[0].operands["view"].type == two[0].operands["view"].type


def test_every_node_has_a_span_that_holds_its_text():
    text = HEAD + "    with work:\n        x = lm.load(X, coords=(N + 1, 0), shape=(64, 64), form=\"acc\")\n        lm.store(X, x * 2.0, coords=(0, 0))\n"
    module = parse(text)
    p = specialise(module.schedules[0]).program
    load, _, store = p.ops if len(p.ops) == 3 else (p.ops[0], None, p.ops[1])
    assert module.source.at(load.span).startswith("lm.load(X")
    assert module.source.at(load.spans["form"]) == '"acc"'
    assert module.source.at(load.operands["coords"][0].span) in ("N + 1", "(N + 1, 0)")
    assert module.source.at(store.spans["x"]) == "x * 2.0"


def test_spans_count_characters_behind_wide_ones():
    text = HEAD.replace("lm.smem(65536)", "lm.smem(65536)  # größer €𝄞") + "    with work:\n        lm.störe(X)\n"
    (fault,) = specialise(parse(text).schedules[0]).faults
    assert fault.code == "N028" and fault.span.column == 9


def test_fragment_arrays_are_indexed_by_a_ring():
    p = program("acc = lm.frag(shape=(64, 64), dtype=lm.f32, form='acc', stage=2, init=0.0)\ns = lm.step(ring)\nlm.store(X, acc[s] * 2.0, coords=(0, 0))")
    value = p.ops[-1].operands["x"]
    assert isinstance(value.type, FragT) and value.type.stages == 1
    assert any(e.op == "frag_stage" for e in value.parts())


def test_a_group_shares_one_number():
    body = "acc = lm.frag(shape=(64, 64), dtype=lm.f32, form='acc')\nwith lm.mma_group():\n    lm.mma(acc, a[0], a[1], init=True)\n    lm.mma(acc, a[2], a[3])\nlm.mma(acc, a[0], a[1])"
    groups = [op.attrs.get("group") for op in program(body).ops if op.name == "mma"]
    assert groups[0] == groups[1] is not None and groups[2] is None


def test_exact_division_is_told_from_the_operator():
    body = printed("x = lm.load(X, coords=(0, 0), shape=(64, 64), form='acc')\ny = lm.div(x, 3.0) + x / 3.0\nlm.store(X, y, coords=(0, 0))")
    assert "lm.div(x, 3.0)" in body and "(x / 3.0)" in body


def test_imports_of_the_language_and_a_docstring_are_ignored():
    text = '"""A file."""\nimport cake\nfrom cake import LM, lm\n' + HEAD + "    with work:\n        pass\n"
    module = parse(text)
    assert not module.faults and len(module.schedules) == 1


def test_several_schedules_and_one_plan():
    one = HEAD + "    with work:\n        pass\n"
    module = parse(one + one.replace("def f(", "def g("))
    assert [s.name for s in module.schedules] == ["f", "g"] and module.schedule("g").name == "g" and module.schedule("h") is None
    assert [f.code for f in parse(one + one).faults] == ["N011"]
