"""Q015: a check for "none" lets the first index through."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import OPPOSITE, conjuncts, nodes
from cake_ir.fault import Fault
from cake_ir.program import AssumeValues, Expr, Program
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses import edits, ranges
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_APPEND = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def append(lm, X: LM.gmem2d[LM.bf16, "T", 128], SLOT: LM.gmem1d[LM.i32, "T"].const, CACHE: LM.gmem2d[LM.bf16, "S", 128], T: LM.i32, S: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(SLOT, -1, S)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            slot = lm.ld(SLOT, t.t)
            if slot >= 0:
                lm.store(CACHE, lm.load(X, coords=(0, t.t), shape=(128,)), coords=(0, slot))
'''

PAGE = Page(
    code="Q015",
    title="a check that leaves out the first index",
    statement="Where the numbers of a tensor are indices and negative ones stand for none, the check for that lets 0 through.",
    why="`slot > 0` skips the token whose slot is the first one: its row keeps what it held, and only requests that own slot 0 are wrong.",
    failing=edit(_APPEND, ("if slot >= 0:", "if slot > 0:")),
    passing=_APPEND,
    limits="Told of conditions that part 1 from 0 and below, on a number of a tensor for which `lm.assume_values` states a negative least value, where the number, or what is counted on from it (of `n - 1` 0 has none), is a coordinate of what the condition guards (or of what stands in its other arm), or where positions are compared with it; where nothing is stated, of those that let the number run to the end of that axis. "
    "A tensor that keeps its first row for none has a least value of 0.",
)


def check(program: Program) -> Iterator[Fault]:
    if not sites(program).of("ld"):
        return
    any_stated = any(isinstance(d, AssumeValues) for d in program.decls)
    told: set[int] = set()
    made = ("compute",) if any_stated and "eq" in mentions(program) else ()
    for s in sites(program).of("load", "store", "atomic", "ld", "cp_async", "tma_load", "tma_store", "tma_reduce", *made):
        if not s.arms or (s.op.name == "compute" and not _zeroed(s)):
            continue
        for p, taken in s.branches():
            arm = taken is not (s.op.name == "compute")  # what is made zero is so for none
            conds = conjuncts(p.cond) if arm else _denied(p.cond)
            for c in conds if any_stated or len(conds) > 1 else ():
                once = id(c if arm else p.cond)  # what is denied is made anew
                index = _index(program, s, c, conds) if once not in told else None
                position = _position(program, s, index) if index is not None and not _is_coordinate(program, s, index) else None
                if index is not None and (position is not None or _is_coordinate(program, s, index)):
                    told.add(once)
                    name = spoken(c.args[0] if c.op in ("gt", "ge") else c.args[1])
                    stated = declared_values(program, str(index.attrs["tensor"]))
                    why = f"none is a negative `{name}`" if stated is not None else f"the check lets every other index of it through, and nothing says that 0 is none: `lm.assume_values({index.attrs['tensor']}, 0, ..)`"
                    what = f"index 0 of `{s.op.attrs.get('tensor')}`" if position is None else "position 0"
                    yield Fault("Q015", f"`{spoken(c if arm else p.cond)}` {'leaves out' if arm else 'takes for none'} {what}: {why}", c.span if c.span.line else p.head,
                                ((s.op.span, f"{call(s.op)} does not come to it" if s.op.name != "compute" else "made zero here"), *(((position, "compared with positions here"),) if position is not None else ()), *(((stated.span, "these values are assumed"),) if stated is not None else ())),
                                "let 0 through", (edits.replace(c.span, f"{name} >= 0" if arm else f"{name} < 0"),) if c.span.line else (), {"role": s.role.name, "tensor": s.op.attrs.get("tensor")})  # fmt: skip


def _zeroed(s: Site) -> bool:
    """Whether an assignment multiplies what its name held by zero."""
    e = s.op.operands["value"]
    return isinstance(e, Expr) and e.op == "mul" and any(a.op == "const" and a.attrs["value"] == 0 for a in e.args) and any(a.op == "var" and a.attrs["name"] in s.targets for a in e.args)


def _denied(e: Expr) -> list[Expr]:
    """What holds in the other arm of a branch on one comparison, at that comparison's place."""
    return [Expr(OPPOSITE[e.op], e.args, e.attrs, e.type, e.span)] if e.op in OPPOSITE else []


def _index(program: Program, s: Site, c: Expr, conds: list[Expr]) -> Expr | None:
    """The number from memory that a condition parts between 0 and 1, where its least value is stated and negative, or where nothing is stated and the
    condition beside it lets the number reach the last index of what is accessed."""
    if c.op not in ("gt", "ge", "lt", "le"):
        return None
    x, bound = c.args if c.op in ("gt", "ge") else c.args[::-1]
    least = ranges.of(program, s.role.name, bound).exact
    if least is None or least + (c.op in ("gt", "lt")) != 1:
        return None
    e = resolver_of(program, s.role.name)(x)
    stated = declared_values(program, str(e.attrs.get("tensor"))) if e.op == "ld" else None
    lowest = ranges.of(program, None, stated.lo).exact if stated is not None else None
    if stated is None and e.op == "ld":
        return e if any(_to_the_end(program, s, e, other) for other in conds) else None
    return e if lowest is not None and lowest < 0 else None


def _to_the_end(program: Program, s: Site, index: Expr, c: Expr) -> bool:
    """Whether a condition lets a number run to the end of the axis along which it is a coordinate, and no further."""
    coords, tensor = s.op.operands.get("coords"), program.tensors.get(str(s.op.attrs.get("tensor")))
    if c.op not in ("lt", "gt") or not isinstance(coords, tuple) or tensor is None or len(tensor.extents) != len(coords):
        return False
    resolve = resolver_of(program, s.role.name)
    x, end = (resolve(a) for a in (c.args if c.op == "lt" else c.args[::-1]))
    if canonical(x) != canonical(index):
        return False
    extents = [tensor.extents[len(coords) - 1 - k] for k, e in enumerate(coords) if not isinstance(e.type, FragT) and canonical(resolve(e)) == canonical(index)]
    return bool(extents) and all((end.attrs.get("name") if end.op == "param" else end.attrs.get("value")) == n for n in extents)


def _position(program: Program, s: Site, index: Expr) -> Span | None:
    """Where positions of elements are compared with a number whose values are stated: it says which of them is meant."""
    if declared_values(program, str(index.attrs["tensor"])) is None:
        return None
    text, role = canonical(index), s.role.name
    for y in sites(program).of_role(role):
        for n in nodes(program)[y.op.id]:
            if n.op == "eq" and (number := next((a for a in n.args if not isinstance(a.type, FragT)), None)) is not None and canonical(resolver_of(program, role)(number)) == text:
                run = next((a for a in n.args if isinstance(a.type, FragT)), None)
                if run is not None and run_of(program, role, run) is not None:
                    return n.span if n.span.line else y.op.span
    return None


def _is_coordinate(program: Program, s: Site, index: Expr) -> bool:
    """Whether an access has the number for a coordinate, or one that is counted from it where its tensor's values are stated."""
    coords = s.op.operands.get("coords")
    entries = coords if isinstance(coords, tuple) else (s.op.operands.get("i"),)
    text, resolve = canonical(index), resolver_of(program, s.role.name)
    counted = declared_values(program, str(index.attrs["tensor"])) is not None
    places = [resolve(e) for e in entries if isinstance(e, Expr) and not isinstance(e.type, FragT) and e.op != "const"]
    return any(canonical(n) == text for e in places if linear(e)[0] >= 0 for n in (e.parts() if counted else (e,)) if n.op == "ld" or n is e)  # before 0, as `n - 1`, there is nothing
