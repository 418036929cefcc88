"""D080: what a tile reads from the state is weighed by how far its rows lie behind the state, as what it reads from its own chunk is."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.operand_places import placed_by
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.sites import Site, sites, starts_anew
from cake_verify.analyses.trips import canonical, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import CHUNK, edit

PAGE = Page(
    code="D080",
    title="a part that is not weighed",
    statement="Where a tile is multiplied with another one of its chunk, weighed by the exponential of what lies between row and column (`lm.exp(row - col)`), and with a state, another one from tile to tile, into the same accumulator, "
    "the state's part is weighed by the rows, too, before the other is added.",
    why="The state stands in front of the chunk: to a row it has decayed by all that lies before the row. Without the factor old and new are added on different scales, and only the first rows of a chunk look right.",
    failing=edit(CHUNK, ("            y = y * lm.exp(row)\n", "")),
    passing=CHUNK,
    limits="Decided in registers, for two products in a row into one accumulator of which the first has the operand `a` of the product that the second one's operand was made of. Any scaling of the accumulator between the two counts as the one that is right. A matrix that is the same for all tiles is a weight, and no state.",
)


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if not any(_between(n) for op in EXPONENTIALS for n in said.get(op, ())):
        return
    products = [s for s in sites(program).of("mma") if _name(s.op.operands["acc"])]
    for later in products:
        if starts_anew(later.op):
            continue
        name, role = _name(later.op.operands["acc"]), later.role.name
        first = next((s for s in reversed(products) if s.number < later.number and s.role is later.role and s.path == later.path and _name(s.op.operands["acc"]) == name), None)
        if first is None or any(first.order < b.order < later.order for b in sites(program).results.get((role, name), ())):
            continue
        weighed = next(_weighed(program, later, products), None)
        a = first.op.operands["a"]
        if weighed is not None and isinstance(a, Expr) and weighed[0] == _tile(program, role, a) and not _a_weight(program, first):
            exponential = weighed[1]
            message = f"`{written(name)}` adds up what is weighed by the exponential of row less column and, unweighed, what the same rows read here"
            at = exponential.span if exponential.span.line else later.op.span
            yield Fault("D080", message, first.op.span, ((at, "weighed here"), (later.op.span, f"{call(later.op)} adds it")), f"weigh it first: `{written(name)} = {written(name)} * lm.exp(..)` of the rows", (),
                        {"role": role, "name": name})  # fmt: skip
            return


def _between(n: Expr) -> bool:
    """Whether an exponential is one of a row's number less a column's."""
    return any(x.op == "sub" and [a.type.form for a in x.args if isinstance(a.type, FragT)] == ["rowvec", "colvec"] for x in n.args[0].parts())


def _name(acc: object) -> str:
    return str(acc.attrs["name"]) if isinstance(acc, Expr) and acc.op == "var" and isinstance(acc.type, FragT) else ""


def _a_weight(program: Program, s: Site) -> bool:
    """Whether what rows are multiplied with is the same for all tiles and rounds."""
    b = s.op.operands["b"]
    return isinstance(b, Expr) and placed_by(program, s.role.name, b) == frozenset()


def _tile(program: Program, role: str, e: Expr) -> str:
    """An operand as text, a matrix that was loaded from shared memory as that part of it."""
    bound = sites(program).results.get((role, str(e.attrs["name"])), ()) if e.op == "var" else ()
    view = bound[0].op.operands.get("view") if len(bound) == 1 and bound[0].op.name in ("ldmatrix", "load") else None
    return canonical(view if isinstance(view, Expr) else e)


def _weighed(program: Program, s: Site, products: list[Site]) -> Iterator[tuple[str, Expr]]:
    """The tile that the rows of an operand come from, and the exponential by which the product of it was weighed."""
    role, found = s.role.name, sites(program)
    a = s.op.operands["a"]
    waiting, seen = [a] if isinstance(a, Expr) else [], set[str]()
    exponential: Expr | None = None
    while waiting:
        parts = waiting.pop().parts()
        exponential = next((n for n in parts if n.op in EXPONENTIALS and _between(n)), exponential)
        for n in parts:
            if n.op != "var" or not isinstance(n.type, FragT) or n.type.form in ("rowvec", "colvec") or str(n.attrs["name"]) in seen:
                continue
            name = str(n.attrs["name"])
            seen.add(name)
            waiting += [v for b in found.results.get((role, name), ()) if b.op.name == "compute" and b.order < s.order and isinstance(v := b.op.operands["value"], Expr)]
            if exponential is not None:
                for x in products:
                    left = x.op.operands["a"]
                    if x.role is s.role and _name(x.op.operands["acc"]) == name and isinstance(left, Expr):
                        yield _tile(program, role, left), exponential
