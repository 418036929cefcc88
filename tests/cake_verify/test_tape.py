"""Tapes give what reading an expression node by node gives, before and after they are compiled."""

import itertools

import pytest

from cake_ir import parse, specialise
from cake_ir.program import Expr, Program
from cake_ir.types import I32
from cake_verify.analyses.positions import Position
from cake_verify.analyses.scalar_operations import BINARY, apply
from cake_verify.analyses.tape import OFTEN, Tape, evaluate, plain_tape, tape
from cake_verify.rules.examples import TILE


@pytest.fixture(scope="module")
def program() -> Program:
    made = specialise(parse(TILE).schedules[0]).program
    assert made is not None
    return made


def number(v: int) -> Expr:
    return Expr("const", (), {"value": v}, I32)


def param(name: str) -> Expr:
    return Expr("param", (), {"name": name}, I32)


VALUES = (-3, 0, 1, 7)


def read(e: Expr, given: dict[str, int]):
    """The value of an expression, node by node."""
    return e.attrs["value"] if e.op == "const" else given.get(str(e.attrs["name"])) if e.op == "param" else apply(e.op, [read(a, given) for a in e.args])


@pytest.mark.parametrize("op", [*BINARY, "neg", "not", "select"])
def test_every_operation_has_one_value_however_it_is_worked_out(program, op):
    shared = Expr("add", (param("M"), number(2)), {}, I32)
    args = {"neg": (shared,), "not": (shared,), "select": (param("N"), shared, param("M"))}.get(op, (shared, param("N")))
    e = Expr("sub", (Expr(op, args, {}, I32), shared), {}, I32)
    made = plain_tape(program, (e, shared))
    for _ in range(OFTEN):
        for m, n in itertools.product((*VALUES, None), repeat=2):
            given = {k: v for k, v in (("M", m), ("N", n)) if v is not None}
            assert made.given(given) == [evaluate(program, x, given) for x in (e, shared)] == [read(x, given) for x in (e, shared)]
    assert made.direct is not None


def test_a_tape_of_nothing_and_one_of_a_constant_can_be_asked_for_ever(program):
    for exprs, found in (((), []), ((number(4),), [4])):
        made = Tape(exprs, plain=True)
        assert [made.given({}) for _ in range(2 * OFTEN)] == [found] * (2 * OFTEN)


def test_what_depends_on_the_place_is_taken_from_it(program):
    tile, wide = Expr("var", (), {"name": "t"}), Expr("cast", (param("M"),), {}, I32)
    e = Expr("add", (Expr("field", (tile,), {"name": "m"}, I32), Expr("mul", (Expr("role_index", (), {"role": "work"}, I32), Expr("var", (), {"name": "k"}, I32)), {}, I32)), {}, I32)
    at = Position(program, {"M": 5}, {"t": {"m": 3}, "k": 4}, 2)
    for _ in range(2 * OFTEN):
        assert at.values((e, wide, tile)) == [11, 5, None]
    assert at.value(e) == 11 and tape(program, (e,)).run(Position(program, {}, {"t": {"m": 3}}, 2)) == [None]


def test_a_product_that_no_launch_could_mean_is_not_known(program):
    square = param("M")
    for _ in range(40):
        square = Expr("mul", (square, square), {}, I32)
    made = plain_tape(program, (square,))
    for _ in range(2 * OFTEN):
        assert made.given({"M": 3}) == [None]
        assert made.given({"M": 1}) == [1]
