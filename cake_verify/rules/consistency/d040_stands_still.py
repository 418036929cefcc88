"""D040: a running value is brought up to date."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

LARGEST = """
@cake.schedule(target="sm_80")
def exponentials(lm, X: LM.gmem2d[LM.f32, "M", "N"], S: LM.gmem1d[LM.f32, "M"], M: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(M % 64 == 0 and N % 64 == 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(M // 64,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc")
            most = lm.rowvec(x, init=-lm.inf)
            total = lm.rowvec(x, init=0.0)
            for k in lm.range(N // 64):
                x = lm.load(X, coords=(k * 64, t.m * 64), shape=(64, 64), form="acc")
                top = lm.max(most, lm.reduce(x, "max", axis=1))
                total = total * lm.exp(most - top) + lm.sum(lm.exp(x - top), axis=1)
                most = top
            lm.store(S, total, coords=(t.m * 64,))
"""

PAGE = Page(
    code="D040",
    title="a running value that stands still",
    statement="A row or column vector that starts as a number in front of a loop and is computed with in it, or behind it, is given another value somewhere; a running maximum does not start as the largest number, nor a minimum as the least.",
    why="A maximum that is never kept, or a sum that nothing is added to, is the number that it started with: online softmax then rescales by zero in every round, or divides by it.",
    failing=edit(LARGEST, ("                most = top\n", "")),
    passing=LARGEST,
    limits="Vectors made by `lm.rowvec` or `lm.colvec` under a name that nothing else is assigned to in its role. Copies of such a vector, stores of it and arms of `lm.where` may be meant; scalars and "
    "tiles are left alone.",
)

_STARTS = frozenset({"rowvec", "colvec"})
_EXTREMES = {"max": float("inf"), "min": float("-inf")}
"""What no element exceeds, by what keeps the largest or the least."""
MODELS = frozenset({"frag", "rowvec", "colvec", "iota", "in_bounds", "topk_list"})


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if not said.keys().isdisjoint(_EXTREMES):
        yield from _at_its_end(program)
    if _STARTS.isdisjoint(said):
        return
    found = sites(program)
    for (role, name), bound in found.results.items():
        began = next(iter(bound))
        start = began.op.operands.get("value")
        if len(bound) > 1 or not isinstance(start, Expr) or start.op not in _STARTS or (role, name) in found.bindings:
            continue
        after = [s for s in found.of_role(role) if s.order > began.order]
        if any(name in places(s) for s in after):
            continue
        use = next((s for s in after if _behind_a_loop(began, s, after) and (any(_computed(e, name) for e in _operands(s)) or _sent(s, name))), None)
        if use is not None:
            yield Fault("D040", f"`{name}` never changes: wherever it is read it holds {start.attrs['init']}, with which it started", use.op.span, ((began.op.span, "started here, and nothing else is assigned to it"),),
                        f"bring it up to date in the loop, `{name} = ..`, or write the number", (), {"name": name, "role": role})  # fmt: skip


def _at_its_end(program: Program) -> Iterator[Fault]:
    """Running maxima and minima that start at what nothing exceeds."""
    found = sites(program)
    for s in found.of("compute"):
        e = s.op.operands["value"]
        if not isinstance(e, Expr) or e.op not in _EXTREMES or not s.loops or s.loops[-1].kind == "tiles":
            continue
        for name in (str(a.attrs["name"]) for a in e.args if a.op == "var"):
            bound = found.results.get((s.role.name, name), ())
            if (s.role.name, name) in found.bindings or not (name in s.targets or any(_copies(b, s.targets) for b in bound)):
                continue
            starts = [b for b in bound if b.order < s.order and s.loops[-1] not in b.loops]
            start = starts[-1].op.operands.get("value") if starts else None
            number = start.attrs.get("init", start.attrs.get("value")) if isinstance(start, Expr) and start.op in (*_STARTS, "frag", "const") else None
            if number == _EXTREMES[e.op]:
                least = f"{'-' if e.op == 'max' else ''}lm.inf"
                yield Fault("D040", f"`{written(name)}` never changes: it starts at {number}, and `lm.{e.op}` keeps that whatever comes", starts[-1].op.span, ((s.op.span, "kept here"),),
                            f"start at `{least}`", (), {"name": name, "role": s.role.name})  # fmt: skip
                return


def _copies(b: Site, names: tuple[str, ...]) -> bool:
    """Whether an assignment copies one of these names."""
    e = b.op.operands.get("value")
    return isinstance(e, Expr) and e.op == "var" and e.attrs["name"] in names


def _behind_a_loop(start: Site, use: Site, after: list[Site]) -> bool:
    """Whether a loop that begins behind the start lies around the use, or in front of it."""
    own = set(map(id, start.loops))
    if any(id(x) not in own for x in use.loops):
        return True
    return any(isinstance(x, For) and id(x) not in own for s in after if s.order < use.order for x in s.loops)


def _sent(s: Site, name: str) -> bool:
    """Whether an operation sends a name to another CTA, which knows the number as well."""
    x = s.op.operands.get("x")
    return s.op.name == "send" and isinstance(x, Expr) and x.op == "var" and x.attrs["name"] == name


def _operands(s: Site) -> Iterator[Expr]:
    for key, o in s.op.operands.items():
        if key == "like" or (key == "x" and s.op.name != "compute" and isinstance(o, Expr) and o.op == "var"):
            continue  # a model, or what is stored as it is
        yield from (x for x in (o if isinstance(o, tuple) else (o,)) if isinstance(x, Expr))


def _computed(e: Expr, name: str) -> bool:
    """Whether an expression computes with a name: more than copies it, chooses it or takes it for a model."""
    if e.op == "var":
        return False  # a copy, or a place that an operation writes: whoever writes it is asked before
    return any(x.op == "var" and x.attrs["name"] == name for n in e.parts() for i, x in enumerate(n.args) if not (n.op in MODELS or n.op == "pair" or (n.op == "where" and i > 0)))


def places(s: Site) -> tuple[str, ...]:
    """Places that an operation writes without an assignment."""
    acc = s.op.operands.get("acc")
    return (str(acc.attrs["name"]),) if isinstance(acc, Expr) and acc.op == "var" else ()
