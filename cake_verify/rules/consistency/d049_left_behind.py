"""D049: what was summed relative to a maximum goes with it."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import FragT
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.sites import Site, rounds, sites
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import MODELS, places
from cake_verify.rules.consistency.d041_moving_maximum import unscaled
from cake_verify.rules.examples import edit

_FIRST = """
@cake.schedule(target="sm_80")
def exponentials(lm, X: LM.gmem2d[LM.f32, "M", "N"], S: LM.gmem1d[LM.f32, "M"], M: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(M % 64 == 0 and N % 64 == 0 and N > 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(M // 64,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc")
            most = lm.reduce(x, "max", axis=1)
            total = lm.sum(lm.exp(x - most), axis=1)
            for k in lm.range(1, N // 64):
                x = lm.load(X, coords=(k * 64, t.m * 64), shape=(64, 64), form="acc")
                top = lm.max(most, lm.reduce(x, "max", axis=1))
                total = total * lm.exp(most - top) + lm.sum(lm.exp(x - top), axis=1)
                most = top
            lm.store(S, total, coords=(t.m * 64,))
"""

PAGE = Page(
    code="D049",
    title="a sum left behind by its maximum",
    statement="What a block in front of a loop has summed relative to a maximum is brought up to date in the loop that moves the maximum on, before anything reads it behind the loop.",
    why="The first block is often peeled off the loop. If the loop moves the maximum on and not the sum, what is read behind it is the sum of one block, relative to a maximum that nobody has any more.",
    failing=edit(_FIRST, ("                total = total * lm.exp(most - top) + lm.sum(lm.exp(x - top), axis=1)\n", "")),
    passing=_FIRST,
    limits="Decided for sums of exponentials of a difference with the maximum by name, loops whose body takes a maximum with it and keeps that under its name, and what nothing in the loop assigns. "
    "Multiplied by the exponential of another name's value behind the loop it counts as brought up to date there.",
)


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program).keys()
    if "max" not in said or said.isdisjoint(EXPONENTIALS):
        return
    for role in program.roles:
        for loop, inside in rounds(program, role):
            fault = _behind(role, sites(program).of_role(role), loop, inside)
            if fault is not None:
                yield fault
                return


def _behind(role: str, own: tuple[Site, ...], loop: For, inside: tuple[Site, ...]) -> Fault | None:
    moved = _moved(inside)
    if not moved:
        return None
    first, last = inside[0].order, inside[-1].order
    around = inside[0].path[: inside[0].path.index(loop)]
    relative: dict[str, tuple[frozenset[str], Site]] = {}
    for s in own:
        if s.order >= first:
            break
        e = s.op.operands.get("value")
        to = _relative(e, relative) if isinstance(e, Expr) and s.path == around else frozenset()
        for t in (*s.targets, *places(s)):
            relative.pop(t, None)
            if to:
                relative[t] = to, s
    changed = {t for s in inside for t in (*s.targets, *places(s))} if relative else set[str]()
    for name, (to, start) in relative.items():
        most = min(to.intersection(moved), default="")
        if not most or name in changed:
            continue
        for s in own:
            if s.order <= last or s.path[: len(around)] != around:
                continue
            uses = [e for key, o in s.op.operands.items() if key != "like" for e in (o if isinstance(o, tuple) else (o,)) if isinstance(e, Expr) and _uses(e, name)]
            if any(not _corrected(e, name, most) for e in uses):
                message = f"`{name}` is relative to what `{most}` was in front of this loop, which moves `{most}` on and not `{name}`"
                return Fault("D049", message, s.op.span, ((start.op.span, f"`{name}` is summed here"), (moved[most].op.span, f"`{most}` moves here")), f"bring `{name}` up to date in the loop, `{name} = {name} * lm.exp(.. - ..) + ..`", (),
                             {"name": name, "role": role})  # fmt: skip
            if name in s.targets:
                break
    return None


def _moved(inside: tuple[Site, ...]) -> dict[str, Site]:
    """The maxima that a loop takes something into and keeps under their name."""
    taken: dict[str, set[str]] = {}
    moved: dict[str, Site] = {}
    for s in inside:
        e = s.op.operands.get("value")
        if s.op.name != "compute" or not isinstance(e, Expr) or e.op not in ("max", "var"):
            continue
        of = {str(a.attrs["name"]) for a in e.args if a.op == "var"} if e.op == "max" else taken.get(str(e.attrs["name"]), set()) if e.op == "var" else set()
        for t in s.targets:
            if t in of:
                moved[t] = s
            elif e.op == "max":
                taken[t] = of
    return moved


def _relative(e: Expr, known: dict[str, tuple[frozenset[str], Site]]) -> frozenset[str]:
    """The names less which a sum's exponentials are."""
    if e.op == "var":
        return known[str(e.attrs["name"])][0] if str(e.attrs["name"]) in known else frozenset()
    if e.op in EXPONENTIALS:
        x = unscaled(e.args[0])
        by = unscaled(x.args[1]) if x.op == "sub" else x
        return frozenset({str(by.attrs["name"])}) if x.op == "sub" and by.op == "var" and isinstance(by.type, FragT) else frozenset()
    if e.op in ("reduce", "sum", "finish", "cast", "add"):
        return frozenset().union(*(_relative(a, known) for a in e.args))
    return frozenset()


def _uses(e: Expr, name: str) -> bool:
    """Whether an expression reads a name, for more than its shape."""
    return (e.op == "var" and e.attrs["name"] == name) or any(a.op == "var" and a.attrs["name"] == name for n in e.parts() if n.op not in MODELS for a in n.args)


def _corrected(e: Expr, name: str, most: str) -> bool:
    """Whether an expression brings a sum up to date itself, by the exponential of something else than the maximum that has moved."""
    for n in e.parts():
        if n.op == "mul" and any(a.op == "var" and a.attrs["name"] == name for a in n.args):
            factor = next((a for a in n.args if a.op in EXPONENTIALS), None)
            x = unscaled(factor.args[0]) if factor is not None else None
            return x is not None and x.op == "sub" and not _uses(x.args[0], most)
    return False
