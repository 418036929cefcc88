"""Schedules whose blocks, roles and lanes share tensors in global memory, with an edit that breaks each and what is then said.

Beside the text: what the simulator needs to run it, and the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Broken:
    """An edit, the code that it leads to and a text on the line that the error stands at."""

    what: str
    edits: tuple[tuple[str, str], ...]
    code: str
    at: str


@dataclass(frozen=True)
class Shared:
    """A good schedule, arguments for the simulator with the tensor to look at and what it holds then, and ways to break it."""

    name: str
    text: str
    arrays: Callable[[], Arrays]
    scalars: dict[str, int]
    output: str
    expected: Callable[[Arrays], Any]
    broken: tuple[Broken, ...]
    ctas: int = 3
    params: dict[str, Any] = field(default_factory=dict)


def _rows(n: int) -> Any:
    return np.random.default_rng(1).integers(-9, 9, (n, 512)).astype(np.float32)


CHAIN = '''
@cake.schedule(target="sm_90a")
def chain(lm, X: LM.gmem2d[LM.f32, "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], FLAGS: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.g), shape=(512,))
            if t.g > 0:
                lm.spin(FLAGS, t.g - 1, 1)
                x = x + lm.load(Y, coords=(0, t.g - 1), shape=(512,))
            lm.store(Y, x, coords=(0, t.g))
            lm.signal(FLAGS, t.g, 1)
'''

SEMAPHORE = '''
@cake.schedule(target="sm_90a")
def semaphore(lm, P: LM.gmem3d[LM.f32, "K", "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], TURN: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32, K: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G, K), names=("g", "k"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(P, coords=(0, t.g, t.k), shape=(512,))
            lm.spin(TURN, t.g, t.k)
            if t.k > 0:
                x = x + lm.load(Y, coords=(0, t.g), shape=(512,))
            lm.store(Y, x, coords=(0, t.g))
            lm.signal(TURN, t.g, t.k + 1)
'''
"""Partial sums of one row are added in a fixed order: a word a row says whose turn it is."""

COUNTS = '''
@cake.schedule(target="sm_90a")
def counts(lm, N: LM.gmem1d[LM.i32, "G"], Y: LM.gmem2d[LM.f32, "G", 512], G: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(N, t.g)
            y = lm.load(Y, coords=(0, t.g), shape=(512,))
            lm.store(Y, y * lm.cast(n, lm.f32), coords=(0, t.g))
            lm.sync(cta)
            lm.store(N, n + 1, coords=(t.g,))
'''
"""All lanes read a word, then one of them writes it; a row is updated in place by the lanes that read it."""

HANDED = '''
@cake.schedule(target="sm_90a")
def handed(lm, X: LM.gmem2d[LM.f32, "G", 512], W: LM.gmem2d[LM.f32, "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], G: LM.i32):
    lm.launch(grid="persistent")
    first = lm.role(warps=range(0, 2))
    second = lm.role(warps=range(2, 4))
    cta = lm.named_barrier([first, second])
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with first:
        for t in lm.tiles(sched):
            lm.store(W, lm.load(X, coords=(0, t.g), shape=(512,)) * 2.0, coords=(0, t.g))
            lm.sync(cta)
    with second:
        for t in lm.tiles(sched):
            lm.sync(cta)
            lm.store(Y, lm.load(W, coords=(0, t.g), shape=(512,)) + 1.0, coords=(0, t.g))
'''
"""One role hands rows of a workspace to another."""

COPIED = '''
@cake.schedule(target="sm_90a")
def copied(lm, X: LM.gmem2d[LM.f32, "G", 256], W: LM.gmem2d[LM.f32, "G", 256], Y: LM.gmem2d[LM.f32, "G", 256], G: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(2048)
    out = pool.view(offset=0, shape=(256,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lm.sync(cta)
            out.store(lm.load(X, coords=(0, t.g), shape=(256,)) * 2.0)
            lm.fence_proxy()
            lm.sync(cta)
            out.bulk_store(W, coords=(0, t.g), rows=1)
            lm.store_wait(pending=0, read=False)
            lm.sync(cta)
            lm.store(Y, lm.load(W, coords=(0, t.g), shape=(256,)) + 1.0, coords=(0, t.g))
'''
"""A row leaves through the copy engine and is read again by ordinary loads."""

FENCED = '''
@cake.schedule(target="sm_90a")
def fenced(lm, X: LM.gmem2d[LM.f32, "G", 256], W: LM.gmem2d[LM.f32, "G", 256], Y: LM.gmem2d[LM.f32, "G", 256], G: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(1024)
    row = pool.view(offset=0, shape=(256,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lm.store(W, lm.load(X, coords=(0, t.g), shape=(256,)) * 2.0, coords=(0, t.g))
            lm.fence_proxy()
            lm.sync(cta)
            s = lm.step(ring)
            row.bulk_load(W, offset=t.g * 256, n=256, stage=s, barrier=full)
            lm.wait(full, stage=s)
            lm.store(Y, row.load(form="vec") + 1.0, coords=(0, t.g))
            lm.sync(cta)
'''
"""A row is written by ordinary stores and read again by the copy engine."""

ADDED = '''
@cake.schedule(target="sm_90a")
def added(lm, X: LM.gmem2d[LM.f32, "G", 512], T: LM.gmem2d[LM.f32, 1, 512].zeroed, Y: LM.gmem2d[LM.f32, 1, 512], DONE: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(G <= 32)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lm.atomic(T, lm.load(X, coords=(0, t.g), shape=(1, 512)), coords=(0, 0), order="any")
            lm.signal(DONE, t.g, 1)
            if t.g == 0:
                for i in lm.range(G):
                    lm.spin(DONE, i, 1)
                lm.store(Y, lm.load(T, coords=(0, 0), shape=(1, 512)), coords=(0, 0))
'''
"""Every block adds to one row; when all have said so, the first one reads it. At most 32 blocks, so that all are resident."""

THROTTLED = '''
@cake.schedule(target="sm_90a")
def throttled(lm, X: LM.gmem2d[LM.f32, "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], DONE: LM.gmem1d[LM.i32, 2].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lm.spin(DONE, 1, t.g - 1)
            lm.store(Y, lm.load(X, coords=(0, t.g), shape=(512,)) * 2.0, coords=(0, t.g))
            lm.atomic(DONE, 1, coords=(1,))
'''
"""No block runs more than two tiles ahead of the slowest: a counter says how many are done, and orders nothing."""


def _g(**more: Any) -> Callable[[], Arrays]:
    return lambda: {"X": _rows(6), **{k: (v.copy() if hasattr(v, "copy") else v) for k, v in more.items()}}


def _zeros(n: int, width: int = 512) -> Any:
    return np.zeros((n, width), np.float32)


GOOD = (
    Shared("chain", CHAIN, _g(Y=_zeros(6), FLAGS=np.zeros(6, np.int32)), {"G": 6}, "Y", lambda a: a["X"].cumsum(0), (
        Broken("no spin", (("                lm.spin(FLAGS, t.g - 1, 1)\n", ""),), "S039", "lm.load(Y"),
        Broken("no signal", (("            lm.signal(FLAGS, t.g, 1)\n", ""),), "S041", "lm.spin"),
        Broken("too low", (("lm.signal(FLAGS, t.g, 1)", "lm.signal(FLAGS, t.g, 0)"),), "S041", "lm.spin"),
        Broken("signal before the store", (("            lm.store(Y, x, coords=(0, t.g))\n            lm.signal(FLAGS, t.g, 1)", "            lm.signal(FLAGS, t.g, 1)\n            lm.store(Y, x, coords=(0, t.g))"),),
               "S039", "lm.load(Y"),
        Broken("waits for itself", (("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, t.g, 1)"),), "S041", "lm.spin"),
        Broken("waits for the next tile", (("t.g > 0", "t.g + 1 < G"), ("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, t.g + 1, 1)"), ("coords=(0, t.g - 1)", "coords=(0, t.g + 1)")), "S041", "lm.spin"),
        Broken("the wrong word", (("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, lm.max(t.g - 2, 0), 1)"),), "S039", "lm.load(Y"),
        Broken("one word for two", (("lm.signal(FLAGS, t.g, 1)", "lm.signal(FLAGS, t.g // 2, 1)"), ("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, (t.g - 1) // 2, 1)")), "S039", "lm.load(Y"),
    )),
    Shared("semaphore", SEMAPHORE, lambda: {"P": np.stack([_rows(2), _rows(2) + 3, _rows(2) - 1]), "Y": _zeros(2), "TURN": np.zeros(2, np.int32)}, {"G": 2, "K": 3}, "Y",
           lambda a: a["P"].sum(0), (
        Broken("out of turn", (("            lm.spin(TURN, t.g, t.k)\n", ""),), "S039", "lm.load(Y"),
        Broken("the turn is passed before the store", (("            lm.store(Y, x, coords=(0, t.g))\n            lm.signal(TURN, t.g, t.k + 1)", "            lm.signal(TURN, t.g, t.k + 1)\n            lm.store(Y, x, coords=(0, t.g))"),),
               "S039", "lm.load(Y"),
        Broken("the second part is not added", (("if t.k > 0:", "if t.k > 1:"),), "S028", "lm.store(Y"),
        Broken("the turn is not passed on", (("lm.signal(TURN, t.g, t.k + 1)", "lm.signal(TURN, t.g, t.k)"),), "S041", "lm.spin"),
    )),
    Shared("counts", COUNTS, lambda: {"N": np.arange(6, dtype=np.int32) + 2, "Y": _rows(6)}, {"G": 6}, "Y", lambda a: a["Y"] * a["N"][:, None], (
        Broken("no meeting", (("            lm.sync(cta)\n", ""),), "S039", "lm.store(N"),
    )),
    Shared("handed", HANDED, _g(W=_zeros(6), Y=_zeros(6)), {"G": 6}, "Y", lambda a: a["X"] * 2 + 1, (
        Broken("no meeting", (("    cta = lm.named_barrier([first, second])\n", ""), ("            lm.sync(cta)\n    with second", "    with second"), ("            lm.sync(cta)\n            lm.store(Y", "            lm.store(Y")),
               "S039", "lm.load(W"),
        Broken("the wrong row", (("lm.load(W, coords=(0, t.g)", "lm.load(W, coords=(0, lm.min(t.g + 1, G - 1))"),), "S039", "lm.load(W"),
    )),
    Shared("copied", COPIED, lambda: {"X": _rows(6)[:, :256].copy(), "W": _zeros(6, 256), "Y": _zeros(6, 256)}, {"G": 6}, "Y", lambda a: a["X"] * 2 + 1, (
        Broken("only the source was waited for", (("pending=0, read=False", "pending=0"),), "S039", "lm.load(W"),
        Broken("only the issuer has waited", (("            lm.sync(cta)\n            lm.store(Y", "            lm.store(Y"),), "S039", "lm.load(W"),
    )),
    Shared("fenced", FENCED, lambda: {"X": _rows(6)[:, :256].copy(), "W": _zeros(6, 256), "Y": _zeros(6, 256)}, {"G": 6}, "Y", lambda a: a["X"] * 2 + 1, (
        Broken("no fence", (("            lm.fence_proxy()\n", ""),), "S039", "row.bulk_load"),
        Broken("no meeting", (("            lm.sync(cta)\n            s = ", "            s = "),), "S039", "row.bulk_load"),
    )),
    Shared("throttled", THROTTLED, _g(Y=_zeros(6), DONE=np.zeros(2, np.int32)), {"G": 6}, "Y", lambda a: a["X"] * 2, (
        Broken("waits for its own count", (("lm.spin(DONE, 1, t.g - 1)", "lm.spin(DONE, 1, t.g + 1)"),), "S041", "lm.spin"),
        Broken("counts another word", (("coords=(1,)", "coords=(0,)"),), "S041", "lm.spin"),
        Broken("counts half of them", (("            lm.atomic(DONE, 1, coords=(1,))", "            if t.g % 2 == 0:\n                lm.atomic(DONE, 1, coords=(1,))"),), "S041", "lm.spin"),
        Broken("a maximum that stays low", (("lm.atomic(DONE, 1, coords=(1,))", 'lm.atomic(DONE, t.g // 2, coords=(1,), op="max")'),), "S041", "lm.spin"),
        Broken("reads what was only counted", (("lm.load(X, coords=(0, t.g), shape=(512,)) * 2.0", "lm.load(X, coords=(0, t.g), shape=(512,)) * 2.0 + lm.load(Y, coords=(0, lm.max(t.g - 2, 0)), shape=(512,))"),),
               "S039", "lm.load(X"),
    )),
    Shared("added", ADDED, _g(T=_zeros(1), Y=_zeros(1), DONE=np.zeros(6, np.int32)), {"G": 6}, "Y", lambda a: a["X"].sum(0, keepdims=True), (
        Broken("nobody waits", (("                    lm.spin(DONE, i, 1)\n", "                    pass\n"),), "S039", "lm.load(T"),
        Broken("one word for all", (("lm.signal(DONE, t.g, 1)", "lm.signal(DONE, 0, 1)"), ("lm.spin(DONE, i, 1)", "lm.spin(DONE, 0, 1)")), "S040", "lm.signal"),
        Broken("one is left out", (("lm.range(G)", "lm.range(G - 1)"),), "S039", "lm.load(T"),
        Broken("said before it is done", (("            lm.atomic(T, lm.load(X, coords=(0, t.g), shape=(1, 512)), coords=(0, 0), order=\"any\")\n            lm.signal(DONE, t.g, 1)\n",
                                          "            lm.signal(DONE, t.g, 1)\n            lm.atomic(T, lm.load(X, coords=(0, t.g), shape=(1, 512)), coords=(0, 0), order=\"any\")\n"),), "S039", "lm.load(T"),
    ), ctas=6),
)  # fmt: skip
