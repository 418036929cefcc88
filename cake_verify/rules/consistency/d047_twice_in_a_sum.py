"""D047: a sum takes each of its terms once."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Op, Program
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import FragT, ScalarT, SlotT, TileT
from cake_verify.analyses.sites import Site, rounds, sites
from cake_verify.analyses.trips import canonical, resolver_of, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import places
from cake_verify.rules.examples import edit

_BLOCKS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def add_up(lm, X: LM.gmem2d[LM.f32, "B", "N"], Y: LM.gmem2d[LM.f32, "B", 256], B: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            total = lm.load(X, coords=(0, t.b), shape=(256,), clip=True)
            for i in lm.range(1, lm.cdiv(N, 256)):
                x = lm.load(X, coords=(i * 256, t.b), shape=(256,), clip=True)
                total = total + x
            lm.store(Y, total, coords=(0, t.b))
'''

PAGE = Page(
    code="D047",
    title="a term that a sum takes twice",
    statement="What a running sum starts with is not what the first round of its loop adds, and a reduction that a round adds is not the same in every round.",
    why="The first term is often taken in front of the loop, as the start of the sum: a loop that begins at 0 takes it again. A reduction of what no round changes is added as often as there are rounds.",
    failing=edit(_BLOCKS, ("lm.range(1, lm.cdiv(N, 256))", "lm.range(0, lm.cdiv(N, 256))")),
    passing=_BLOCKS,
    limits="Decided where start and term are the same once the loop's variable has its first value and names are followed: loads of tensors that the launch only reads, and of shared memory in loops without waits, steps and barriers. "
    "Sums under a condition inside the loop are left alone.",
)

_MOVES = frozenset({"wait", "step", "sync", "arrive", "mma_wait", "cp_wait", "spin", "cluster_sync", "store_wait"})
_DEPTH = 12
_REDUCTIONS = frozenset({"sum", "reduce"})


@record(eq=False)
class _Sum:
    """`name = name + term` in the body of a loop, with the role, the path and the place of the assignment, and what may start it in front of the loop."""

    role: str
    name: str
    term: Expr
    loop: For
    span: Span
    starts: tuple[Site, ...]


def check(program: Program) -> Iterator[Fault]:
    found = sites(program)
    if not any(x.kind != "tiles" for loops in found.loops.values() for x in loops):
        return
    for s in _sums(program):
        fault = _begun_with(program, s) or _again(program, s)
        if fault is not None:
            yield fault
            return


def _sums(program: Program) -> Iterator[_Sum]:
    found = sites(program)
    if "add" in mentions(program):
        for s in found.of("compute"):
            value = s.op.operands.get("value")
            if s.loops and s.path[-1] is s.loops[-1] and len(s.targets) == 1 and isinstance(value, Expr) and (term := _term(value, s.targets[0])) is not None and s.loops[-1].kind != "tiles":
                yield _Sum(s.role.name, s.targets[0], term, s.loops[-1], s.op.span, tuple(x for x in found.results[s.role.name, s.targets[0]] if x.order < s.order and x.path == s.path[:-1])[-1:])
    for (role, name), bound in found.bindings.items():  # scalars: loads of one element start them
        starts = found.results.get((role, name), ())
        for b in bound if len(starts) == 1 else ():
            loop = b.path[-1] if b.path else None
            if isinstance(loop, For) and loop.kind != "tiles" and starts[0].path == b.path[:-1] and (term := _term(b.value, name)) is not None:
                yield _Sum(role, name, term, loop, b.value.span, starts)


def _term(value: Expr, name: str) -> Expr | None:
    """What is added to a name."""
    if value.op != "add" or (isinstance(value.type, FragT | ScalarT) and value.type.dtype == "i32"):
        return None
    return next((b for a, b in (value.args, value.args[::-1]) if a.op == "var" and a.attrs["name"] == name), None)


def _begun_with(program: Program, s: _Sum) -> Fault | None:
    """A sum that starts with what its first round adds."""
    loop = s.loop
    value = s.starts[-1].op.operands.get("value") if s.starts else None
    if not s.starts or loop.lo is None or (isinstance(value, Expr) and value.op in ("frag", "rowvec", "colvec")):
        return None
    inside = next(inside for x, inside in rounds(program, s.role) if x is loop)
    texts = _Texts(program, s.role, inside)
    first = texts.of_site(s.starts[-1], {}, _DEPTH)
    if first is None or not texts.loaded or first != texts.of(s.term, {loop.var: texts.resolve(loop.lo)}, _DEPTH) or first == texts.of(s.term, {}, _DEPTH):
        return None  # the last: the same in every round, which is not where the loop starts
    message = f"`{written(s.name)}` starts with what the first round of this loop adds again, for `{written(loop.var)}` = {spoken(loop.lo)}"
    return Fault("D047", message, loop.head, ((s.starts[-1].op.span, "it starts here"), (s.span, "and is added here")), "start the loop at the second term, or the sum at zero", (), {"role": s.role, "name": s.name})


def _again(program: Program, s: _Sum) -> Fault | None:
    """A reduction that is the same in every round."""
    loop, nodes = s.loop, s.term.parts()
    if not any(n.op in _REDUCTIONS for n in nodes) or any(n.op not in _FIXED for n in nodes) or (loop.hi is not None and loop.hi.op == "const" and loop.hi.attrs["value"] == 1):
        return None
    inside = next(inside for x, inside in rounds(program, s.role) if x is loop)
    changed = {t for x in inside for t in (*x.targets, *places(x))} | {loop.var}
    changed |= {name for (role, name), found in sites(program).bindings.items() if role == s.role and any(any(y is loop for y in b.path) for b in found)}
    if any(n.op == "var" and n.attrs["name"] in changed for n in nodes):
        return None
    message = f"every round of the loop over `{written(loop.var)}` adds the same to `{written(s.name)}`: nothing in this term follows the rounds"
    return Fault("D047", message, s.span, ((loop.head, "this loop"),), "add it once behind the loop, or let it follow the round", (), {"role": s.role, "name": s.name})


_FIXED = frozenset({"var", "const", "param", "add", "sub", "mul", "div", "neg", "exp", "exp2", "max", "min", "cast", "sum", "reduce", "finish", "abs", "where", "lt", "le", "gt", "ge", "eq", "ne", "iota", "field"})


class _Texts:
    """Expressions as texts in which names stand for what they were made of; None where that is not one thing, or may change in between."""

    def __init__(self, program: Program, role: str, inside: tuple[Site, ...]) -> None:
        self.program, self.role = program, role
        self.resolve = resolver_of(program, role)
        self.moves = any(x.op.name in _MOVES for x in inside)
        self.written = {str(op.attrs["tensor"]) for op in program.ops if op.name in ("store", "tma_store", "bulk_store", "atomic", "tma_reduce") and "tensor" in op.attrs}
        self.loaded = False
        """Whether some text holds what memory does: numbers alone may well be added twice."""

    def of(self, e: Expr, at: dict[str, Expr], depth: int) -> str | None:
        if not isinstance(e.type, FragT) and not any(self._brought(n) for n in e.parts()):
            if isinstance(e.type, SlotT):
                return f"slot {e.attrs['name']}" if e.op == "var" and len(sites(self.program).bindings.get((self.role, str(e.attrs["name"])), ())) == 1 else None
            known = _put(self.resolve(e), at)
            if any(n.op == "var" and not isinstance(n.type, TileT) and (self.role, str(n.attrs["name"])) not in sites(self.program).loops for n in known.parts()):
                return None  # a number that is brought up to date
            return canonical(Expr("add", (known, Expr("const", (), {"value": 0}))))
        if depth == 0:
            return None
        if e.op == "var":
            bound = sites(self.program).results.get((self.role, str(e.attrs["name"])), ())
            return self.of_site(bound[0], at, depth - 1) if len(bound) == 1 and (self.role, e.attrs["name"]) not in sites(self.program).bindings else None
        args = [e.args[1]] if e.op == "iota" else e.args
        parts = [self.of(a, at, depth - 1) for a in args]
        if any(p is None for p in parts):
            return None
        attrs = sorted((k, str(v)) for k, v in e.attrs.items() if k != "operands")
        return f"{e.op}{attrs}({','.join(p for p in parts if p is not None)})"

    def _brought(self, n: Expr) -> bool:
        """Whether a part of an expression is no number of arguments, loops and tensors of numbers."""
        return isinstance(n.type, FragT) or n.op in ("view", "step") or (n.op == "var" and any("view" in s.op.operands for s in sites(self.program).results.get((self.role, str(n.attrs["name"])), ())))

    def of_site(self, s: Site, at: dict[str, Expr], depth: int) -> str | None:
        op = s.op
        if depth == 0:
            return None
        if op.name == "compute":
            value = op.operands.get("value")
            return self.of(value, at, depth - 1) if isinstance(value, Expr) else None
        if not self._steady(op):
            return None
        self.loaded = True
        texts = []
        for key, o in sorted(op.operands.items()):
            for e in o if isinstance(o, tuple) else (o,):
                if isinstance(e, Expr) and key != "like":
                    texts.append(f"{key}={self.of(e, at, depth - 1)}")
        attrs = sorted((k, str(v)) for k, v in op.attrs.items() if k not in ("cache", "op"))
        return None if any(t.endswith("=None") for t in texts) else f"{op.name}{attrs}({','.join(texts)})"

    def _steady(self, op: Op) -> bool:
        """Whether a load brings the same in front of the loop and in it."""
        if op.name not in ("load", "ld"):
            return False
        return not self.moves if "view" in op.operands else str(op.attrs.get("tensor")) not in self.written


def _put(e: Expr, at: dict[str, Expr]) -> Expr:
    """An expression with values in place of names."""
    if e.op == "var" and e.attrs["name"] in at:
        return at[str(e.attrs["name"])]
    args = tuple(_put(a, at) for a in e.args)
    return e if all(a is b for a, b in zip(args, e.args, strict=True)) else Expr(e.op, args, e.attrs, e.type, e.span)
