"""Q023: a mask by rows lets no column through that lies behind the last row."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cake_ir.derive.mentions import holding, mentions
from cake_ir.derive.structure import TURNED, conjuncts, nodes
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.runs import compared, defined, run_of
from cake_verify.analyses.sites import Site, extent_along, sites
from cake_verify.analyses.tile_origins import Origin, origins
from cake_verify.analyses.trips import canonical, linear, resolver_of
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_CAUSAL = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def highest(lm, Q: LM.gmem2d[LM.bf16, "S", 64], K: LM.gmem2d[LM.bf16, "S", 64], FIRST: LM.gmem1d[LM.i32, "QT"], Y: LM.gmem1d[LM.f32, "S"], S: LM.i32, QT: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(QT == lm.cdiv(S, 64))
    lm.assume_values(FIRST, 0, QT)
    pool = lm.smem(64 * 64 * 2)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(QT,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            q = lm.load(Q, coords=(0, t.m * 64), shape=(64, 64), form="a", clip=True)
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            top = lm.rowvec(o, init=-lm.inf)
            for j in lm.range(lm.ld(FIRST, t.m), QT):
                lm.sync(each)
                ks.cp_async(K, coords=(0, j * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(each)
                s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(s, q, ks.ldmatrix(form="b"))
                x = lm.where(lm.iota(s, 1, base=j * 64) <= lm.iota(s, 0, base=t.m * 64), s, -lm.inf)
                top = lm.max(top, lm.reduce(x, "max", axis=1))
            lm.store(Y, top, coords=(t.m * 64,), clip=True)
'''

YIELDS = True

PAGE = Page(
    code="Q023",
    title="a mask that lets the last row look behind the end",
    statement="Where rows and columns are counted by one extent and a mask lets a row see columns up to itself, it lets the last row see none behind it, unless something else keeps those out.",
    why="One column more than the row's own is a look ahead, and for the last row it lies behind the tensor's end: what a copy fills in there takes part in its maximum and its sum.",
    failing=edit(_CAUSAL, ("<= lm.iota(s, 0, base=t.m * 64)", "<= lm.iota(s, 0, base=t.m * 64) + 1")),
    passing=_CAUSAL,
    limits="Decided for `columns <= rows` and `columns < rows` in choices (`lm.where`) that put an infinity elsewhere, where loads say which elements rows and columns are and both axes have the extent by one name, which is no known multiple of a tile; a row may also be a number that a condition around holds below that extent. "
    "Another comparison of the columns counts as one that keeps out the rest.",
)

_LESS = frozenset({"lt", "le"})
_NUMBERED = re.compile(r"(\?[A-Za-z]\w*?)_\d+")


def check(program: Program) -> Iterator[Fault]:
    if not mentions(program).keys() >= {"where", "iota"}:
        return
    of_op, choosing = nodes(program), holding(program)["where"]
    for s in sites(program).of("compute"):
        for n in of_op[s.op.id] if s.op.id in choosing else ():
            fault = _ahead(program, s, n) if n.op == "where" and _endless(n.args[2]) else None
            if fault is not None:
                yield fault
                return


def _endless(e: Expr) -> bool:
    return e.op == "const" and isinstance(v := e.attrs["value"], float) and abs(v) == float("inf")


def _ahead(program: Program, s: Site, choice: Expr) -> Fault | None:
    role, resolve = s.role.name, resolver_of(program, s.role.name)
    parts = [_columns_first(program, role, p) for p in conjuncts(defined(program, role, choice.args[0]))]
    if len(parts) != 1 or parts[0].op not in _LESS:
        return None  # another part may keep the rest out
    p = parts[0]
    columns = run_of(program, role, p.args[0])
    if columns is None or not isinstance(p.args[0].type, FragT) or p.args[0].type.form != "colvec":
        return None
    found = origins(program, role, choice.args[1], 1)
    apart = {_apart(columns[0], o, o.load.role is not s.role) for o in found}
    extents = {_extent(program, o) for o in found}
    if len(extents) != 1 or len(apart) != 1 or None in apart or (extent := extents.pop()) is None:
        return None
    if ranges.of(program, None, Expr("param", (), {"name": extent})).multiple_of(columns[1]):
        return None
    shift = apart.pop() or 0
    strict = int(p.op == "lt")
    if isinstance(p.args[1].type, FragT):
        rows = run_of(program, role, p.args[1])
        own = origins(program, role, choice.args[1], 0) if rows is not None else ()
        if rows is None or any(_extent(program, o) != extent for o in own):
            return None
        lies = {_apart(rows[0], o, o.load.role is not s.role, s.role.members) for o in own} or _stored(program, s, rows[0], extent)
        row = lies.pop() if len(lies) == 1 else None
    else:
        row = _below(program, s, resolve(p.args[1]), extent)
    if row is None or row - shift - strict <= 0:
        return None
    n = row - shift - strict
    message = f"this mask lets the last row of `{extent}` see {n} column{'s' if n > 1 else ''} behind the last one, where there {'are' if n > 1 else 'is'} none"
    at = p.span if p.span.line else s.op.span
    return Fault("Q023", message, at, ((found[0].load.op.span, "the last tile of these columns reaches past the end"),), "let a row see columns up to its own", without_offset(p.args[1]) if n == 1 else (), {"role": role, "found": n})


def _stored(program: Program, s: Site, base: Expr, extent: str) -> set[int | None]:
    """How far rows start behind where the results of a role are stored, along axes of an extent: where shared memory is used again nothing tells which rows were loaded."""
    out: set[int | None] = set()
    resolve = resolver_of(program, s.role.name)
    for store in (x for x in sites(program).of("store", "tma_store") if x.role is s.role):
        coords, tensor = store.op.operands.get("coords"), program.tensors.get(str(store.op.attrs.get("tensor")))
        for k, e in enumerate(coords if isinstance(coords, tuple) and tensor is not None and len(tensor.extents) == len(coords) else ()):
            if tensor is not None and tensor.extents[len(tensor.extents) - 1 - k] == extent and not isinstance(e.type, FragT):
                constant, live = linear(Expr("sub", (base, resolve(e))))
                out.add(constant if not live else None)
    return out


def _columns_first(program: Program, role: str, e: Expr) -> Expr:
    """A comparison with the columns on the left."""
    p = compared(program, role, e)
    if p.op not in TURNED:
        return p
    other = p.args[1].type
    return Expr(TURNED[p.op], p.args[::-1], {}, p.type, p.span) if isinstance(other, FragT) and other.form == "colvec" else p


def _extent(program: Program, o: Origin) -> str | None:
    """The name of the extent of the axis that a load's coordinate counts."""
    name = extent_along(program, o.load.op, o.axis)
    return name if isinstance(name, str) else None


def _apart(base: Expr, o: Origin, apart: bool, members: int = 1) -> int | None:
    """By how many elements positions start behind where the load does, the same number in every tile; a member may have rows of its own in it."""
    constant, live = linear(Expr("sub", (base, o.coordinate)))
    for term, n in list(live.items()):
        if members > 1 and term.startswith("role_index") and n * members <= o.size:
            del live[term]
    same: dict[str, int] = {}
    for term, n in live.items() if apart else ():  # the loops of another role count by variables of the same names
        plain = _NUMBERED.sub(r"\1", term)
        same[plain] = same.get(plain, 0) + n
    return constant if not live or (apart and not any(same.values())) else None


def _below(program: Program, s: Site, e: Expr, extent: str) -> int | None:
    """How far a number of one row may lie behind the last row: a condition around, or its tiles, hold what it is counted from below the extent."""
    constant, live = linear(e)
    resolve = resolver_of(program, s.role.name)
    for branch, arm in s.branches():
        for c in conjuncts(branch.cond) if arm else ():
            low, high = (c.args if c.op == "lt" else c.args[::-1]) if c.op in ("lt", "gt") else (None, None)
            if low is None or high is None or canonical(resolve(high)) != extent:
                continue
            first, terms = linear(resolve(low))
            if terms == live:
                return constant - first
    return None
