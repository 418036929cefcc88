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
from cake_verify.analyses.scalar_operations import LARGE
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
_Ends = tuple[float, float]
_ANY: _Ends = (-math.inf, math.inf)
_PLAIN = frozenset({"const", "field", "param"})
_AT = taking("coords", "i", "offset")


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    known: dict[tuple[str, tuple[object, ...]], dict[int, _Ends]] = {}
    for site in ranges.live(program, *_AT):
        coords = site.op.operands.get("coords")
        for entry in (*(coords if isinstance(coords, tuple) else ()), site.op.operands.get("i"), site.op.operands.get("offset")):
            if not isinstance(entry, Expr) or entry.op in _PLAIN or not isinstance(entry.type, ScalarT):
                continue
            e = resolver_of(program, site.role.name)(entry)
            if e.op in _PLAIN:
                continue
            wide = _wraps(program, site, e, known.setdefault((site.role.name, site.loops), {}))
            if wide is not None and spoken(wide[0]) not in told:
                told.add(spoken(wide[0]))
                yield _fault(site, *wide)


def _fault(site: Site, e: Expr, ends: _Ends) -> Fault:
    lo, hi = ends
    reach = int(hi if hi > _HI else lo)
    return Fault(
        "D032", f"`{spoken(e)}` reaches {reach:,}, and a position here has 32 bits, which end at {_HI if reach > 0 else _LO:,}",
        site.op.spans.get("coords", site.op.spans.get("i", site.op.span)), ((e.span, "computed here"),),
        "widen a factor: `lm.cast(.., lm.i64)` (tensor copies: use another dimension), or bound the arguments with `lm.assume`", (), {"expected": _HI, "found": reach},
    )  # fmt: skip


def _wraps(program: Program, site: Site, e: Expr, known: dict[int, _Ends]) -> tuple[Expr, _Ends] | None:
    """The innermost 32-bit node of an expression whose values pass 32 bits, and their ends.

    `known` has the ends of resolved expressions in this role and these loops, by identity: the role's resolver keeps them all.
    """
    tensor = program.tensors.get(str(site.op.attrs.get("tensor")))
    narrow = tensor is not None and tensor.kind == "tma"  # the copy engine takes 32-bit coordinates, whatever they are computed in
    for n in e.parts():
        if n.args and isinstance(n.type, ScalarT) and (n.type.dtype == "i32" or (n is e and narrow)):
            lo, hi = _ends(program, site, n, known)
            if (hi > _HI or lo < _LO) and math.isfinite(lo) and math.isfinite(hi):
                return n, (lo, hi)
    return None


def _ends(program: Program, site: Site, e: Expr, known: dict[int, _Ends]) -> _Ends:
    """The ends of a resolved expression, with tile fields below their counts; `known` keeps those of its parts by identity."""
    if e.op == "const" and isinstance(v := e.attrs["value"], int):
        return v, v
    found = known.get(id(e))
    if found is None:
        found = known[id(e)] = _worked_out(program, site, e, known)
    return found


def _worked_out(program: Program, site: Site, e: Expr, known: dict[int, _Ends]) -> _Ends:
    op = e.op
    if op == "add" or op == "sub" or op == "mul":
        (a, b), (c, d) = _ends(program, site, e.args[0], known), _ends(program, site, e.args[1], known)
        if op == "mul" and 0 <= a <= b and 0 <= c <= d:  # as mostly
            return _within(a * c if a and c else 0, b * d if b and d else 0)
        if op == "mul":
            ends = [x * y if x and y else 0 for x in (a, b) for y in (c, d)]
            return _within(min(ends), max(ends))
        return (a + c, b + d) if op == "add" else (a - d, b - c)
    if op == "field" and e.args[0].op == "var":
        loop = next((s for s in site.loops if s.var == e.args[0].attrs["name"] and s.kind == "tiles"), None)
        d = program.schedulers.get(str(loop.scheduler)) if loop is not None else None
        if d is None or d.kind == "grouped" or e.attrs["name"] not in d.names:
            return 0, math.inf
        count = _ends(program, site, resolver_of(program, "")(d.tiles[d.names.index(str(e.attrs["name"]))]), known)
        return 0, max(0, count[1] - 1)
    if op == "neg":
        lo, hi = _ends(program, site, e.args[0], known)
        return -hi, -lo
    if op == "cast":
        return _ends(program, site, e.args[0], known)
    if op == "ld":
        stated = declared_values(program, str(e.attrs["tensor"]))
        if stated is None:
            return _ANY
        return ranges.of(program, None, stated.lo).lo, ranges.of(program, None, stated.hi).hi - 1
    if op == "var":
        loop = next((s for s in site.loops if s.var == e.attrs["name"] and s.kind != "tiles"), None)
        if loop is None or loop.lo is None or loop.hi is None:
            return _ANY
        resolve = resolver_of(program, site.role.name)
        return _ends(program, site, resolve(loop.lo), known)[0], _ends(program, site, resolve(loop.hi), known)[1] - 1
    r = ranges.of(program, site.role.name, e)
    return r.lo, r.hi


def _within(lo: float, hi: float) -> _Ends:
    """Ends that no launch could mean are none: names of squares of names double their digits each."""
    return -math.inf if lo < -LARGE else min(lo, LARGE), math.inf if hi > LARGE else max(hi, -LARGE)
