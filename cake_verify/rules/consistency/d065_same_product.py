"""D065: a product in a loop follows the rounds."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fact import fact
from cake_ir.fault import Fault
from cake_ir.layout import stage_stride, view_bytes
from cake_ir.program import Expr, For, Program, View
from cake_ir.types import ScalesT, TmemT, ViewT
from cake_verify.analyses.regions import layout_of
from cake_verify.analyses.sites import Site, Sites, constant_rounds, rounds, sites
from cake_verify.analyses.trips import written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import places
from cake_verify.rules.examples import edit

LARGEST = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def largest(lm, Q: LM.gmem2d[LM.bf16, "M", 64], K: LM.gmem2d[LM.bf16, "N", 64], Y: LM.gmem1d[LM.f32, "M"], M: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0 and N % 64 == 0)
    pool = lm.smem(16384)
    q = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            q.cp_async(Q, coords=(0, t.m * 64))
            k.cp_async(K, coords=(0, 0))
            lm.cp_commit()
            s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            most = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=-lm.inf)
            for j in lm.range(N // 64):
                lm.cp_wait(pending=0)
                lm.sync(own)
                lm.mma(s, q.ldmatrix(form="a"), k.ldmatrix(form="b"), init=True)
                lm.sync(own)
                k.cp_async(K, coords=(0, (j + 1) * 64))
                lm.cp_commit()
                most = lm.max(most, s)
            lm.cp_wait(pending=0)
            lm.store(Y, lm.reduce(most, "max", axis=1), coords=(t.m * 64,), clip=True)
'''

PAGE = Page(
    code="D065",
    title="every round multiplies the same",
    statement="A product in a loop does not have the same operands in every round: one of them is brought anew, or follows the rounds.",
    why="A tile that is fetched in front of a loop and not again in it gives the first round's product in all of them, while masks and positions go on: the copy of the next round's tile is missing.",
    failing=edit(LARGEST, ("                k.cp_async(K, coords=(0, (j + 1) * 64))\n", "")),
    passing=LARGEST,
    limits="Decided for operands read from shared memory that one role fills by itself, under views that overlap no other, and for fragments that the loop leaves alone. Operands in tensor memory are left alone.",
)

_READS = frozenset({"load", "ldmatrix"})
_DEPTH = 8


def check(program: Program) -> Iterator[Fault]:
    found = sites(program)
    for s in found.of("mma"):
        loop = s.loops[-1] if s.loops else None
        if loop is None or loop.kind == "tiles" or _turns(found, s, loop):
            continue
        if constant_rounds(loop) != 1 and (fault := _same(program, s, loop)) is not None:
            yield fault
            return


def _turns(found: Sites, s: Site, loop: For) -> bool:
    """Whether a product has an operand that clearly is another one in each round: a slot or part that the loop counts. Told at a glance, as for most there are."""
    role, operands = s.role.name, s.op.operands
    for name in ("b", "a"):
        e = operands[name]
        if not isinstance(e, Expr) or isinstance(e.type, TmemT):
            return True
        waiting = [e]
        while waiting:
            n = waiting.pop()
            waiting += n.args
            if n.op != "var":
                continue
            text = str(n.attrs["name"])
            if text == loop.var:
                return True
            for b in found.bindings.get((role, text), ()):
                if loop in b.path:
                    return True
            for r in found.results.get((role, text), ()):
                view = r.op.operands.get("view")
                if loop in r.path and isinstance(view, Expr) and n is e:
                    waiting += view.args
    return False


def _same(program: Program, s: Site, loop: For) -> Fault | None:
    role = s.role.name
    operands = [e for name in ("b", "a", "scale_a", "scale_b") if isinstance(e := s.op.operands.get(name), Expr)]
    inside = next(inside for x, inside in rounds(program, role) if x is loop)
    changed = {t for x in inside for t in (*x.targets, *places(x))} | {loop.var}
    changed |= {name for (owner, name), found in sites(program).bindings.items() if owner == role and any(loop in b.path for b in found)}
    still = _Still(program, role, inside, changed)
    if not all(still.stands(e, _DEPTH) for e in operands):
        return None
    views = sorted(still.views)
    if not views:
        return None
    message = f"{call(s.op)} multiplies the same in every round of the loop over `{written(loop.var)}`: nothing in the loop changes its operands"
    names = ", ".join(f"`{v}`" for v in views)
    return Fault("D065", message, s.op.span, ((loop.head, "this loop"), *((w.op.span, f"fills `{v}`, in front of the loop") for v in views for w in _fills(program, v)[:1])),
                 f"bring the round's part of {names} in the loop, or multiply once in front of it", (), {"role": role, "views": views})  # fmt: skip


class _Still:
    """Whether what an expression reads is the same in every round of a loop; `views` collects the shared memory that it comes from."""

    def __init__(self, program: Program, role: str, inside: tuple[Site, ...], changed: set[str]) -> None:
        self.program, self.role, self.inside, self.changed = program, role, inside, changed
        self.views: set[str] = set()

    def stands(self, e: Expr, depth: int) -> bool:
        if isinstance(e.type, (TmemT, ScalesT)) or depth == 0:
            return False
        for n in e.parts():
            if n.op == "view" and not self._filled_before(str(n.attrs["view"])):
                return False
            if n.op in ("step", "at", "prev", "load", "ld"):
                return False
            if n.op == "var" and str(n.attrs["name"]) in self.changed and not self._bound_alike(str(n.attrs["name"]), depth):
                return False
        return True

    def _bound_alike(self, name: str, depth: int) -> bool:
        """Whether the one thing that the loop binds a name to is the same in every round."""
        bound = [x for x in self.inside if name in x.targets or name in places(x)]
        others = sites(self.program).bindings.get((self.role, name), ())
        if len(bound) != 1 or others or len(sites(self.program).results.get((self.role, name), ())) != 1:
            return False
        op = bound[0].op
        value = op.operands.get("view") if op.name in _READS and "tensor" not in op.attrs else op.operands.get("value") if op.name == "compute" else None
        return isinstance(value, Expr) and name not in {str(n.attrs["name"]) for n in value.parts() if n.op == "var"} and self.stands(value, depth - 1)

    def _filled_before(self, view: str) -> bool:
        """Whether the role alone fills a view, and not in the loop; nothing else lies there."""
        fills = _fills(self.program, view)
        if not fills or any(f.role.name != self.role or any(x.op is f.op for x in self.inside) for f in fills) or _overlaps(self.program, view):
            return False
        self.views.add(view)
        return True


_WRITES = frozenset({"store", "cp_async", "cp_async_rows", "tma_load", "tma_gather", "bulk_load", "send", "atomic"})


def _fills(program: Program, view: str) -> tuple[Site, ...]:
    """The operations that write a view, or use it as scratch."""
    return _filled(program).get(view, ())


@fact
def _filled(program: Program) -> dict[str, tuple[Site, ...]]:
    found: dict[str, list[Site]] = {}
    for s in sites(program).ops:
        for e in (s.op.operands.get("view") if s.op.name in _WRITES else None, s.op.operands.get("scratch")):
            if isinstance(e, Expr) and isinstance(e.type, ViewT):
                found.setdefault(e.type.view, []).append(s)
    return {view: tuple(by) for view, by in found.items()}


def _overlaps(program: Program, view: str) -> bool:
    mine = program.views[view]
    return any(v.pool == mine.pool and v is not mine and _span(v)[0] < _span(mine)[1] and _span(mine)[0] < _span(v)[1] for v in program.views.values())


def _span(v: View) -> tuple[int, int]:
    """First byte and the one behind the last of all stages of a view."""
    layout = layout_of(v)
    return v.offset, v.offset + (v.stages - 1) * stage_stride(layout) + view_bytes(layout)
