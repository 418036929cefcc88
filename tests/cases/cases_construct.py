"""Reported cases of the construct gate."""

from __future__ import annotations

from reported import Bad, Case, Good, edit

SKELETON = '''
@cake.schedule(target="sm_90a")
def f(lm, A: LM.tma2d[LM.bf16], F: LM.gmem1d[LM.i32].const, Y: LM.gmem2d[LM.bf16], N: LM.i32):
    pool = lm.smem(16384)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    with load:
        for i in lm.range(lm.ld(F, 0)):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(0, 64 * i), stage=s, barrier=full)
    with work:
        for i in lm.range(lm.ld(F, 0)):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = a[s].load(form="vec")
            lm.arrive(empty, stage=s)
            lm.store(Y, x, coords=(0, 64 * i))
'''
"""A pipelined loop whose trip count comes from memory."""

WHILE = edit(SKELETON, ("        for i in lm.range(lm.ld(F, 0)):\n            s = lm.step(ring)\n            lm.wait(empty", "        while lm.ld(F, 0) > 0:\n            s = lm.step(ring)\n            lm.wait(empty"))
NESTED = edit(SKELETON, ("    with work:\n", "        with work:\n            pass\n    with work:\n"))

REGISTERS = '''
@cake.schedule(target="sm_90a")
def f(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    work = lm.role(warps=range(0, 4))
    with work:
        acc = lm.frag(shape=(64, 32), dtype=lm.f32, form="acc", init=0.0)
        a = lm.load(A, coords=(0, 0), shape=(64, 16), form="a", like=acc)
        b = lm.load(B, coords=(0, 0), shape=(32, 16), form="b", like=acc)
        lm.mma(acc, a, b)
        lm.store(C, acc, coords=(0, 0))
'''
"""A matrix product whose operands come from global memory straight into registers, in the forms that the instruction reads."""

UNTYPED = edit(REGISTERS, ('shape=(32, 16), form="b", like=acc)', 'shape=(32, 16))'))

RACE = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    pool = lm.smem(512)
    x = pool.view(offset=0, shape=(128,), dtype=lm.f32)
    w0 = lm.role(warps=[0])
    w1 = lm.role(warps=[1])
    both = lm.named_barrier([w0, w1])
    with w0:
        x.store(lm.load(X, coords=(0,), shape=(128,)))
        lm.sync(both)
    with w1:
        lm.sync(both)
        lm.store(Y, x.load(form="vec"), coords=(0,))
'''
UNORDERED = edit(RACE, ("    both = lm.named_barrier([w0, w1])\n", ""), ("        lm.sync(both)\n    with w1", "    with w1"), ("        lm.sync(both)\n", ""))

ALIAS = '''
@cake.schedule(target="sm_120a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], Z: LM.gmem2d[LM.bf16], L0: LM.gmem2d[LM.bf16]):
    pool = lm.smem(32768)
    h = pool.view(offset=0, shape=(64, 128), dtype=lm.f32)
    l = pool.view(offset=0, shape=(64, 128), dtype=lm.bf16)
    a = lm.role(warps=range(0, 4))
    b = lm.role(warps=range(4, 8))
    own = lm.named_barrier(a)
    theirs = lm.named_barrier(b)
    bar0 = lm.named_barrier([a, b])
    bar1 = lm.named_barrier([a, b])
    with a:
        h.store(lm.load(X, coords=(0, 0), shape=(64, 128)))
        lm.sync(own)
        lm.sync(bar0)
        lm.store(Y, h.load(form="acc"), coords=(0, 0))
        lm.sync(bar1)
    with b:
        lm.sync(bar0)
        lm.sync(bar1)
        l.store(lm.load(L0, coords=(0, 0), shape=(64, 128)))
        lm.sync(theirs)
        lm.store(Z, l.load(form="acc"), coords=(0, 0))
'''
"""A state buffer is dead after the second meeting; another matrix takes its bytes."""

EARLY = edit(ALIAS, ("        lm.sync(bar1)\n        l.store(lm.load(L0, coords=(0, 0), shape=(64, 128)))\n", "        l.store(lm.load(L0, coords=(0, 0), shape=(64, 128)))\n        lm.sync(bar1)\n"))

SHORT = edit(SKELETON, ("F: LM.gmem1d[LM.i32].const, Y: LM.gmem2d[LM.bf16], N: LM.i32", "Y: LM.gmem2d[LM.bf16]")).replace("lm.ld(F, 0)", "64")
LONG = SHORT.replace("lm.range(64)", "lm.range(2**31 - 1)").replace("(0, 64 * i)", "(0, 0)").replace("stages=2", "stages=8").replace("stage=2", "stage=8").replace("16384", "65536")
NEST = SHORT.replace("        for i in lm.range(64):\n", "        for j in lm.range(10000):\n          for i in lm.range(10000):\n")
ANY_COUNT = SHORT.replace("Y: LM.gmem2d[LM.bf16]", "Y: LM.gmem2d[LM.bf16], N: LM.i32").replace("lm.range(64)", "lm.range(N)")
TOO_LONG = SHORT.replace("lm.range(64)", "lm.range(2**31)", 1)
ENDLESS = SHORT.replace("lm.range(64)", "lm.static_range(2**31 - 1)", 1)


CASES = (
    Case(
        "C001", "construct", "triton-lang/triton#9728, tile-ai/tilelang#2548",
        "a `while` around a pipelined loop, an MMA operand from memory in no operand form, a role inside a role",
        "a loop over a count read from memory, operands loaded in forms `a` and `b`, roles side by side",
        (Bad(WHILE, "N005", "while lm.ld"), Bad(UNTYPED, "D002", "lm.mma(acc, a, b)"), Bad(NESTED, "N063", "        with work:")),
        (Good(SKELETON), Good(REGISTERS)),
        remark="a failure inside Cake itself becomes one N999 and leaves the verdict undecided",
    ),
    Case(
        "C003", "construct", "facebookexperimental/triton#1425",
        "loops of 2^31 - 1 iterations with eight slots, and of 10^4 x 10^4; unrolling of 2^31 - 1 rounds; a loop of 2^31", "64 iterations, or as many as an argument says",
        (Bad(ENDLESS, "N020", "lm.static_range"), Bad(TOO_LONG, "N022", "lm.range(2**31)")), (Good(SHORT), Good(ANY_COUNT)), outcome="result",
        remark="counts written as literals are walked up to 30,000 operations and then left undecided, within a second; a count given at launch passes for every value",
    ),
    Case(
        "C005", "construct", "algolocal#67",
        "one warp stores, another loads, nothing orders them", "a named barrier between them",
        (Bad(UNORDERED, "S004", "x.load("),), (Good(RACE),),
        remark="one order of the simulator gives the right numbers, its adversaries do not; verify decides for all orders",
    ),
    Case(
        "C007", "construct", "QwenLM/FlashQLA#21",
        "the second view is written after the first meeting, while the first view is still read", "it is written after the second meeting",
        (Bad(EARLY, "S007", "h.load("),), (Good(ALIAS),),
    ),
)
