"""Q034: branches that divide the tiles of one axis among two kinds of work divide them at one place."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import conjuncts
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, If, Program, Stmt
from cake_ir.record import record
from cake_ir.span import Span
from cake_verify.analyses import edits
from cake_verify.analyses.trips import conditions, linear, resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_LAYERS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def layers(lm, X: LM.gmem2d[LM.f32, "R", "W"], Q: LM.gmem2d[LM.f32, "R", "QW"], V: LM.gmem2d[LM.f32, "R", "VW"], R: LM.i32, W: LM.i32, QW: LM.i32, VW: LM.i32, HQ: LM.i32, HV: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(QW == HQ * 128 and VW == HV * 128 and W == QW + VW and HQ > 0 and HV > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(HQ + HV, R), names=("h", "r"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.h * 128, t.r), shape=(128,))
            y = x * 1.0
            if t.h < HQ:
                y = y * lm.rsqrt(lm.sum(x * x, axis=0))
            else:
                y = y * 0.5
            if t.h < HQ:
                lm.store(Q, y, coords=(t.h * 128, t.r))
            else:
                lm.store(V, y, coords=((t.h - HQ) * 128, t.r))
'''

PAGE = Page(
    code="Q034",
    title="tiles divided in two places",
    statement="Branches that choose between two kinds of work by comparing one field of a tile with one bound draw the line at the same tile: none of them draws it one tile further than the others.",
    why="The tile beside the line then takes the arm of one kind in one branch and of the other kind in the next: the first value head is treated as a query head, and stored as a value.",
    failing=edit(_LAYERS, ("            if t.h < HQ:\n                y = y * lm.rsqrt", "            if t.h < HQ + 1:\n                y = y * lm.rsqrt")),
    passing=_LAYERS,
    limits="Compared are branches with two arms in loops over one scheduler's tiles, in all roles. A line that two of them share is one that is meant, so three kinds of which one is a single tile pass, also where the scheduler counts it (`tiles=(HQ + 2, R)`); so do bounds that are numbers, the last tile of a kind (`t.h < HQ - 1`), and conditions on loops, members or memory.",
)

_AT = {"lt": 0, "le": 1, "gt": 1, "ge": 0}
"""Where integers turn from one side to the other, counted from the bound."""
_FIELD = "tile."


@record(eq=False)
class _Line:
    """A comparison of a tile's field: which field and bound (a sum without its number), the first tile beyond the line."""

    key: tuple[str, tuple[tuple[str, int], ...]]
    first: int
    cond: Expr
    role: str
    span: Span
    meant: bool


YIELDS = True


def check(program: Program) -> Iterator[Fault]:
    if sum([bool(s.orelse) for _, s, _ in conditions(program)]) < 2:
        return
    groups: list[list[_Line]] = []
    for block in program.body:
        _groups(program, block.role, block.body, None, groups)
    for i, one in enumerate(groups):
        for other in groups[i + 1 :]:
            found = next(((x, y) for x in one for y in other if _apart(x, y) and not _has(other, x) and not _has(one, y) and not _single(program, x)), None)
            if found is not None:
                yield _fault(*sorted(found, key=lambda x: -x.first))
                return


def _apart(one: _Line, other: _Line) -> bool:
    """Whether one of two lines is drawn at a bound and the other a tile further; a tile sooner lies the last tile of a kind, which may have an arm of its own."""
    return one.meant and other.meant and one.key == other.key and {one.first, other.first} == {0, 1}


def _single(program: Program, line: _Line) -> bool:
    """Whether a scheduler counts single tiles beside what is bounded: one of them may be a kind of its own."""
    scheduler, _, field = line.key[0].partition(f".{_FIELD}")
    d = program.schedulers.get(scheduler)
    if d is None or field not in d.names or len(d.tiles) != len(d.names):
        return False
    return linear(resolver_of(program, "")(d.tiles[d.names.index(field)]))[0] != 0


def _has(group: list[_Line], line: _Line) -> bool:
    return any(x.key == line.key and x.first == line.first for x in group)


def _fault(line: _Line, other: _Line) -> Fault:
    message = f"`{spoken(line.cond)}` draws the line between two kinds of tiles one tile further than `{spoken(other.cond)}`"
    fixes = (edits.replace(line.cond.span, spoken(other.cond)),) if line.cond.span.line and line.role == other.role and line.cond.span.line == line.cond.span.end_line else ()
    return Fault("Q034", message, line.span, ((other.span, "divided here, too"),), "divide the tiles alike", fixes, {"role": line.role})


def _groups(program: Program, role: str, body: tuple[Stmt, ...], tiles: For | None, out: list[list[_Line]]) -> None:
    """The lines of each branch in a loop over tiles, those of branches in its arms with its own."""
    for s in body:
        if isinstance(s, For):
            _groups(program, role, s.body, s if s.kind == "tiles" else tiles, out)
        elif isinstance(s, If) and tiles is not None:
            found: list[_Line] = []
            _lines(program, role, s, tiles, found)
            if found:
                out.append(found)


def _lines(program: Program, role: str, s: If, tiles: For, found: list[_Line]) -> None:
    for c in conjuncts(s.cond):
        if c.op in _AT or c.op in ("eq", "ne"):
            found += _line(program, role, c, tiles, bool(s.then and s.orelse) and c is s.cond, s)
    for arm in (s.then, s.orelse):
        for x in arm:
            if isinstance(x, If):
                _lines(program, role, x, tiles, found)
            elif isinstance(x, For) and x.kind != "tiles":
                for y in x.body:
                    if isinstance(y, If):
                        _lines(program, role, y, tiles, found)


def _line(program: Program, role: str, c: Expr, tiles: For, two: bool, s: If) -> list[_Line]:
    if not any(n.op in ("field", "var") for n in c.parts()):
        return []
    constant, terms = linear(resolver_of(program, role)(Expr("sub", c.args)))
    fields = [t for t in terms if t.startswith(_FIELD)]
    if len(fields) != 1 or abs(terms[fields[0]]) != 1 or any("?" in t or "ld" in t or "member" in t for t in terms):
        return []
    turned = terms.pop(fields[0]) < 0
    bound = tuple(sorted((t, n if turned else -n) for t, n in terms.items()))
    first = constant if turned else -constant
    if not bound:
        return []
    key = (f"{tiles.scheduler}.{fields[0]}", bound)
    span = c.span if c.span.line else s.head
    if c.op in ("eq", "ne"):
        return [_Line(key, first + k, c, role, span, False) for k in (0, 1)]
    at = _AT[c.op] if not turned else {"lt": 1, "le": 0, "gt": 0, "ge": 1}[c.op]
    return [_Line(key, first + at, c, role, span, two)]
