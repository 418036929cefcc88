"""D054: exponentials are taken of scores and maxima, not of sums of exponentials."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.span import Span
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_ROWS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def weigh(lm, X: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(1024)
    tops = pool.view(offset=0, shape=(4, 16), dtype=lm.f32)
    sums = pool.view(offset=512, shape=(4, 16), dtype=lm.f32)
    work = lm.role(warps=range(0, 4), members=4)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(64 * work.index, t.r), shape=(64,))
            m = lm.reduce(x, "max")
            p = lm.exp(x - m)
            d = lm.reduce(p, "add")
            tops.rows(work.index, 1).store(lm.frag(shape=(16,), dtype=lm.f32, form="vec", init=0.0) + m)
            sums.rows(work.index, 1).store(lm.frag(shape=(16,), dtype=lm.f32, form="vec", init=0.0) + d)
            lm.sync(meet)
            top = m
            for w in lm.static_range(4):
                top = lm.max(top, tops.ld(16 * w))
            total = 0.0
            for w in lm.static_range(4):
                total = total + sums.ld(16 * w) * lm.exp(tops.ld(16 * w) - top)
            lm.store(Y, p * (lm.exp(m - top) * lm.rcp(total)), coords=(64 * work.index, t.r))
            lm.sync(meet)
'''

PAGE = Page(
    code="D054",
    title="the exponential of a sum of exponentials",
    statement="What an exponential is taken of, less something, is no sum of exponentials.",
    why="Partial sums are brought to a common maximum by the exponential of their own maximum less the common one. With the sum in the maximum's place, which lies beside it in shared memory and has its shape, the factor is a number that means nothing.",
    failing=edit(_ROWS, ("lm.exp(tops.ld(16 * w) - top)", "lm.exp(sums.ld(16 * w) - top)")),
    passing=_ROWS,
    limits="Sums are followed through names, casts, additions of other things, rescaling and shared memory, where all that is stored to a view are such sums; logarithms and quotients of sums are something else.",
)

_KEEPS = frozenset({"cast", "finish", "where", "add", "mul"})
_STORES = frozenset({"store", "send"})
_LOADS = frozenset({"load", "ld"})


def check(program: Program) -> Iterator[Fault]:
    if EXPONENTIALS.isdisjoint(mentions(program)):
        return
    for role in program.roles:
        own = sites(program).of_role(role)
        shared = {s.op.name for s in own if "view" in s.op.operands}
        if not shared.isdisjoint(_STORES) and not shared.isdisjoint(_LOADS):
            yield from _Sums(program, role, own).faults()


class _Sums:
    """The names and views of a role that hold sums of exponentials."""

    def __init__(self, program: Program, role: str, own: tuple[Site, ...]) -> None:
        self.program, self.own = program, own
        self.weights: set[str] = set()
        self.sums: set[str] = set()
        self.other: set[str] = set()
        """Names that something else is bound to as well."""
        self.read: dict[str, str] = {}
        """By name the view that it was read from."""
        stored: dict[str, set[bool]] = {}
        for s in own:
            self._bind(s)
            x = s.op.operands.get("x")
            if s.op.name in _STORES and isinstance(x, Expr) and (view := _declared(s.op.operands.get("view"))):
                stored.setdefault(view, set()).add(self._sum(x))
        for (owner, name), bound in sites(program).bindings.items():
            if owner == role and any(self._sum(b.value) for b in bound):
                self.sums.add(name)
        self.views = {view for view, kinds in stored.items() if kinds == {True}}

    def _bind(self, s: Site) -> None:
        e, x = s.op.operands.get("value"), s.op.operands.get("x")
        adds = s.op.name in ("reduce", "reduce_across") and s.op.attrs.get("op") == "add" and isinstance(x, Expr) and self._weight(x)
        for t in s.targets:
            if s.op.name in _LOADS and (view := _declared(s.op.operands.get("view"))):
                self.read[t] = view
            elif adds or (isinstance(e, Expr) and self._sum(e)):
                self.sums.add(t)
            elif isinstance(e, Expr) and self._weight(e):
                self.weights.add(t)

    def _weight(self, e: Expr) -> bool:
        """Whether a value is an exponential."""
        while e.op == "cast":
            e = e.args[0]
        return e.op in EXPONENTIALS or (e.op == "var" and str(e.attrs["name"]) in self.weights)

    def _sum(self, e: Expr) -> bool:
        """Whether a value is a sum of exponentials, rescaled or beside other terms."""
        if e.op == "var":
            return str(e.attrs["name"]) in self.sums
        if e.op == "reduce" and e.attrs.get("op") == "add":
            return self._weight(e.args[0])
        if e.op == "sum":
            return self._weight(e.args[0])
        return e.op in _KEEPS and any(self._sum(a) for a in (e.args[1:] if e.op == "where" else e.args))

    def faults(self) -> Iterator[Fault]:
        of_op = nodes(self.program)
        for s in self.own if self.views else ():
            for n in of_op[s.op.id]:
                if n.op in EXPONENTIALS and (found := self._subtracted(n)) is not None:
                    view = self.read[str(found.attrs["name"])]
                    yield self._fault(s, n, view)
                    return
        for (owner, _), bound in sites(self.program).bindings.items() if self.views else ():
            for b in bound if owner == self.own[0].role.name else ():
                for n in b.value.parts():
                    if n.op in EXPONENTIALS and (found := self._subtracted(n)) is not None:
                        yield self._fault(self.own[0], n, self.read[str(found.attrs["name"])])
                        return

    def _subtracted(self, e: Expr) -> Expr | None:
        """What was read from a view of sums and stands in front of a difference under an exponential."""
        x = e.args[0]
        while x.op == "mul":
            x = next((a for a in x.args if a.op in ("sub", "mul")), x.args[0])
        if x.op != "sub":
            return None
        one = x.args[0]
        while one.op in ("cast", "mul"):
            one = one.args[0]
        return one if one.op == "var" and self.read.get(str(one.attrs["name"])) in self.views else None

    def _fault(self, s: Site, e: Expr, view: str) -> Fault:
        stored = next(x for x in self.own if x.op.name in _STORES and _declared(x.op.operands.get("view")) == view)
        span: Span = e.span if e.span.line else s.op.span
        message = f"this is the exponential of what `{written(view)}` holds less something, and `{written(view)}` holds sums of exponentials"
        return Fault("D054", message, span, ((stored.op.span, "a sum is stored here"),), "take the maximum that the sum is relative to", (), {"view": view, "role": s.role.name})


def _declared(e: object) -> str:
    """The declared view of which an operand is a part."""
    while isinstance(e, Expr) and e.args:
        e = e.args[0]
    return str(e.attrs["view"]) if isinstance(e, Expr) and e.op == "view" else ""
