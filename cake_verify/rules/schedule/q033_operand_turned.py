"""Q033: the operands of a product are the way round that is meant."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.operand_axes import Along, Product, accumulations
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.words import call, span_of
from cake_verify.rule import Page
from cake_verify.rules.examples import CHUNK, edit

PAGE = Page(
    code="Q033",
    title="an operand of a product the other way round",
    statement="Both operands of a product are summed over one axis; where its terms are known, an accumulator's rows (and columns) run along one axis in all products that are added to it: "
    "none of them sums over what the rows of another one are, and has other rows.",
    why="Square tiles fit either way round. An operand without its `.T`, or `a` and `b` exchanged, multiplies numbers that do not belong together: nothing is out of bounds and every number looks plausible.",
    failing=edit(CHUNK, ("lm.mma(z, q.ldmatrix(form=\"a\"), k.ldmatrix(form=\"b\"), init=True)", "lm.mma(z, k.ldmatrix(form=\"a\"), q.ldmatrix(form=\"b\"), init=True)")),
    passing=CHUNK,
    limits="Axes are those of the tensors that tiles were loaded from, told apart by the names or numbers in their declarations, and for one tensor by their places. Followed through names, casts, elementwise operations, "
    "products, shared and tensor memory; nothing is said of programs with one product, of rows gathered by number, or of an axis that two declarations may mean. Both halves of a symmetric product, and a square matrix beside its transpose, pass.",
)
YIELDS = True


def check(program: Program) -> Iterator[Fault]:
    if len(sites(program).of("mma")) < 2:
        return  # what one product alone multiplies is S034's
    for group in accumulations(program):
        for p in group:
            told = _crosswise(program, p) or next((f for other in group if other is not p and (f := _against(program, p, other)) is not None and not _either(p.site, other.site)), None)
            if told is not None:
                yield told
                return


def _crosswise(program: Program, p: Product) -> Fault | None:
    """One operand is summed over an axis of which the other has the elements beside what it is summed over."""
    (a, over_a), (b, over_b) = p.a, p.b
    if not over_a or not over_b or not _differ(program, over_a, over_b):
        return None
    turned = "b" if _same(over_a, b) else "a" if _same(a, over_b) else ""
    if not turned or (_loaded(a, over_a) and not (_named(over_a, over_a) and _named(over_b, over_b))):
        return None  # a stretch of an axis may be one of several: blocks on a diagonal
    message = f"{call(p.site.op)} sums over {_words(over_a)} in `a` and over {_words(over_b)} in `b`, and `{turned}` has {_words(b if turned == 'b' else a)} the other way"
    help_text = "transpose it (`.T`), or exchange the operands of the product that it comes from"
    return Fault("Q033", message, span_of(p.site.op, turned), ((p.site.op.span, "multiplied here"),), help_text, (), {"role": p.site.role.name}, cause="operand turned")


def _against(program: Program, p: Product, other: Product) -> Fault | None:
    """Two products into one accumulator of which one has another axis along the rows or columns."""
    for axis, (mine, over), (theirs, their_over), name in ((0, p.a, other.a, "a"), (1, p.b, other.b, "b")):
        if not mine or not over or not theirs or _same(mine, their_over):
            continue  # each sums over the rows of the other: two halves of something symmetric
        if (_named(theirs, over) and (_named(mine, mine) or not _loaded(*p.a)) and _differ(program, theirs, mine)) or (theirs & over and not _tensors(theirs) & _tensors(mine)):
            side = ("rows", "columns")[axis]
            message = f"{call(p.site.op)} sums over {_words(over)} in `{name}`, where another product gives the accumulator its {side}, and its own {side} run along {_words(mine)}"
            return _fault(p, other, name, message)
    (rows, _), (cols, _), (their_rows, _), (their_cols, _) = p.a, p.b, other.a, other.b
    if not rows or not cols or not their_rows or not their_cols or p.site.number > other.site.number:
        return None
    if _same(rows, their_cols) and _same(cols, their_rows) and not _same(rows, their_rows) and not _same(cols, their_cols) and _spelled(rows).isdisjoint(_spelled(cols)):
        message = f"{call(p.site.op)} has rows along {_words(rows)} and columns along {_words(cols)}, and another product adds to the same accumulator the other way round"
        return _fault(p, other, "a", message)
    return None


def _either(one: Site, other: Site) -> bool:
    """Whether two operations stand in different arms of one branch."""
    arms = {id(x): arm for x, arm in one.branches()}
    return any(arms.get(id(x), arm) != arm for x, arm in other.branches())


def _fault(p: Product, other: Product, operand: str, message: str) -> Fault:
    return Fault("Q033", message, span_of(p.site.op, operand), ((p.site.op.span, "multiplied here"), (other.site.op.span, "the other product")),
                 "exchange `a` and `b` of one of the products, or transpose an operand: `.T`", (), {"role": p.site.role.name}, cause="operand turned")  # fmt: skip


def _loaded(rows: Along, cols: Along) -> bool:
    """Whether an operand is a part of one tensor, and not made by a product."""
    return not _tensors(rows).isdisjoint(_tensors(cols))


def _tensors(x: Along) -> set[str]:
    return {t for t, _, _ in x or ()}


def _spelled(x: Along) -> set[str | int]:
    return {spelled for _, _, spelled in x or ()}


def _named(one: Along, other: Along) -> bool:
    """Whether two sides run along one axis by its name."""
    names = _spelled(one)
    return len(names) == 1 and names == _spelled(other) and isinstance(next(iter(names)), str)


def _same(one: Along, other: Along) -> bool:
    """Whether two sides run along one axis: by its name, or as it is one tensor's."""
    return bool(one and other and one & other) or _named(one, other)


def _differ(program: Program, one: Along, other: Along) -> bool:
    """Whether two sides certainly run along two axes: by two names, two numbers, or a number and an argument."""
    assert one and other
    for _, _, x in one:
        for _, _, y in other:
            if x == y or (type(x) is not type(y) and (x if isinstance(x, str) else y) not in program.scalars):
                return False
    return True


def _words(x: Along) -> str:
    tensor, _, spelled = sorted(x or (), key=str)[0]
    return f"`{spelled}` of `{tensor}`" if isinstance(spelled, str) else f"the {spelled} of `{tensor}`"
