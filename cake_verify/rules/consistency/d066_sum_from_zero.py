"""D066: a tile that is summed up starts from zero."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import places
from cake_verify.rules.examples import edit

_SUMS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(N // 256):
                total = total + lm.exp(lm.load(X, coords=(i * 256, t.r), shape=(256,)))
            lm.store(Y, lm.sum(total, axis=0), coords=(t.r,))
'''

PAGE = Page(
    code="D066",
    title="a sum over a tile that starts from a number",
    statement="A tile that a loop adds to, and whose elements are then added up, starts from zero.",
    why="What each element starts with is in the sum once an element: 256 elements that start from 1 make it 256 too large.",
    failing=edit(_SUMS, ("init=0.0", "init=1.0")),
    passing=_SUMS,
    limits="Decided for tiles that nothing but additions to themselves changes. A row or column vector may start from what belongs to its row, and so may a tile that is stored.",
)


def check(program: Program) -> Iterator[Fault]:
    for n in mentions(program).get("frag", ()):
        init = n.attrs.get("init")
        if isinstance(init, (int, float)) and init and isfinite(init):
            break
    else:
        return  # no tile starts from a number but zero
    found = sites(program)
    for (role, name), bound in found.results.items():
        if len(bound) < 2:
            continue
        began = bound[0]
        start = began.op.operands.get("value")
        if not isinstance(start, Expr) or start.op != "frag" or not isinstance(start.type, FragT) or (role, name) in found.bindings:
            continue
        init = start.attrs.get("init")
        if not isinstance(init, (int, float)) or not init or not isfinite(init) or not all(_adds(b, name) for b in bound[1:]):
            continue
        after = [s for s in found.of_role(role) if s.order > began.order and s.op is not began.op]
        if any(name in places(s) for s in after):
            continue
        use = next((s for s in after if _summed(s, name)), None)
        if use is not None and not any(_kept(s, name) for s in after):
            count = start.type.rows * start.type.cols
            message = f"`{written(name)}` starts from {init} in each of its {count} elements, and their sum counts that, too"
            yield Fault("D066", message, began.op.span, ((use.op.span, "added up here"),), "start from zero, and add the number to the sum", (), {"role": role, "name": name})


def _adds(b: Site, name: str) -> bool:
    """Whether an assignment adds something to what a name holds."""
    e = b.op.operands.get("value")
    if not isinstance(e, Expr) or e.op not in ("add", "fma"):
        return False
    terms = e.args if e.op == "add" else e.args[2:]
    own = [a for a in terms if a.op == "var" and a.attrs["name"] == name]
    return len(own) == 1 and sum(n.op == "var" and n.attrs["name"] == name for n in e.parts()) == 1


def _summed(s: Site, name: str) -> bool:
    """Whether an operation adds up the elements of a tile."""
    x = s.op.operands.get("x")
    if s.op.name == "reduce_across":
        return s.op.attrs.get("op") == "add" and isinstance(x, Expr) and x.op == "var" and x.attrs["name"] == name
    return any(n.op == "sum" or (n.op == "reduce" and n.attrs.get("op") == "add") for e in s.op.operands.values() if isinstance(e, Expr) for n in e.parts() if n.args and n.args[0].op == "var" and n.args[0].attrs["name"] == name)


def _kept(s: Site, name: str) -> bool:
    """Whether an operation uses a tile for something else than its sum: as it is it may start from anything."""
    if _summed(s, name) or _adds(s, name):
        return False
    operands = (e for key, o in s.op.operands.items() if key != "like" for e in (o if isinstance(o, tuple) else (o,)) if isinstance(e, Expr))
    return any(n.op == "var" and n.attrs["name"] == name for e in operands for n in e.parts())
