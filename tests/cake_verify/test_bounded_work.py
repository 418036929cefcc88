"""Texts that are large along one axis: each ends soon, in little memory, and says what was not decided and where."""

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cake_verify import Question, verify_many, verify_text
from cake_verify.rules.examples import LOOP, TILE, edit

HEAD = """@cake.schedule(target="sm_90a")
def large(lm, A: LM.tma2d[LM.bf16, "M", "K"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(M > 0 and N > 0 and K > 0 and M % 256 == 0 and N % 256 == 0)
    load = lm.role(warps=[0])
    work = lm.role(warps=range(4, 8))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 64)), names=("m", "n"))
    pool = lm.smem(65536)
    tile = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=4, swizzle="128b")
    ring = lm.pipeline(stages=4)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work])
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="member", primed=True)
"""
FILL = """s = lm.step(ring)
lm.wait(empty, stage=s)
tile.tma_load(A, coords=(0, t.m * 128), barrier=full, stage=s)
"""
USE = """s = lm.step(ring)
lm.wait(full, stage=s)
x = tile[s].load(form="rows")
lm.store(C, lm.cast(x, lm.f32), coords=(t.n * 64, t.m * 128))
lm.arrive(empty, stage=s)
"""


def large(around: list[str], times: int = 1) -> str:
    """Both roles under the same heads of loops and branches, one within the other; `times` repeats all of them."""
    out = HEAD
    for role, body in (("load", FILL), ("work", USE)):
        out += f"    with {role}:\n        for t in lm.tiles(sched):\n"
        for n in range(times):
            for depth, head in enumerate(around):
                out += " " * (12 + 4 * depth) + head.replace("#", str(n)) + ":\n"
            out += "".join(f"{' ' * (12 + 4 * len(around))}{line}\n" for line in body.splitlines())
    return out


LARGE = {
    "one loop of two thousand million": large(["for i in lm.range(2147483647)"]),
    "loops without an operation": large(["for i in lm.range(1000000)"]) + "            for j in lm.range(1000000):\n                q = j + 1\n",
    "fifteen loops of a thousand": large([f"for i{k} in lm.range(1000)" for k in range(15)]),
    "fifteen loops of run-time length": large([f"for i{k} in lm.range(lm.cdiv(K, {64 + k}))" for k in range(15)]),
    "eight thousand unrolled": large(["for i in lm.static_range(64)", "for j in lm.static_range(128)"]),
    "four hundred branches on an argument": large(["if K > # * 64"], 400),
}


GROWN = """
import re, sys
from pathlib import Path
from cake_verify import Question, verify_many
from cake_verify.rules.examples import TILE

def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

verify_many([Question(TILE)])  # rules are imported once a process
before = kilobytes("VmRSS")
verify_many([Question(sys.stdin.read())])
print(1000 * (kilobytes("VmHWM") - before))
"""
"""How much a process grows at most while it verifies what it reads: measured from outside Python's allocator, which counting would slow down fivefold."""


def verified(text: str):
    """The verdict as one of many, and the processor seconds it took."""
    verify_text(TILE)  # rules are imported once a process
    started = time.process_time()
    verdict = verify_many([Question(text)])[0]
    return verdict, time.process_time() - started


@pytest.mark.parametrize("name", LARGE)
def test_a_monstrous_text_is_undecided_soon_and_names_the_place(name):
    verdict, seconds = verified(LARGE[name])
    assert verdict.verdict == "undecided", [d.message for d in verdict.errors]
    (note,) = [d for d in verdict.diagnostics if d.code == "S090"]
    assert note.span.line > len(HEAD.splitlines())
    assert seconds < 2


def test_four_thousand_lines_are_judged_in_time():
    verdict, seconds = verified(large(["for i in lm.range(2)"], 400))
    assert verdict.verdict == "pass" or [d.code for d in verdict.diagnostics if d.code == "S090"], [d.message for d in verdict.errors]
    assert seconds < 2


@pytest.mark.parametrize("text", [LARGE["one loop of two thousand million"], large(["for i in lm.range(2)"], 300)], ids=["events", "lines"])
def test_what_a_large_text_holds_in_memory_is_bounded(text):
    child = subprocess.run([sys.executable, "-c", GROWN], input=text, capture_output=True, text=True, check=True)
    assert int(child.stdout) < 200e6


def test_a_tile_of_four_thousand_elements_read_one_by_one_is_judged_in_time():
    text = (Path(__file__).parents[2] / "bench/verify/corpus/tril_inverse.py").read_text("utf-8")
    started = time.process_time()
    verdict = verify_text(text, params={"BT": 64})
    assert (verdict.verdict, verdict.errors, time.process_time() - started < 2) == ("pass", (), True)


def test_a_fault_among_four_thousand_lines_is_told_in_time():
    text = large(["for i in lm.range(2)"], 400).replace("lm.wait(empty, stage=s)", "lm.wait(empty, stage=s.prev())", 1)
    verdict, seconds = verified(text)
    assert (verdict.verdict, seconds < 2) == ("fail", True)


def test_loops_are_refused_before_nothing_can_run_them():
    (error, *_) = verify_text(large([f"for i{k} in lm.range(2)" for k in range(16)])).errors
    assert (error.code, "16 deep" in error.message) == ("N002", True)
    assert verify_text(large([f"for i{k} in lm.range(1)" for k in range(15)])).verdict == "pass"


def test_two_hundred_variants_are_read_once():
    import cake_verify.many as many

    read, parse = [], many.parse
    many.parse = lambda text, filename: read.append(text) or parse(text, filename)
    try:
        tunable = edit(LOOP, ("K: LM.i32):", "K: LM.i32, *, REGS=232):"), ("regs=232", "regs=REGS"))
        texts = [tunable, tunable.replace("N: LM.i32", "NN: LM.i32").replace("lm.cdiv(N, 128)", "lm.cdiv(NN, 128)")]
        verdicts = verify_many(Question(text, {"REGS": 8 * n}) for text in texts for n in range(1, 101))
    finally:
        many.parse = parse
    assert len(verdicts) == 200
    assert {"pass", "fail"} == {v.verdict for v in verdicts}  # some register counts are not to be had
    assert read == texts


def test_a_verdict_leaves_no_cycles_behind():
    for text in (TILE, LOOP, edit(TILE, ("lm.wait(full, stage=s)", "lm.wait(fool, stage=s)"))):
        verify_text(text)
        gc.collect()
        gc.disable()
        try:
            verify_text(text)
            assert gc.collect() == 0
        finally:
            gc.enable()


DOUBLED = """
@cake.schedule(target="sm_90a")
def doubled(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem1d[LM.f32], P: LM.gmem1d[LM.i32, "G"], N: LM.i32, M: LM.i32, G: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(N > 0)
    lm.assume_values(P, 0, N + 1)
    a0 = N
    #a
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(N, 512),), names=("r",))
    with work:
        for t in lm.tiles(sched):
            b0 = lm.ld(P, 0)
            #b
            x = lm.load(X, coords=(t.r * 512,), shape=(512,), clip=True)
            lm.store(Y, x, coords=(t.r * 512,))
"""
"""Where # stands, names are defined as twice the name before."""


@pytest.mark.parametrize(("name", "used"), [
    ("a", ("    work = lm.role", "    lm.assume(M == a39)\n    work = lm.role")),
    ("a", ("lm.cdiv(N, 512)", "lm.cdiv(a39, 512)")),
    ("b", ("            lm.store(Y, x, coords", "            if b39 >= 0:\n                lm.store(Y, x, coords")),
])  # fmt: skip
def test_names_of_sums_of_names_are_worked_out_once(name, used):
    chain = [f"{name}{i} = {name}{i - 1} + {name}{i - 1}" for i in range(1, 40)]
    text = edit(DOUBLED, used).replace(f"#{name}", f"\n{' ' * (4 if name == 'a' else 12)}".join(chain)).replace("#a", "").replace("#b", "")
    verdict, seconds = verified(text)
    assert (verdict.verdict, seconds < 2) == ("pass", True), [d.message for d in verdict.errors]
