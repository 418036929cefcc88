"""Texts that nobody means: each gets a verdict, with a place for what is wrong, in 2 s of processor time and 200 MB."""

import json

import pytest

from cake_verify import verify_text
from cake_verify.rules.examples import COPY, TILE

LINES = """@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem1d[LM.f32, "N"], P: LM.gmem1d[LM.i32], N: LM.i32#):
    lm.launch(grid="tiles")
    lm.assume(N > 0)
    #host
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, 512),), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.r * 512,), shape=(512,), clip=True)
            #role
            lm.store(Y, x, coords=(t.r * 512,), clip=True)
"""


def copying(host: list[str] | None = None, role: list[str] | None = None, parameters: str = "") -> str:
    """A copy of a vector with further declarations and further statements."""
    out = LINES.replace("#):", f"{parameters}):")
    for name, pad, lines in (("host", 4, host or []), ("role", 12, role or [])):
        out = out.replace(f"{' ' * pad}#{name}\n", "".join(f"{' ' * pad}{line}\n" for line in lines))
    return out


def names(first: str, step: str, n: int) -> list[str]:
    return [f"a0 = {first}", *(f"a{i} = {step.replace('#', f'a{i - 1}')}" for i in range(1, n))]


def nested(heads: list[str], leaf: str) -> list[str]:
    return [*("    " * i + head for i, head in enumerate(heads)), "    " * len(heads) + leaf]


LAST = "a1999"
ODD = {
    "two thousand names of names of an argument": copying(names("N", "# + 1", 2000), [f"if {LAST} > 3:", "    x = x + 1.0"]),
    "tiles counted by two thousand names": copying(names("N", "# + 1", 2000)).replace("lm.cdiv(N, 512)", f"lm.cdiv({LAST}, 512)"),
    "two thousand names of products": copying(names("N", "# * 1048575", 2000), [f"if {LAST} > 3:", "    x = x + 1.0"]),
    "two thousand names in a role": copying([], [*names("t.r", "# + 1", 2000), f"for k in lm.range({LAST}):", "    x = x + 1.0", f"lm.store(Y, x, coords=({LAST},), clip=True)"]),
    "places read at places read": copying([], [*names("lm.ld(P, 0)", "lm.ld(P, #)", 1000), "if a999 > 0:", "    x = x + 1.0"]),
    "pairs of pairs": copying([*names("(1, 2)", "(#, #)", 60), "b = a59 == a59"]),
    "pairs of nothing": copying([*names("()", "(#, #)", 60), "b = a59 == a59"]),
    "tuples in a comprehension": copying(["a = (1,) * 4096", "b = [a for i in range(4096)]"]),
    "a thousand remainders": copying([f"lm.assume(N % {i + 1} == 0)" for i in range(1000)]),
    "a thousand scalars that follow from each other": copying([f"lm.assume(A{i + 1} == A{i} * 2)" for i in range(999)], ["if A999 > 8:", "    x = x + 1.0"], "".join(f", A{i}: LM.i32" for i in range(1000))),
    "a thousand views of the same bytes": copying(["pool = lm.smem(65536)", *(f"v{i} = pool.view(offset={16 * (i % 7)}, shape=(512,), dtype=lm.f32)" for i in range(1000))], [f"v{i}.store(x)" for i in range(1000)]),
    "branches ninety deep": copying([], nested([f"if t.r > {i}:" for i in range(90)], "x = x + 1.0")),
    "a thousand arms": copying([], ["if N == 0:", "    x = x + 1.0", *(line for i in range(1, 1000) for line in (f"elif N == {i}:", f"    x = x + {i}.0"))]),
    "a sum of 170": copying([], ["for k in lm.range(" + " + ".join(["N"] * 170) + "):", "    x = x + 1.0"]),
    "a product of 170": copying([], ["if " + " * ".join(["N"] * 170) + " > 0:", "    x = x + 1.0"]),
    "a choice within choices": copying([], ["x = " + "lm.where(lm.iota(x, axis=0) < 3, x, " * 50 + "x" + ")" * 50]),
    "a running product": copying([], ["q = 1", "for i in lm.range(100000):", "    q = q * 4611686018427387904", "lm.store(Y, x, coords=(q,), clip=True)"]),
    "a loop without end": copying([], ["for i in lm.range(2**62):", "    x = x + 1.0"]),
    "a ring of 10**9 slots": copying(["ring = lm.pipeline(stages=10**9)"]),
    "five hundred launches": COPY + "\n@cake.plan()\ndef many(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):\n" + "    lm.run(copy, X=X, Y=Y)\n" * 500,
    "a workspace of names of names": COPY + "\n@cake.plan()\ndef many(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32], N: LM.i32):\n"
    + "".join(f"    {line}\n" for line in [*names("N", "# * #", 40), "z = lm.workspace(shape=(a39,), dtype=lm.f32)", "lm.run(copy, X=X, Y=z)", "lm.run(copy, X=z, Y=Y)"]),
    "letters of other scripts": copying(["\u043c = 1"]),
    "brackets": "(" * 200_000,
    "a line of signs": copying(["a = " + "-" * 5000 + "1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_a_text_that_nobody_means_gets_a_verdict_soon(bounded, name):
    verify_text(TILE)  # rules are imported once a process
    with bounded():
        verdict = verify_text(ODD[name])
        json.dumps(verdict.to_json(limit=None))
    assert not [d.facts for d in verdict.diagnostics if d.code == "N999"]
    assert verdict.verdict == "pass" or all(1 <= d.span.line <= len(verdict.lines) + 1 for d in verdict.diagnostics)
    assert verdict.verdict == "pass" or verdict.diagnostics
