"""D032: positions that fit the integers they are computed in."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.ops import taking
from cake_ir.program import Expr, Program
from cake_ir.types import ScalarT
from cake_verify.analyses import ranges
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.ranges import ANY, Range
from cake_verify.analyses.sites import Site
from cake_verify.analyses.trips import resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_ROWS = '''
@cake.schedule(target="sm_90a")
def rows(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32], B: LM.i32, T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(B > 0 and B <= 4096 and T > 0 and T <= 65536)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B, T), names=("b", "t"))
    with work:
        for t in lm.tiles(sched):
            first = (lm.cast(t.b, lm.i64) * T + t.t) * 128
            lm.store(Y, lm.load(X, coords=(first,), shape=(128,)), coords=(first,))
'''

PAGE = Page(
    code="D032",
    title="an offset that wraps at 32 bits",
    statement="A coordinate that is computed in 32 bits, or given to a tensor copy, stays below 2^31 for all arguments that `lm.assume` allows.",
    why="A product of batch, tokens, heads and width passes 2^31 in models of today. The offset wraps, and the access lands on a mapped address somewhere else.",
    failing=edit(_ROWS, ("lm.cast(t.b, lm.i64)", "t.b")),
    passing=_ROWS,
    limits="Decided where the assumptions bound everything in the expression; without them nothing is said. Strides are 64 bits wide in generated code: coordinates of their own never wrap.",
)

_LO, _HI = -(2**31), 2**31 - 1
_AT = taking("coords", "i", "offset")


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    known: dict[tuple[str, tuple[object, ...]], dict[int, Range]] = {}
    for site in ranges.live(program, *_AT):
        coords = site.op.operands.get("coords")
        for entry in (*(coords if isinstance(coords, tuple) else ()), site.op.operands.get("i"), site.op.operands.get("offset")):
            if not isinstance(entry, Expr) or entry.op in ("const", "field", "param") or not isinstance(entry.type, ScalarT):
                continue
            e = resolver_of(program, site.role.name)(entry)
            wide = _wraps(program, site, e, known.setdefault((site.role.name, site.path), {}))
            if wide is not None and spoken(wide[0]) not in told:
                told.add(spoken(wide[0]))
                yield _fault(site, *wide)


def _fault(site: Site, e: Expr, r: Range) -> Fault:
    reach = int(r.hi if r.hi > _HI else r.lo)
    return Fault(
        "D032", f"`{spoken(e)}` reaches {reach:,}, and a position here has 32 bits, which end at {_HI if reach > 0 else _LO:,}",
        site.op.spans.get("coords", site.op.spans.get("i", site.op.span)), ((e.span, "computed here"),),
        "widen a factor: `lm.cast(.., lm.i64)` (tensor copies: use another dimension), or bound the arguments with `lm.assume`", (), {"expected": _HI, "found": reach},
    )  # fmt: skip


def _wraps(program: Program, site: Site, e: Expr, known: dict[int, Range]) -> tuple[Expr, Range] | None:
    """The innermost 32-bit node of an expression whose values pass 32 bits, and its range.

    `known` has the ranges of resolved expressions in this role and these loops, by identity: the role's resolver keeps them all.
    """
    tensor = program.tensors.get(str(site.op.attrs.get("tensor")))
    narrow = tensor is not None and tensor.kind == "tma"  # the copy engine takes 32-bit coordinates, whatever they are computed in
    for n in e.parts():
        if n.args and isinstance(n.type, ScalarT) and (n.type.dtype == "i32" or (n is e and narrow)):
            r = _range(program, site, n, known)
            if (r.hi > _HI or r.lo < _LO) and math.isfinite(r.lo) and math.isfinite(r.hi):
                return n, r
    return None


def _range(program: Program, site: Site, e: Expr, known: dict[int, Range]) -> Range:
    """The range of a resolved expression, with tile fields below their counts; `known` keeps those of its parts by identity."""
    r = known.get(id(e))
    if r is None:
        r = known[id(e)] = _worked_out(program, site, e, known)
    return r


def _worked_out(program: Program, site: Site, e: Expr, known: dict[int, Range]) -> Range:
    if e.op == "const" or e.op == "param":
        return ranges.of(program, None, e)
    if e.op == "field" and e.args[0].op == "var":
        loop = next((s for s in site.loops if s.var == e.args[0].attrs["name"] and s.kind == "tiles"), None)
        d = program.schedulers.get(str(loop.scheduler)) if loop is not None else None
        if d is None or d.kind == "grouped" or e.attrs["name"] not in d.names:
            return ranges.NATURAL
        count = _range(program, site, resolver_of(program, "")(d.tiles[d.names.index(str(e.attrs["name"]))]), known)
        return ranges.span(0, max(0, count.hi - 1))
    if e.op in ("add", "sub", "mul"):
        a, b = _range(program, site, e.args[0], known), _range(program, site, e.args[1], known)
        return ranges.mul(a, b) if e.op == "mul" else ranges.add(a, b, 1 if e.op == "add" else -1)
    if e.op == "neg":
        return ranges.add(ranges.const(0), _range(program, site, e.args[0], known), -1)
    if e.op == "cast":
        return _range(program, site, e.args[0], known)
    if e.op == "ld":
        stated = declared_values(program, str(e.attrs["tensor"]))
        if stated is None:
            return ANY
        lo, hi = (ranges.of(program, None, x) for x in (stated.lo, stated.hi))
        return ranges.span(lo.lo, hi.hi - 1)
    if e.op == "var":
        loop = next((s for s in site.loops if s.var == e.attrs["name"] and s.kind != "tiles"), None)
        if loop is None or loop.lo is None or loop.hi is None:
            return ANY
        resolve = resolver_of(program, site.role.name)
        return ranges.span(_range(program, site, resolve(loop.lo), known).lo, _range(program, site, resolve(loop.hi), known).hi - 1)
    return ranges.of(program, site.role.name, e)
