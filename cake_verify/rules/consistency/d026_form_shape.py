"""D026: a register form can hold this shape with the warps that execute it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from cake_ir.derive.structure import nodes
from cake_ir.fact import fact
from cake_ir.fault import Fault
from cake_ir.forms import MOST_REGISTERS, Fragment, fragment_problem, registers_32
from cake_ir.placement import fragment
from cake_ir.program import Expr, Program
from cake_ir.types import FragT, PairT, Type
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D026",
    title="the form cannot hold this shape",
    statement="Rows and columns of a fragment divide over the warps and lanes of its form: `acc` and `a` rows in blocks of 16 a warp, `acc` columns in blocks of 8, `rows` in blocks of 32 a warp; it takes at most 512 registers a thread.",
    why="A form fixes which thread owns which element. A shape that does not divide has elements that no thread owns.",
    failing=edit(TILE, ("lm.store(C, acc, coords=(0, 0))", "lm.store(C, acc, coords=(0, 0))\n        x = lm.frag(shape=(40, 8), dtype=lm.f32, form=\"acc\", init=0.0)")),
    passing=TILE,
)


_TYPE = attrgetter("type")


def check(program: Program) -> Iterator[Fault]:
    told: set[tuple[str, int, int, int]] = set()  # what is computed from a fragment has its shape, in other types
    seen: dict[int, set[int]] = {}  # the same by identity, which is quicker: most nodes share the type of a name
    of_role = {name: (r.member_warps, seen.setdefault(r.member_warps, set())) for name, r in program.roles.items()}
    found = nodes(program)
    for site in sites(program).ops:
        warps, here = of_role[site.role.name]
        if id(site.op.type) in here and here.issuperset(map(id, map(_TYPE, found[site.op.id]))):
            continue
        for e in (*found[site.op.id], None):  # every node of its operands, then its result
            t = site.op.type if e is None else e.type
            if id(t) in here or (e is None and isinstance(t, PairT)):
                continue
            here.add(id(t))
            if isinstance(t, PairT):
                t = t.value
            problem = _problem(t, warps) if isinstance(t, FragT) else None
            if problem and isinstance(t, FragT) and (t.form, t.rows, t.cols, warps) not in told and t not in accumulators(program):  # H004 judges the shapes of accumulators
                told.add((t.form, t.rows, t.cols, warps))
                yield Fault("D026", problem, e.span if e is not None else site.op.span, ((site.role.span, f"a member of `{site.role.name}` has {warps} warps"),),
                            help="one element is a number: read it with `lm.ld(tensor, i)`, of a tensor with one axis" if e is None and site.op.name == "load" and t.rows * t.cols == 1 else "",
                            facts={"form": t.form, "rows": t.rows, "cols": t.cols, "warps": warps})  # fmt: skip


@fact
def accumulators(program: Program) -> frozenset[Type]:
    """The types of what products add to."""
    return frozenset([acc.type for op in program.ops if isinstance(acc := op.operands.get("acc"), Expr)])


def _problem(t: FragT, warps: int) -> str | None:
    f = fragment(t, warps)
    return fragment_problem(f) or _too_large(t, f)


def _too_large(t: FragT, f: Fragment) -> str | None:
    """Whether the fragment is far beyond what a thread can hold, so that it would live in local memory."""
    held = registers_32(f) * t.stages if t.dtype != "bool" else 0
    return f"a fragment of {'x'.join(map(str, t.shape))} {t.dtype} takes {held:,} registers a thread, a thread has 255" if held > MOST_REGISTERS else None
