"""Q017: who waits for the shares of other tiles waits for all of them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import stated
from cake_ir.fault import Fault
from cake_ir.program import For, If, Program
from cake_verify.analyses import edits
from cake_verify.analyses.links import numbered, raised, tiles_along
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

YIELDS = True

_SHARES = """
@cake.schedule(target=("sm_80", "sm_90a"))
def shares(lm, X: LM.gmem3d[LM.f32, "P", "G", 512], PART: LM.gmem3d[LM.f32, "P", "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], FLAGS: LM.gmem1d[LM.i32, "W"].zeroed,
           P: LM.i32, G: LM.i32, W: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(W == P * G and P > 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G, P), names=("g", "p"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.g, t.p), shape=(512,))
            if t.p < P - 1:
                lm.store(PART, x, coords=(0, t.g, t.p))
                lm.signal(FLAGS, t.p * G + t.g, 1)
            else:
                for q in lm.range(P - 1):
                    lm.spin(FLAGS, q * G + t.g, 1)
                    x = x + lm.load(PART, coords=(0, t.g, q), shape=(512,))
                lm.store(Y, x, coords=(0, t.g))
"""

PAGE = Page(
    code="Q017",
    title="a share that nobody waits for",
    statement="A loop that waits, tile by tile, for what the tiles along an axis have left has as many rounds as tiles raise their words; who begins behind the first round of a sum waits for whoever did that.",
    why="The share of a tile whose word nobody waits for is not added: every wait ends, and the sum lacks a part.",
    failing=edit(_SHARES, ("lm.range(P - 1)", "lm.range(P - 2)")),
    passing=_SHARES,
    limits="Decided where one signal raises the words, under one condition that compares the tile's field with an end or under none, and both ends differ by a number. A wait for a word that nobody raises is S041. "
    "A condition around a wait is read where it compares the start of a loop of the role, `lm.max(.., 0)`, with a number.",
)


def check(program: Program) -> Iterator[Fault]:
    for spin in sites(program).of("spin"):
        fault = _begun(program, spin)
        if fault is not None:
            yield fault
            return
        signals = [s for s in sites(program).of("signal") if s.op.attrs["flags"] == spin.op.attrs["flags"]]
        for loop, field in numbered(program, spin, signals[0]) if len(signals) == 1 else ():
            if any(isinstance(p, If) for p in spin.path[spin.path.index(loop) :]):
                continue
            fault = _ends(program, spin, signals[0], loop, field)
            if fault is not None:
                yield fault
                return


def _ends(program: Program, spin: Site, signal: Site, loop: For, field: str) -> Fault | None:
    """A loop that begins behind the first word, or ends before the last."""
    end = raised(program, signal, field)
    if end is None or loop.lo is None or loop.hi is None:
        return None
    guard, count = next((p for p in signal.path if isinstance(p, If)), None), tiles_along(program, signal, field)
    if guard is not None and guard in spin.path and count is not None and end[1] == count[1] and end[0] >= count[0]:
        return None  # all of them raise it, so that nobody comes to the other arm (Q008)
    resolve = resolver_of(program, spin.role.name)
    first, last = linear(resolve(loop.lo)), linear(resolve(loop.hi))
    late = first[0] if not first[1] else 0
    short = end[0] - last[0] if end[1] == last[1] else 0
    if late <= 0 and short <= 0:
        return None
    if any(s is not spin and s.op.attrs["flags"] == spin.op.attrs["flags"] and s.role is spin.role and loop not in s.loops for s in sites(program).of("spin")):
        return None  # a first or last round by itself waits for the others
    flags, var = str(spin.op.attrs["flags"]), written(loop.var)
    which = f"the first {late}" if late > 0 else f"the last {short}"
    until = f"where `{spoken(guard.cond)}` is {'true' if signal.arms[0] else 'false'}" if guard is not None else "in every tile"
    message = f"the rounds of `{var}` leave out {which} of the words of `{flags}` that tiles raise along `{field}`: nobody waits for those, nor reads what stands behind them"
    related = ((signal.op.span, f"raised here, {until}"), (spin.op.span, "waited for here"))
    return Fault("Q017", message, loop.head, related, "wait for as many as are raised", (), {"role": spin.role.name, "flags": flags, "field": field})


def _begun(program: Program, spin: Site) -> Fault | None:
    """A wait that is left out where the loop of the own share has begun behind its first round."""
    resolve = resolver_of(program, spin.role.name)
    for branch, arm in spin.branches():
        if not arm:
            continue
        for cond in stated(resolve(branch.cond)):
            start, number = cond.args if len(cond.args) == 2 else (cond, cond)
            least = next((a.attrs["value"] for a in start.args if a.op == "const"), None) if start.op == "max" else None
            value = number.attrs["value"] if number.op == "const" else None
            if not isinstance(least, int) or not isinstance(value, int) or cond.op not in ("gt", "ge"):
                continue
            first = value + (cond.op == "gt")
            text = canonical(start)
            loop = next((x for s in sites(program).of_role(spin.role.name) for x in s.loops if x.lo is not None and canonical(resolve(x.lo)) == text), None)
            if first > least + 1 and loop is not None and loop.lo is not None:
                name = spoken(loop.lo)
                message = f"where `{name}` is {least + 1}, the round before it is somebody else's, and `{spoken(branch.cond)}` leaves out the wait for it"
                fixes = (edits.replace(branch.cond.span, f"{name} > {least}"),) if branch.cond.span.line else ()
                return Fault("Q017", message, branch.cond.span, ((loop.head, "the own rounds begin here"), (spin.op.span, "waited for here")), f"wait wherever `{name}` is more than {least}", fixes,
                             {"role": spin.role.name, "flags": str(spin.op.attrs["flags"])})  # fmt: skip
    return None
