"""D040: a running value is brought up to date."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import beside, mentions, words
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, For, Program
from cake_verify.analyses import edits
from cake_verify.analyses.kept_best import Best, bests
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.sliding_window import Standing, standing
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
    statement="A row or column vector that starts as a number in front of a loop and is computed with in it, or behind it, is given another value somewhere, and so is a tile that is reduced, multiplied with, added to memory or sent to another CTA; something is merged into a list. A running maximum does not start as the largest number, nor a minimum as the least, whether `lm.max`, `lm.argmax` or a comparison keeps it. Of names that hold the elements just before those of a loop, which hands some of them on, none stays.",
    why="A maximum that is never kept, or a sum that nothing is added to, is the number that it started with: online softmax then rescales by zero in every round, or divides by it.",
    failing=edit(LARGEST, ("                most = top\n", "")),
    passing=LARGEST,
    limits="Vectors made by `lm.rowvec` or `lm.colvec` under a name that nothing else is assigned to in its role. Copies of such a vector, stores of it and arms of `lm.where` may be meant; scalars are "
    "left alone but for zeros that are added to memory, and tiles that are added to others or stored.",
)

_STARTS = frozenset({"rowvec", "colvec"})
_EXTREMES = {"max": float("inf"), "min": float("-inf")}
"""What no element exceeds, by what keeps the largest or the least."""
MODELS = frozenset({"frag", "rowvec", "colvec", "iota", "in_bounds", "topk_list"})


def check(program: Program) -> Iterator[Fault]:
    yield from (_in_window(x) for x in standing(program))
    yield from _nothing_added(program)
    yield from _never_a_number(program)
    said = mentions(program).keys()
    if not said.isdisjoint(_EXTREMES):
        yield from _at_its_end(program)
    if not said.isdisjoint(("where", "argmin", "argmax")):
        stuck = next((b for b in bests(program) if b.number == _EXTREMES["min" if b.least else "max"]), None)
        if stuck is not None:
            yield _best_at_its_end(stuck)
    if said.isdisjoint(_BEGINS):
        return
    found = sites(program)
    for (role, name), bound in found.results.items():
        began = bound[0]
        start = began.op.operands.get("value")
        kind = _kind(start) if isinstance(start, Expr) else ""
        if not kind or not isinstance(start, Expr):
            continue
        if len(bound) > 1 or (role, name) in found.bindings:
            continue
        after = [s for s in found.of_role(role) if s.order > began.order]
        if any(name in places(s) for s in after):
            continue
        use = next((s for s in after if _behind_a_loop(began, s, after) and (_given(s, name) or (kind != "list" and _left_over(began, s, after, name)) or (kind != "vector" and s.op.name == "reduce_across" and _reduced(s, name)) or any(_computed(e, name) if kind == "vector" else _in_vain(e, name, kind) for e in _operands(s)))), None)
        if use is not None:
            number = start.attrs["init"] if "init" in start.attrs else _offset(start)
            holds = "is the empty list that it started as" if kind == "list" else f"holds {number}, with which it started" if number is not None else "is zero, as it started"
            yield Fault("D040", f"`{name}` never changes: wherever it is read it {holds}", use.op.span, ((began.op.span, "started here, and nothing else is assigned to it"),),
                        f"bring it up to date in the loop, `{name} = ..`, or write the number", (), {"name": name, "role": role})  # fmt: skip


def _nothing_added(program: Program) -> Iterator[Fault]:
    """A number that is zero and added to memory: a count that nothing counts."""
    for s in sites(program).of("atomic"):
        x = s.op.operands.get("x")
        if s.op.attrs.get("op", "add") == "add" and isinstance(x, Expr) and x.op == "const" and x.attrs["value"] == 0:
            yield Fault("D040", f"this adds 0 to `{s.op.attrs.get('tensor') or 'shared memory'}`: what it adds never changes", s.op.span, (), "bring what is added up to date, `n = n + ..`, or leave it out",
                        (), {"role": s.role.name})  # fmt: skip


def _never_a_number(program: Program) -> Iterator[Fault]:
    """Exponentials of a difference with an infinity: a maximum that still is what it started as."""
    if words(program).isdisjoint(("exp", "exp2")):
        return
    for n in (*(n for op in ("exp", "exp2") for n in mentions(program).get(op, ())), *(n for n in beside(program) if n.op in ("exp", "exp2"))):
        x = n.args[0]
        if x.op == "sub" and x.args[1].op == "const" and isinstance(v := x.args[1].attrs["value"], float) and v == -float("inf") and n.span.line:
            yield Fault("D040", "what this subtracts is minus infinity, whatever it is subtracted from: the exponential is never a number", n.span, (), "subtract the maximum that was found, and keep it in every round", (), {})
            return


def _in_window(x: Standing) -> Fault:
    """A name of a window that slides over a tensor, all but this name."""
    message = f"`{written(x.name)}` stays at the element that it held in front of the loop, while the loop hands its neighbours on: `{written(x.handed.targets[0])}` moves with every round"
    hand = f"{written(x.name)} = {written(x.next)}"
    value, fixes = x.handed.op.operands["value"], tuple[Fix, ...]()
    if x.handed.targets[0] == x.next:
        fixes = (edits.before(x.handed.op.span, hand),)
    elif isinstance(value, Expr) and value.attrs.get("name") == x.name:
        fixes = (edits.after(x.handed.op.span, hand),)
    return Fault("D040", message, x.handed.op.span, ((x.load.op.span, "it is loaded here, beside the others"), (x.loop.head, "in this loop")), f"hand it on, too, before its neighbour changes: `{hand}`",
                 fixes, {"name": x.name, "role": x.role})  # fmt: skip


_BEGINS = _STARTS | {"frag", "mul", "topk_list"}
_GIVES = ("send", "atomic", "tma_reduce")


def _kind(start: Expr) -> str:
    """What a place starts as: a vector of one number, a tile of zeros or of another number, or a list of nothing."""
    if start.op in _STARTS:
        return "vector"
    if start.op == "topk_list":
        return "list"
    if _offset(start) is not None:
        return "vector"
    if start.op == "mul":
        return "zeros" if any(a.op == "const" and a.attrs["value"] == 0 for a in start.args) else ""
    init = start.attrs.get("init") if start.op == "frag" else None
    return "" if init is None else "tile" if init else "zeros"


def _offset(start: Expr) -> float | None:
    """The number that a vector of one number and another number make, `lm.rowvec(x, init=0.0) + 1.0`."""
    if start.op not in ("add", "sub") or start.args[0].op not in _STARTS or start.args[1].op != "const":
        return None
    init, more = start.args[0].attrs.get("init"), start.args[1].attrs["value"]
    if not isinstance(init, (int, float)) or not isinstance(more, (int, float)):
        return None
    return init + more if start.op == "add" else init - more


def _given(s: Site, name: str) -> bool:
    """Whether an operation adds a place to memory, or sends it to another CTA: nobody does that with a number."""
    x = s.op.operands.get("x")
    return s.op.name in _GIVES and s.op.attrs.get("op", "add") == "add" and isinstance(x, Expr) and x.op == "var" and x.attrs["name"] == name


def _reduced(s: Site, name: str) -> bool:
    """Whether a reduction over all warps of a role is one of a place."""
    x = s.op.operands.get("x")
    return isinstance(x, Expr) and x.op == "var" and x.attrs["name"] == name


def _left_over(start: Site, use: Site, after: list[Site], name: str) -> bool:
    """Whether a place is stored as it is behind rounds that stand between it and its start: what only clears memory is made where it is stored."""
    x = use.op.operands.get("x")
    while isinstance(x, Expr) and x.op == "cast":
        x = x.args[0]
    if use.op.name != "store" or not isinstance(x, Expr) or x.op != "var" or x.attrs["name"] != name or use.path != start.path:
        return False
    depth = len(start.path)
    return any(len(s.path) > depth and s.path[:depth] == start.path and isinstance(s.path[depth], For) and s.path[depth].kind == "range" for s in after if s.order < use.order)  # type: ignore[union-attr]  # a loop, tested before


def _in_vain(e: Expr, name: str, kind: str) -> bool:
    """Whether an expression reduces a tile that is one number throughout, multiplies by a tile of zeros, or takes entries of a list of nothing."""
    wanted = {"list": ("finish", "list_item"), "zeros": ("reduce", "sum", "mul")}.get(kind, ("reduce", "sum"))
    return any(n.op in wanted and any(a.op == "var" and a.attrs["name"] == name for a in n.args) for n in e.parts())


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


def _best_at_its_end(b: Best) -> Fault:
    """A best kept by comparison that starts at what nothing is better than."""
    sign, kind = ("", "less") if b.least else ("-", "greater")
    return Fault("D040", f"`{written(b.name)}` never changes: it starts at {b.number}, and nothing is {kind}", b.start.op.span, ((b.site.op.span, "compared here"),), f"start at `{sign}lm.inf`", (), {"name": b.name, "role": b.site.role.name})


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
