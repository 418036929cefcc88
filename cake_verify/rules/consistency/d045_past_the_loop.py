"""D045: a mask by rows lets no column through that its loop never comes to."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import TURNED, conjuncts, nodes
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import FragT
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.runs import compared, defined, run_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of, rounded_up, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_CAUSAL = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def highest(lm, Q: LM.gmem2d[LM.bf16, "S", 64], K: LM.gmem2d[LM.bf16, "S", 64], Y: LM.gmem1d[LM.f32, "S"], S: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(S % 64 == 0)
    pool = lm.smem(64 * 64 * 2)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(S // 64,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            q = lm.load(Q, coords=(0, t.m * 64), shape=(64, 64), form="a")
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            top = lm.rowvec(o, init=-lm.inf)
            for j in lm.range(lm.cdiv((t.m + 1) * 64, 64)):
                lm.sync(each)
                ks.cp_async(K, coords=(0, j * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(each)
                s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(s, q, ks.ldmatrix(form="b"))
                x = lm.where(lm.iota(s, 1, base=j * 64) <= lm.iota(s, 0, base=t.m * 64), s, -lm.inf)
                top = lm.max(top, lm.reduce(x, "max", axis=1))
            lm.store(Y, top, coords=(t.m * 64,))
'''

PAGE = Page(
    code="D045",
    title="a mask that lets through what its loop never comes to",
    statement="In a loop over tiles of columns that ends where a tile of rows needs no more of them, the mask that compares columns with rows lets the last row see no column behind that end.",
    why="The loop's end and the mask state the same diagonal. Where the mask goes an element further, each row sees one column too many, except the last row of a tile, whose column is never loaded: a causal kernel that looks ahead.",
    failing=edit(_CAUSAL, ("<= lm.iota(s, 0, base=t.m * 64)", "<= lm.iota(s, 0, base=t.m * 64) + 1")),
    passing=_CAUSAL,
    limits="Decided for `columns <= rows` and `columns < rows` in choices (`lm.where`), with columns that start at a multiple of the round, where the loop ends at `lm.cdiv(n, B)`, `lm.min` of such or the like, and the difference of n and what the mask lets "
    "the last row see is a number. Whole tiles that the loop leaves out may be another product's, beside it. Another part of the mask that ends where the loop does counts; where a window of columns begins does not.",
)


def check(program: Program) -> Iterator[Fault]:
    if not mentions(program).keys() >= {"where", "iota"}:
        return
    for s in sites(program).of("compute"):
        if any(x.kind != "tiles" for x in s.loops):
            for n in nodes(program)[s.op.id]:
                fault = _past(program, s, n) if n.op == "where" else None
                if fault is not None:
                    yield fault
                    return


def _past(program: Program, s: Site, choice: Expr) -> Fault | None:
    role, resolve = s.role.name, resolver_of(program, s.role.name)
    parts = [_columns_first(program, role, p) for p in conjuncts(defined(program, role, choice.args[0]))]
    bounds = [p for p in parts if p.op in ("lt", "le") and isinstance(p.args[0].type, FragT)]
    if not any(isinstance(p.args[1].type, FragT) for p in bounds):
        return None
    ends: list[tuple[Expr, For, Expr]] = []
    for p in bounds:
        columns, rows = run_of(program, role, p.args[0]), run_of(program, role, p.args[1])
        if columns is None or (rows is None and isinstance(p.args[1].type, FragT)) or (isinstance(p.args[0].type, FragT) and p.args[0].type.form == "rowvec"):
            return None  # some other mask may keep the rest out
        steps = linear(columns[0])[1]
        loop = next((x for x in reversed(s.loops) if x.kind != "tiles" and abs(steps.get(f"?{x.var}", 0)) == columns[1]), None)
        if loop is None:
            return None
        last = resolve(p.args[1]) if rows is None else Expr("add", (rows[0], Expr("const", (), {"value": rows[1] - 1})))
        ends.append((Expr("add", (last, Expr("const", (), {"value": 1}))) if p.op == "le" else last, loop, p))
    window = [p for p in parts if p.op in ("gt", "ge") and isinstance(p.args[0].type, FragT) and p.args[0].type.form != "rowvec" and run_of(program, role, p.args[0]) is not None]
    if len(parts) > len(bounds) + len(window) or not ends or any(loop is not ends[0][1] for _, loop, _ in ends):
        return None
    loop = ends[0][1]
    for length in _lengths(resolve(loop.hi), run_of(program, role, bounds[0].args[0])[1]) if loop.hi is not None else ():  # type: ignore[index]  # a run, see above
        more = [_more(end, length, s.role.members) for end, _, _ in ends]
        over = next((k for k, m in enumerate(more) if m is not None and m > 0 and isinstance(ends[k][2].args[1].type, FragT)), None)
        if over is None or any(m is not None and m <= 0 for m in more):
            continue
        p, n = ends[over][2], more[over]
        if n is not None and n % run_of(program, role, p.args[0])[1] == 0 and _peeled(program, s, loop):  # type: ignore[index]  # a run, see above
            continue
        at = p.span if p.span.line else s.op.span
        message = f"this mask lets the last row see {n} column{'s' if n != 1 else ''} behind the end of the loop over `{written(loop.var)}`, which never brings {'them' if n != 1 else 'it'}"
        return Fault("D045", message, at, ((loop.head, "ends for the last row here"),), "let mask and loop end at the same column", without_offset(p.args[1]) if n == 1 else (), {"role": role, "found": n})
    return None


def _peeled(program: Program, s: Site, loop: For) -> bool:
    """Whether a product outside of a loop, of the same tile, may be that of the tiles which the loop leaves out."""
    around = s.path[: s.path.index(loop)]
    return any(x.path[: len(around)] == around and loop not in x.loops for x in sites(program).of_role(s.role.name) if x.op.name == "mma")


def _columns_first(program: Program, role: str, e: Expr) -> Expr:
    """A comparison of columns with rows with the columns on the left."""
    p = compared(program, role, e)
    rows, columns = (defined(program, role, a).type for a in p.args) if p.op in TURNED else (None, None)
    turned = isinstance(rows, FragT) and rows.form == "rowvec" and isinstance(columns, FragT) and columns.form == "colvec"
    return Expr(TURNED[p.op], p.args[::-1], {}, p.type, p.span) if turned else p


def _lengths(hi: Expr, tile: int) -> list[Expr]:
    """The numbers of columns that each suffice to end a loop."""
    out, waiting = [], [hi]
    while waiting:
        n = waiting.pop()
        if n.op == "min":
            waiting += n.args
        elif (up := rounded_up(n)) is not None and up[1] == tile:
            out += up[0].args if up[0].op == "min" else (up[0],)
    return out


def _more(end: Expr, length: Expr, members: int) -> int | None:
    """By how many columns an end lies behind a length for the last member, where that is a number."""
    constant, live = linear(Expr("sub", (end, length)))
    for term, n in list(live.items()):
        if term.startswith("role_index") and n > 0:
            constant += n * (members - 1)
            del live[term]
    return None if live else constant
