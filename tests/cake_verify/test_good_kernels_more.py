"""More right kernels that rules refused once: maxima that a branch keeps from nothing, caches that grow behind what is read."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d077_no_maximum_yet import PAGE

HEAD, TAIL = PAGE.passing.split("                x = lm.load", 1)[0], "            lm.store(M, m" + PAGE.passing.split("            lm.store(M, m", 1)[1]
ASKED = """                at = (i * 4 + work.index) * 64
                if at < n:
                    x = lm.load(X, coords=(at, 0), shape=(64, 64), form="acc", clip=True)
                    z = lm.where(lm.iota(x, 1, base=at) < n, x, -lm.inf)
                    top = lm.max(m, lm.reduce(z, "max", axis=1))
                    l = l * lm.exp(m - top) + lm.sum(lm.exp(z - top), axis=1)
                    m = top
"""
LOW = """                at = (i * 4 + work.index) * 64
                x = lm.load(X, coords=(at, 0), shape=(64, 64), form="acc", clip=True)
                z = lm.where(lm.iota(x, 1, base=at) < n, x, -1e30)
                top = lm.max(m, lm.reduce(z, "max", axis=1))
                l = l * lm.exp(m - top) + lm.sum(lm.where(lm.iota(x, 1, base=at) < n, lm.exp(z - top), 0.0), axis=1)
                m = top
"""

DECODE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def decode(lm, Q: LM.gmem2d[LM.f32, "B", 128], KNEW: LM.gmem2d[LM.f32, "B", 128], CACHE: LM.gmem3d[LM.f32, "B", "S", 128].inout, LEN: LM.gmem1d[LM.i32, "B"].const, Y: LM.gmem2d[LM.f32, "B", "S"], B: LM.i32, S: LM.i32):
    """Old keys are scored from the cache, the new one from where it comes, and stored."""
    lm.launch(grid="tiles")
    lm.assume_values(LEN, 0, S)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            q = lm.load(Q, coords=(0, t.b), shape=(128,))
            fresh = lm.load(KNEW, coords=(0, t.b), shape=(128,))
            for i in lm.range(n):
                k = lm.load(CACHE, coords=(0, i, t.b), shape=(128,))
                lm.store(Y, lm.sum(q * k, axis=0), coords=(i, t.b))
            lm.store(CACHE, fresh, coords=(0, n, t.b))
            lm.store(Y, lm.sum(q * fresh, axis=0), coords=(n, t.b))
'''

GOOD = {"a branch asks": HEAD + ASKED + TAIL, "a low number": HEAD + LOW + TAIL, "behind what is read": DECODE}


@pytest.mark.parametrize("name", GOOD)
def test_right_kernels_pass(name: str) -> None:
    verdict = verify_text(GOOD[name])
    assert verdict.verdict == "pass", [(d.code, d.message) for d in verdict.diagnostics]


def test_a_branch_on_something_else_asks_nothing() -> None:
    text = HEAD + ASKED.replace("if at < n:", "if N > 64:") + TAIL
    assert [d.code for d in verify_text(text).errors] == ["D077"]


def test_what_is_read_up_to_the_new_row_is_not_decided() -> None:
    assert verify_text(DECODE.replace("lm.range(n)", "lm.range(n + 1)")).verdict != "pass"
