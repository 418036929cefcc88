"""D069: sums start from zero."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import FragT
from cake_verify.analyses.running_sums import EXPONENTIALS, STARTS, Sum, added, kept, number_of, started_sums
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d066_sum_from_zero import check as summed_tiles
from cake_verify.rules.examples import edit

_GEMM = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def gemm(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K % 16 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 16), lm.cdiv(N, 8)))
    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(K // 16):
                a = lm.load(A, coords=(k * 16, t.m * 16), shape=(16, 16), form="a", clip=True)
                b = lm.load(B, coords=(k * 16, t.n * 8), shape=(8, 16), form="b", clip=True)
                lm.mma(acc, a, b)
            lm.store(C, acc, coords=(t.n * 8, t.m * 16), clip=True)
'''

PAGE = Page(
    code="D069",
    title="terms added to a number",
    statement="A fragment that products are added to starts from zero, from a product or from what was loaded or computed, not from another number; so does a tile that a loop adds terms to, a row's or column's sum of what was picked out of it or of exponentials less a maximum, and so do bins in shared memory whose counts, and sums in registers which, are added to those of other CTAs.",
    why="What a sum starts with is part of it: every element is too large by that number, or by it times what the sum is scaled with. Rounding of a narrow output can hide it.",
    failing=edit(_GEMM, ("init=0.0", "init=1.0")),
    passing=_GEMM,
    limits="A number below 0.001 keeps a division finite and is left alone, and so are tiles that are divided by, squared, or under a root or a logarithm (`1 / (1 + d)`), counts, series whose terms are made of the ones before, and sums that are rescaled by a factor that may be zero in the first round: with a maximum that starts from minus infinity, "
    "what online softmax starts its sums from does not matter, and a denominator may start from 1 for a sink. Products whose largest elements are looked for may all be larger by a number, and integers that are shifted right by what rounds them. Other sums of a row or column may be meant to start from a number.",
)

_FLOATS = frozenset({"f32", "f16", "bf16", "f64"})
_CURVED = frozenset({"rcp", "div", "rsqrt", "sqrt", "log", "log2"})
_DEPTH = 6


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if not any(number_of(n) is not None for op in STARTS for n in said.get(op, ())):
        return
    told = {(f.facts.get("role"), f.facts.get("name")) for f in summed_tiles(program)}
    for x in started_sums(program):
        if (x.role, x.name) in told or not kept(program, x) or (x.type.form not in ("rowvec", "colvec") and _offset(program, x)):
            continue
        term = next((s for s in x.terms if s.op.name == "mma"), None)
        what = "products are added" if term is not None else "a loop adds"
        if term is None:
            term = _term(program, x)
        elif _shifted(program, x):
            continue
        if term is None and (part := _part(program, x)) is not None:
            yield Fault("D069", f"`{written(x.name)}` starts from {x.number}, and every block adds it to `{part.op.attrs.get('tensor')}` with that: the sum has the number once a block", x.start.op.span, ((part.op.span, "added here"),),
                        "start from zero", (), {"role": x.role, "name": x.name})  # fmt: skip
        if term is not None:
            told.add((x.role, x.name))
            yield Fault("D069", f"`{written(x.name)}` starts from {x.number}, and {what} to that: the sum is too large by what it starts with", x.start.op.span, ((term.op.span, "added here"),),
                        "start from zero, and add the number where the sum is used", (), {"role": x.role, "name": x.name})  # fmt: skip
    yield from _bins(program)


def _part(program: Program, x: Sum) -> Site | None:
    """Where a sum to which nothing but terms was added is itself added to memory, as other blocks add theirs."""
    if x.factors:
        return None
    return next((s for s in sites(program).of("atomic") if s.role.name == x.role and s.order > x.start.order and s.op.attrs.get("op", "add") == "add" and "tensor" in s.op.attrs
                 and isinstance(e := s.op.operands.get("x"), Expr) and e.op == "var" and e.attrs["name"] == x.name), None)  # fmt: skip


def _offset(program: Program, x: Sum) -> bool:
    """Whether a sum is divided by, or its root, logarithm or square is taken: `1 + d` is a kernel's own form, as in `1 / (1 + d)`, `log(1 + d)` and `(1 + d) ** 2`."""
    for s in sites(program).of_role(x.role):
        for e in s.op.operands.values():
            for n in e.parts() if isinstance(e, Expr) and s.order > x.start.order else ():
                mine = [a.op == "var" and a.attrs["name"] == x.name for a in n.args]
                if (n.op in _CURVED and mine[-1]) or (n.op == "mul" and all(mine)):
                    return True
    return False


def _shifted(program: Program, x: Sum) -> bool:
    """Whether a product is looked at for its largest elements, of which a number in all of them changes neither the order nor the softmax, or is an integer that is cut, which the number rounds."""
    names = {x.name}
    for s in sites(program).of_role(x.role):
        if any(n.op in ("shr", "floordiv") and any(m.op == "var" and m.attrs["name"] == x.name for m in n.args[0].parts()) for e in s.op.operands.values() if isinstance(e, Expr) for n in e.parts()):
            return True
    for s in sites(program).of_role(x.role):
        value = s.op.operands.get("value")
        if s.order <= x.start.order or not isinstance(value, Expr):
            continue
        for n in value.parts():
            if n.op not in ("topk", "argmax", "argmin") and (n.op != "reduce" or n.attrs.get("op") not in ("max", "min")):
                continue
            if any(m.op == "var" and m.attrs["name"] in names for m in n.args[0].parts()) and not any(m.op == "abs" for m in n.args[0].parts()):
                return True
        if value.op in ("where", "mul", "cast", "add", "sub") and any(m.op == "var" and m.attrs["name"] in names for m in value.parts()):
            names |= set(s.targets)
    return False


def _term(program: Program, x: Sum) -> Site | None:
    """The first term that a loop adds to a tile or a vector, where the sum is certainly one that counts from zero."""
    s = next((s for s in x.terms if _rounds(x, s)), None)
    if s is None or x.type.dtype not in _FLOATS:
        return None
    e = added(s, x.name)
    if e is None or _counted(program, x.role, e) or any(not isinstance(f.type, FragT) for _, f in x.factors):
        return None
    if x.type.form not in ("rowvec", "colvec"):
        return None if _series(program, x, s, e) else s
    if x.factors:
        return None
    return s if _picked(program, x.role, e) or (_first_is_zero(x, s) and _weighed(program, x.role, e)) else None


def _rounds(x: Sum, s: Site) -> tuple[For, ...]:
    """The counted loops that lie between the start of a sum and one of its terms."""
    return tuple(y for y in s.loops[len(x.start.loops) :] if y.kind != "tiles")


def _first_is_zero(x: Sum, s: Site) -> bool:
    """Whether the loop counts from zero: one that starts later may have its first element in the start."""
    return all(y.lo is not None and y.lo.op == "const" and y.lo.attrs["value"] == 0 for y in _rounds(x, s))


def _made(program: Program, role: str, e: Expr, depth: int = _DEPTH) -> Iterator[Expr]:
    """The nodes of an expression and of what its names of fragments stand for, wherever they are given it."""
    for n in e.parts():
        yield n
        if n.op == "var" and depth and n.type is not None and not isinstance(n.type, str):
            for b in sites(program).results.get((role, str(n.attrs["name"])), ()):
                value = b.op.operands.get("value")
                if isinstance(value, Expr) and not any(p.op == "var" and p.attrs["name"] == n.attrs["name"] for p in value.parts()):
                    yield from _made(program, role, value, depth - 1)


def _opened(program: Program, role: str, e: Expr) -> Expr:
    """What a name that is bound once stands for, finished or cast."""
    for _ in range(_DEPTH):
        if e.op in ("finish", "cast"):
            e = e.args[0]
        elif e.op == "var":
            bound = sites(program).results.get((role, str(e.attrs["name"])), ())
            value = bound[0].op.operands.get("value") if len(bound) == 1 and bound[0].op.name == "compute" else None
            if not isinstance(value, Expr):
                return e
            e = value
        else:
            return e
    return e


def _counted(program: Program, role: str, e: Expr) -> bool:
    """Whether a term counts: a number, or a choice between numbers, or what such are added up to."""
    e = _opened(program, role, e)
    if e.op in ("reduce", "sum"):
        return _counted(program, role, e.args[0])
    if e.op in ("where", "select"):
        return all(_counted(program, role, a) for a in e.args[1:])
    return e.op in ("const", "param", *STARTS) or getattr(e.type, "dtype", "") == "bool"


def _series(program: Program, x: Sum, s: Site, e: Expr) -> bool:
    """Whether a term is made of something that the loop carries from round to round by itself, as the powers of a series are."""
    loops = _rounds(x, s)
    carried = set()
    for b in sites(program).of_role(x.role):
        if any(y in loops for y in b.loops):
            value = b.op.operands.get("value")
            carried |= {t for t in b.targets if t != x.name and isinstance(value, Expr) and any(n.op == "var" and n.attrs["name"] == t for n in value.parts())}
    return any(n.op == "var" and n.attrs["name"] in carried for n in _made(program, x.role, e))


def _picked(program: Program, role: str, e: Expr) -> bool:
    """Whether a term is the sum of a row of which a comparison with one position leaves one element."""
    e = _opened(program, role, e)
    if e.op not in ("reduce", "sum") or (e.op == "reduce" and e.attrs.get("op") != "add"):
        return False
    x = _opened(program, role, e.args[0])
    if x.op != "where" or not any(n.op == "eq" and any(a.op == "iota" for m in n.args for a in _made(program, role, m)) for n in _made(program, role, x.args[0])):
        return False
    return x.args[2].op == "const" and x.args[2].attrs["value"] == 0


def _weighed(program: Program, role: str, e: Expr) -> bool:
    """Whether a term is made of an exponential less a maximum: the largest of them is one."""
    for n in _made(program, role, e):
        if n.op in EXPONENTIALS:
            of = n.args[0]
            for d in of.parts():
                if d.op == "sub" and isinstance(d.type, FragT) and any(_maximum(program, role, m) for m in d.args[1].parts()):
                    return True
    return False


def _maximum(program: Program, role: str, e: Expr) -> bool:
    """Whether a name holds a maximum of what the sum is of."""
    if e.op != "var" or not isinstance(e.type, FragT):
        return False
    for b in sites(program).results.get((role, str(e.attrs["name"])), ()):
        value = b.op.operands.get("value")
        for n in _made(program, role, value) if isinstance(value, Expr) else ():
            if n.op in ("max", "list_item") or (n.op == "reduce" and n.attrs.get("op") == "max"):
                return True
    return False


def _bins(program: Program) -> Iterator[Fault]:
    """Bins that start from a number, are counted into and handed on as a part of a larger count."""
    counts = [s for s in sites(program).of("atomic") if s.op.attrs.get("op", "add") == "add" and s.op.operands.get("idx") is not None and s.op.operands.get("view") is not None]
    for s in sites(program).of("store") if counts else ():
        x, view = s.op.operands.get("x"), _view(s)
        start = number_of(_opened(program, s.role.name, x)) if isinstance(x, Expr) and view else None
        if start is None:
            continue
        count = next((c for c in counts if _view(c) == view and (c.role is not s.role or c.order > s.order)), None)
        if count is None or any(_view(o) == view and o is not s for o in sites(program).of("store", "tma_load", "cp_async")):
            continue
        part = next((p for p in sites(program).of("atomic", "send") if p is not count and _reads(program, p, view)), None)
        if part is not None:
            yield Fault("D069", f"the counts in `{view}` start from {start}, and each of them is a part of a sum: it has that number once a part", s.op.span, ((count.op.span, "counted here"), (part.op.span, "handed on here")),
                        "start from zero", (), {"role": s.role.name, "view": view})  # fmt: skip


def _view(s: Site) -> str:
    """The view that an operation is on."""
    e = s.op.operands.get("view")
    while isinstance(e, Expr) and e.op != "view" and e.args:
        e = e.args[0]
    return str(e.attrs["view"]) if isinstance(e, Expr) and e.op == "view" else ""


def _reads(program: Program, s: Site, view: str) -> bool:
    """Whether what an operation hands on was loaded from a view."""
    x = s.op.operands.get("x")
    if not isinstance(x, Expr):
        return False
    names = {str(n.attrs["name"]) for n in x.parts() if n.op == "var"}
    loads = [y for name in names for y in sites(program).results.get((s.role.name, name), ()) if y.op.name == "load"]
    return any(_view(y) == view for y in loads)
