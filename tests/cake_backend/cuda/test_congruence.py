"""Divisors that lowering knows divide the value in every launch."""

from __future__ import annotations

import pytest
from corpus import program
from hypothesis import given
from hypothesis import strategies as st

from cake_backend.cuda.congruence import known_divisor
from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower
from cake_ir.program import Expr

TEXT = """
@cake.schedule(target="sm_80")
def f(lm, Y: LM.gmem1d[LM.f32, "N"], N: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 16 == 0)
    work = lm.role(warps=[0])
    with work:
        pass
"""
PROGRAM = program(TEXT, {})


def _number(v: int) -> Expr:
    return Expr("const", (), {"value": v})


_LEAVES = st.one_of(st.integers(0, 96).map(_number), st.sampled_from("NK").map(lambda n: Expr("param", (), {"name": n})))
_POSITIVE = st.integers(1, 12).map(_number)
SUMS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(("add", "sub", "mul", "min", "max")), inner, inner).map(lambda x: Expr(x[0], x[1:], {})),
        st.tuples(st.sampled_from(("floordiv", "mod")), inner, _POSITIVE).map(lambda x: Expr(x[0], x[1:], {})),
    ),
    max_leaves=8,
)


def _value(e: Expr, args: dict[str, int]) -> int:
    if e.op == "const":
        return int(e.attrs["value"])  # type: ignore[call-overload]  # made above
    if e.op == "param":
        return args[str(e.attrs["name"])]
    a, b = (_value(x, args) for x in e.args)
    return {"add": a + b, "sub": a - b, "mul": a * b, "min": min(a, b), "max": max(a, b), "floordiv": a // b if b else 0, "mod": a % b if b else 0}[e.op]


@given(SUMS, st.integers(0, 40), st.integers(0, 700))
def test_what_is_known_divides_every_value(e: Expr, n: int, k: int) -> None:
    divisor, value = known_divisor(PROGRAM, e), _value(e, {"N": 16 * n, "K": k})
    assert value == 0 if divisor == 0 else value % divisor == 0


def test_half_of_a_multiple_of_64_is_a_multiple_of_32() -> None:
    product = Expr("mul", (Expr("param", (), {"name": "K"}), _number(64)), {})
    assert known_divisor(PROGRAM, Expr("floordiv", (product, _number(2)), {})) == 32
    assert known_divisor(PROGRAM, Expr("floordiv", (product, _number(3)), {})) == 1


def test_a_name_of_the_role_divides_as_what_it_is_bound_to() -> None:
    """A copy of 16 bytes starts at a name for a multiple of the tile, and so does a wide load."""
    text = """
@cake.schedule(target="sm_80")
def named(lm, X: LM.gmem2d[LM.f32, "M", "N"], Y: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0)
    pool = lm.smem(1024)
    row = pool.view(offset=0, shape=(1, 256), dtype=lm.f32)
    work = lm.role(warps=range(0, 2))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(N // 256, M), names=("n", "m"))
    with work:
        for t in lm.tiles(sched):
            first = START
            row.cp_async(X, coords=(first, t.m))
            lm.cp_commit()
            y = lm.load(X, coords=(first, t.m), shape=(1, 256), form="vec")
            lm.cp_wait(pending=0)
            lm.sync(own)
            lm.store(Y, y + row.load(form="vec"), coords=(first, t.m))
"""
    code = lower(program(text.replace("START", "t.n * 256"), {})).text
    assert "cp.async.cg.shared.global" in code and "ld.global.v4" in code
    with pytest.raises(NotLowered, match="16-byte chunks"):
        lower(program(text.replace("START", "t.n * 256 + t.m"), {}))
