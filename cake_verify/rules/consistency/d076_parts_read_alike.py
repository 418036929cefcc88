"""D076: of what every CTA of a cluster sends, the same is read of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from cake_ir.derive.mentions import words
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import ViewT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_MOMENTS = '''
@cake.schedule(target="sm_90a")
def moments(lm, X: LM.gmem2d[LM.f32, "R", 512], Y: LM.gmem2d[LM.f32, "R", 2], Z: LM.gmem2d[LM.f32, "R", 2], R: LM.i32):
    lm.launch(grid="tiles", cluster=(2, 1))
    pool = lm.smem(512)
    box = pool.view(offset=0, shape=(2, 8), dtype=lm.f32)
    work = lm.role(warps=[0])
    mail = lm.pipeline(stages=1)
    told = lm.barrier(pipeline=mail, prod=[work], cons=[work], arrive="tx", scope="cluster")
    sched = lm.scheduler(kind="grid", tiles=(2, R), names=("p", "r"), cluster=(2, 1))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.p * 256, t.r), shape=(256,))
            total = lm.reduce(x, "add", axis=1)
            squares = lm.reduce(x * x, "add", axis=1)
            pair = lm.frag(shape=(1, 8), dtype=lm.f32, form="vec", init=0.0)
            pair = lm.where(lm.iota(pair, axis=1) < 4, pair + total, pair + squares)
            w = lm.step(mail)
            for c in lm.static_range(2):
                box.rows(lm.cta_rank(), 1).send(pair, cta=c, barrier=told, stage=w)
            lm.wait(told, stage=w)
            first = box.ld(0) + box.ld(8)
            second = box.ld(4) + box.ld(12)
            lm.store(Y, first, coords=(t.p, t.r))
            lm.store(Z, second, coords=(t.p, t.r))
'''

PAGE = Page(
    code="D076",
    title="of one CTA's part less is read than of another's",
    statement="Where every CTA of a cluster sends a row of its own and a receiver reads them element by element, it reads the same elements of each row.",
    why="Every CTA sends the same things, of its own part. A sum over the parts of one of them that is read of the first row alone is the sum of one part.",
    failing=edit(_MOMENTS, ("box.ld(4) + box.ld(12)", "box.ld(4)")),
    passing=_MOMENTS,
    limits="Decided for views that only such sends write, and that are read by `view.ld` alone, at numbers that constants and loops of fixed length give.",
)

_MOST = 256


def check(program: Program) -> Iterator[Fault]:
    sends = sites(program).of("send")
    if not sends or "cta_rank" not in words(program):
        return
    for name in dict.fromkeys([n for s in sends if (n := _own_row(s))]):
        of_view = [s for s in sites(program).ops if (e := s.op.operands.get("view")) is not None and isinstance(e, Expr) and isinstance(e.type, ViewT) and e.type.view == name]
        reads = [s for s in of_view if s.op.name == "ld"]
        if not reads or any(s.op.name == "send" and not _own_row(s) for s in of_view) or any(s.op.name not in ("ld", "send") for s in of_view):
            continue
        cols = program.views[name].shape[-1]
        by_row: dict[int, set[int]] = {}
        at: dict[tuple[int, int], Site] = {}
        for s in reads:
            found = _places(program, s)
            if found is None:
                by_row.clear()
                break
            for i in found:
                by_row.setdefault(i // cols, set()).add(i % cols)
                at.setdefault((i // cols, i % cols), s)
        every = set().union(*by_row.values()) if by_row else set()
        lacking = next(((row, every - seen) for row, seen in sorted(by_row.items()) if seen != every), None)
        if lacking is not None:
            row, missing = lacking
            col = min(missing)
            site = next(s for (_, c), s in at.items() if c == col)
            whose = sorted(r for r, seen in by_row.items() if col in seen)
            message = f"element {col} of what each CTA sends to `{name}` is read of row {', '.join(map(str, whose))} and not of row {row}, of which others are"
            yield Fault("D076", message, site.op.span, ((next(s for (r, _), s in at.items() if r == row).op.span, f"row {row} is read here"),), "read it of every row", (), {"role": site.role.name, "view": name})
            return


def _own_row(s: Site) -> str:
    """The view of which a CTA sends the row of its own number."""
    e = s.op.operands.get("view")
    if s.op.name != "send" or not isinstance(e, Expr) or e.op != "rows" or e.attrs.get("n") != 1 or e.args[0].op != "view" or e.args[1].op != "cta_rank":
        return ""
    return str(e.args[0].attrs["view"])


def _places(program: Program, s: Site) -> list[int] | None:
    """The elements that a read takes in all rounds of loops of fixed length; None where something else decides."""
    i, view = s.op.operands.get("i"), s.op.operands.get("view")
    if not isinstance(i, Expr) or not isinstance(view, Expr) or view.op != "view":
        return None
    constant, live = linear(resolver_of(program, s.role.name)(i))
    spans = []
    for term, n in live.items():
        loop = next((x for x in s.loops if term == f"?{x.var}"), None)
        if loop is None or loop.lo is None or loop.hi is None or loop.lo.op != "const" or loop.hi.op != "const":
            return None
        lo, hi = loop.lo.attrs["value"], loop.hi.attrs["value"]
        if not isinstance(lo, int) or not isinstance(hi, int) or hi - lo > _MOST:
            return None
        spans.append([n * k for k in range(lo, hi)])
    return [constant + sum(p) for p in product(*spans)]
