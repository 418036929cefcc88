"""Pure expressions over fragments, evaluated element by element in unrolled loops.

Sub-expressions that have one value a row or a column are computed once in front of the loop. A product that meets a sum is fused here and
nowhere else: the compiler gets `__fmaf_rn` or a rounded `__fmul_rn`, so that every build rounds alike.
"""

from __future__ import annotations

from dataclasses import replace

from cake_backend.cuda import conversions
from cake_backend.cuda.arithmetic import binary_text, floored, operand, unary_text
from cake_backend.cuda.column_masks import block_comparison
from cake_backend.cuda.context import Context, Lazy, PairPlace, Place
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, ctype, declare, elements, loop, operand_order, packing, tile_blocks, tile_columns
from cake_backend.cuda.positions import TILES, At, trips
from cake_backend.cuda.scalars import CTYPE, number, scalar
from cake_ir.ops.elementwise import ARITH, COMPARE, LOGIC, UNARY
from cake_ir.program import Expr
from cake_ir.types import FragT, PairT, ScalarT

BINARY = ARITH | COMPARE | LOGIC
_RANK = {"scalar": 0, "rowvec": 1, "colvec": 1}
_LEAVES = frozenset({"worst", "var", "const", "iota", "in_bounds", "item", "frag_cols", "frag_rows", "frag_stage", "param"})
_MATERIALISED = frozenset({"reduce", "sum", "finish", "argmin", "argmax", "transpose", "scan", "amax_scale", "excess"})


def rank(t: object) -> int:
    """0 for a uniform value, 1 for one value a row or column, 2 for a tile or vec."""
    return _RANK.get(t.form, 2) if isinstance(t, FragT) else 0


def kind_of(dtype: str) -> str:
    """`float`, `int` or `bool`: the arithmetic that a dtype's values use."""
    return {"int": "int", "u32": "int", "i64": "int", "u64": "int", "bool": "bool"}.get(CTYPE[dtype], "float")


def place_of(ctx: Context, e: Expr) -> Place:
    """The register array that a variable (or an item of a pair) names."""
    if e.op == "item":
        bound = ctx.lookup(str(e.args[0].attrs["name"]))
        assert isinstance(bound, PairPlace)
        return bound.value if e.attrs["k"] == 0 else bound.index
    bound = ctx.lookup(str(e.attrs["name"]))
    if not isinstance(bound, Place):
        return not_lowered(f"`{e.attrs['name']}` as a fragment", e.span)
    return bound


def resolve(ctx: Context, e: Expr) -> Expr:
    """`e` with lazy names replaced by what they stand for."""
    if e.op == "var" and isinstance(bound := ctx.lookup(str(e.attrs["name"])), Lazy):
        return resolve(ctx, bound.expr)
    if not any(True for x in e.parts() if x.op == "var"):
        return e
    args = tuple(resolve(ctx, a) for a in e.args)
    return e if all(a is b for a, b in zip(args, e.args, strict=True)) else replace(e, args=args)


def prepared(ctx: Context, e: Expr) -> Expr:
    """`e` with reductions, and arithmetic of a lower rank than its surroundings, computed into temporaries beforehand."""
    e = resolve(ctx, e)
    return _prepare(ctx, e, rank(e.type))


def _prepare(ctx: Context, e: Expr, around: int) -> Expr:
    if not isinstance(e.type, FragT | PairT) or e.op in ("var", "const", "item", "worst", "frag", "rowvec", "colvec"):
        return e
    if e.op in _MATERIALISED or _changes_form(e):
        return temporary(ctx, e)
    if e.op in ("iota", "in_bounds"):
        return e
    own = rank(e.type)
    if own < around and _worth_hoisting(e):
        return temporary(ctx, e)
    args = tuple(_prepare(ctx, a, max(own, around)) for a in e.args)
    return e if all(a is b for a, b in zip(args, e.args, strict=True)) else replace(e, args=args)


def _changes_form(e: Expr) -> bool:
    from cake_backend.cuda.form_changes import is_form_change

    return is_form_change(e)


def _worth_hoisting(e: Expr) -> bool:
    """Arithmetic on vectors, but not masks: those cost nothing as predicates and registers as arrays."""
    t = e.type
    return isinstance(t, FragT) and t.dtype != "bool" and any(x.op not in _LEAVES and x.op != "neg" and isinstance(x.type, FragT) for x in e.parts())


def temporary(ctx: Context, e: Expr) -> Expr:
    """Compute `e` into a fresh array and return the variable that names it."""
    from cake_backend.cuda.compute import evaluate_into

    t = e.type
    assert isinstance(t, FragT | PairT)
    base = {"reduce": "reduced", "finish": "finished", "sum": "reduced"}.get(e.op, "once")
    if isinstance(t, PairT):
        pair = PairPlace(declare(ctx, f"{base}_value", t.value), declare(ctx, f"{base}_index", t.index))
        evaluate_into(ctx, pair, e)
        name = pair.value.name
        ctx.role.env[name] = pair
    else:
        place = declare(ctx, base, t.with_(stages=1))
        evaluate_into(ctx, place, e)
        name = place.name
        ctx.role.env[name] = place
    return Expr("var", (), {"name": name}, t, e.span)


def assign_elements(ctx: Context, place: Place, e: Expr, offset: str = "") -> None:
    """The loop that writes every element of `e` into a place; `offset` is added to the register index (one stage of several)."""
    t = place.type
    per = max([packing(t), *(packing(x.type) for x in e.parts() if x.op in _LEAVES and isinstance(x.type, FragT) and same_order(ctx, x.type, t))])
    count = elements(t, ctx.role.warps)
    per = per if count % per == 0 else 1
    n = trips(ctx, t, per)
    words = per // packing(t)
    if n == 1 and per == 1:
        ctx.out.line(f"{place.name}[{offset or '0'}] = {word(ctx, e, t, Index())};")
        return
    with ctx.out.unrolled("i_", n):
        for w in range(words):
            at = loop("i_", per, w * packing(t), n)
            target = at.divided(packing(t))
            ctx.out.line(f"{place.name}[{target}{f' + {offset}' if offset else ''}] = {word(ctx, e, t, at)};")


def same_order(ctx: Context, a: FragT, b: FragT) -> bool:
    """Whether element i of one is element i of the other."""
    if (a.rows, a.cols) != (b.rows, b.cols):
        return False
    return a.form == b.form or (a.form in TILES and b.form in TILES and all(x.form == "acc" or operand_order(x) == 2 for x in (a, b)))


def word(ctx: Context, e: Expr, t: FragT, at: Index) -> str:
    """C text of one register of a place of type `t`: the element at `at`, or the `packing(t)` elements from it on."""
    per = packing(t)
    if per == 1:
        text = element(ctx, e, At(t, at))
        return text[1:-1] if text.startswith("(") and operand(text) == text and _closes_at_end(text) else text
    if e.op == "var" and isinstance(e.type, FragT) and packing(e.type) == per and e.type.dtype == t.dtype and same_order(ctx, e.type, t):
        return f"{place_of(ctx, e).name}[{at.divided(per)}]"
    inner = e
    if e.op == "cast" and e.attrs["dtype"] == t.dtype and str(e.attrs.get("round") or "rn") == "rn":
        source = e.args[0].type
        have = source.dtype if isinstance(source, FragT | ScalarT) else "f32"
        if kind_of(have) == "float" and kind_of(t.dtype) == "float" and have not in ("bf16", "f16", "e4m3", "e5m2"):
            inner = e.args[0]  # the packing instruction rounds
    values = [element(ctx, inner, At(t, at.plus(p))) for p in range(per)]
    return conversions.pack(ctx, t.dtype, values, e.span)


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def element(ctx: Context, e: Expr, at: At) -> str:
    """C text of the value of `e` for the element at `at`, operand-safe."""
    t = e.type
    if isinstance(t, ScalarT | FragT) and e.op == "const":
        return number(e.attrs["value"], CTYPE[t.dtype])
    if isinstance(t, ScalarT):
        return operand(scalar(ctx, e))
    assert isinstance(t, FragT)
    if e.op in _ELEMENT:
        return _ELEMENT[e.op](ctx, e, at)
    if e.op in ("add", "sub") and kind_of(t.dtype) == "float":
        return _round_to(ctx, t.dtype, _sum(ctx, e, at), e)
    if e.op in UNARY:
        x = e.args[0]
        source = x.type.dtype if isinstance(x.type, FragT | ScalarT) else "f32"
        text = unary_text(ctx, e.op, element(ctx, x, at), e.span, integer=kind_of(source) == "int", dtype=source)
        return text if e.op in ("neg", "abs", "not") else _round_to(ctx, t.dtype, text, e)
    if e.op in BINARY:
        if block := block_comparison(ctx, e, at):
            return block
        left, right = literal_as(e.args[0], e.args[1]), literal_as(e.args[1], e.args[0])
        kind = kind_of(dtype(left) if e.args[0].op != "const" else dtype(right))
        if e.op in ("floordiv", "mod"):
            return floored(ctx, e.op, element(ctx, left, at), element(ctx, right, at), dtype(left) if e.args[0].op != "const" else dtype(right), right.attrs.get("value") if right.op == "const" else None)
        text = binary_text(ctx, "div_rn" if e.attrs.get("exact") else e.op, element(ctx, left, at), element(ctx, right, at), e.span, kind=kind)
        return _round_to(ctx, t.dtype, text, e) if e.op in ("mul", "div") and kind == "float" else text
    return not_lowered(f"`{e.op}` inside an expression", e.span)


def dtype(e: Expr) -> str:
    return e.type.dtype if isinstance(e.type, FragT | ScalarT) else "i32"


def literal_as(e: Expr, other: Expr) -> Expr:
    """A literal takes the dtype of what it meets."""
    if e.op == "const" and dtype(e) != dtype(other) and dtype(other) != "bool":
        return replace(e, type=ScalarT(dtype(other)))
    return e


def _round_to(ctx: Context, dtype_: str, text: str, e: Expr) -> str:
    return conversions.rounded(ctx, dtype_, text, e.span) if dtype_ in ("bf16", "f16") else text


def _sum(ctx: Context, e: Expr, at: At) -> str:
    a, b = literal_as(e.args[0], e.args[1]), literal_as(e.args[1], e.args[0])
    minus = e.op == "sub"
    full = rank(e.type)
    for x, y, first in ((a, b, True), (b, a, False)):
        if x.op == "mul" and rank(x.type) == full and dtype(x) in ("f32", "tf32"):
            u, v = literal_as(x.args[0], x.args[1]), literal_as(x.args[1], x.args[0])
            if u.op != "const" and v.op == "const":
                u, v = v, u
            factors = [element(ctx, u, at), element(ctx, v, at)]
            rest = element(ctx, y, at)
            if minus and first:
                rest = negated(rest)
            elif minus:
                factors[0] = negated(factors[0])
            return f"__fmaf_rn({factors[0]}, {factors[1]}, {rest})"
    return binary_text(ctx, e.op, element(ctx, a, at), element(ctx, b, at), e.span, kind="float")


def negated(text: str) -> str:
    """The negative of an operand, folded for literals."""
    if text.startswith("-"):
        return text[1:]
    return f"-{operand(text)}"


def _entry(ctx: Context, e: Expr, at: At) -> str:
    """The value or index of a place of a list."""
    from cake_backend.cuda.lists import entry

    slot = at.row_slot(ctx)
    return entry(ctx, e, 0, slot) if e.op == "worst" else entry(ctx, e.args[0], int(e.attrs["k"]), slot)  # type: ignore[call-overload]  # 0 or 1


def _var(ctx: Context, e: Expr, at: At) -> str:
    if e.op == "item" and e.args[0].op == "list_item":
        return _entry(ctx, e, at)
    place = place_of(ctx, e)
    return read(ctx, place, at, e)


def read(ctx: Context, place: Place, at: At, e: Expr, offset: str = "") -> str:
    """The element of an array that belongs to the position `at`, which may be of a higher rank than the array."""
    t = e.type
    assert isinstance(t, FragT)
    if t.form == "scalar":
        return f"{place.name}[0]"
    if t.form == "rowvec" and at.type.form != "rowvec":
        index = at.row_slot(ctx)
    elif t.form == "colvec" and at.type.form != "colvec":
        index = at.col_slot(ctx)
    else:
        index = ""
    per = packing(place.type)
    if per > 1:
        if index:
            word_, sub = f"({index}) / {per}", f"({index}) % {per}"
        else:
            word_, sub = at.packed(per)
        return conversions.unpack(ctx, t.dtype, f"{place.name}[{word_}{f' + {offset}' if offset else ''}]", sub, e.span)
    index = index or at.flat
    return f"{place.name}[{index}{f' + {offset}' if offset else ''}]"


def _slice(ctx: Context, e: Expr, at: At) -> str:
    """A part of a fragment: the parent's element, whose index is this one's plus a compile-time or unrolled offset."""
    inner = e.args[0]
    if inner.op in ("frag_cols", "frag_rows"):
        return not_lowered("a slice of a slice of a fragment", e.span)
    place, offset = stage_place(ctx, inner)
    return read_slice(ctx, e, place, offset, at)


def stage_place(ctx: Context, e: Expr) -> tuple[Place, str]:
    """The array of a place expression and the first register of its stage."""
    if e.op == "frag_stage":
        place = place_of(ctx, e.args[0])
        from cake_backend.cuda.rings import slot_index

        index = slot_index(ctx, e.args[1], place.type.stages)
        number_ = index.rstrip("u")
        if not number_.isdigit():
            not_lowered("a fragment array indexed by a ring position", e.span, "index it with constants, or with a ring of its own that carries no barrier")
        return place, str(int(number_) * place.count) if number_ != "0" else ""
    return place_of(ctx, e), ""


def read_slice(ctx: Context, e: Expr, place: Place, offset: str, at: At) -> str:
    parent, t = place.type, e.type
    assert isinstance(t, FragT)
    lo, per = e.args[1], packing(place.type)
    if parent.form not in TILES or (parent.warps and e.op == "frag_cols" and parent.warps[1] > 1) or (parent.warps and e.op == "frag_rows"):
        return not_lowered("a slice of this fragment form", e.span)
    blocks, columns = tile_blocks(parent, ctx.role.warps), tile_columns(parent, ctx.role.warps)
    if e.op == "frag_rows":
        unit = columns * 4 // (16 * ctx.role.warps)
        shift = scaled_int(ctx, lo, columns * 4, 16 * ctx.role.warps)
        del unit
        index = at.flat
    elif blocks == 1:
        shift = scaled_int(ctx, lo, 1, 2)
        index = at.flat
    else:
        own = t.cols // 8
        shift = scaled_int(ctx, lo, 1, 2)
        index = f"({at.flat}) / {4 * own} * {4 * columns} + ({at.flat}) % {4 * own}"
    where = " + ".join(x for x in (index, shift) if x and x != "0")
    if per > 1:
        return conversions.unpack(ctx, t.dtype, f"{place.name}[({where or '0'}) / {per}{f' + {offset}' if offset else ''}]", f"({where or '0'}) % {per}", e.span)
    return f"{place.name}[{where or '0'}{f' + {offset}' if offset else ''}]"


def scaled_int(ctx: Context, lo: Expr, by: int, over: int) -> str:
    """C text of `lo * by / over`, exact by the slice's alignment; folded through one multiplication."""
    if lo.op == "const":
        v = int(lo.attrs["value"]) * by // over  # type: ignore[call-overload]  # constants of the index arithmetic are ints
        return str(v) if v else ""
    if lo.op == "mul" and any(a.op == "const" for a in lo.args):
        c, x = lo.args if lo.args[0].op == "const" else (lo.args[1], lo.args[0])
        k = int(c.attrs["value"]) * by  # type: ignore[call-overload]  # as above
        if k % over == 0:
            return f"{k // over} * {operand(scalar(ctx, x))}"
    return f"{operand(scalar(ctx, lo))} * {by} / {over}" if by != 1 else f"{operand(scalar(ctx, lo))} / {over}"


def _iota(ctx: Context, e: Expr, at: At) -> str:
    base = e.args[1] if len(e.args) > 1 else None
    along_rows = e.attrs["axis"] == 0
    t = e.type
    if isinstance(t, FragT) and t.form == "vec" and t.rank == 1:
        along_rows = False
    where = at.row(ctx) if along_rows else at.col(ctx)
    if base is None or (base.op == "const" and base.attrs["value"] == 0):
        return operand(where)
    return f"({scalar(ctx, base)} + {where})"


def _in_bounds(ctx: Context, e: Expr, at: At) -> str:
    rows, cols = e.args[1], e.args[2]
    return f"({operand(at.row(ctx))} < {operand(scalar(ctx, rows))} && {operand(at.col(ctx))} < {operand(scalar(ctx, cols))})"


def _where(ctx: Context, e: Expr, at: At) -> str:
    c, x, y = e.args
    x, y = literal_as(x, y), literal_as(y, x)
    return f"({element(ctx, c, at)} ? {element(ctx, x, at)} : {element(ctx, y, at)})"


def _fma(ctx: Context, e: Expr, at: At) -> str:
    return f"__fmaf_rn({', '.join(element(ctx, literal_as(a, e), at) for a in e.args)})"


def _cast(ctx: Context, e: Expr, at: At) -> str:
    x, t = e.args[0], e.type
    assert isinstance(t, FragT)
    if isinstance(x.type, FragT) and x.type.form != t.form and not (x.type.form == "acc" and t.form == "a" and packing(t) <= 2):
        return not_lowered(f"a cast from form `{x.type.form}` to `{t.form}` of {t.dtype}", e.span)
    inner = At(x.type, at.index) if isinstance(x.type, FragT) and rank(x.type) == rank(at.type) and x.type.form != at.type.form else at
    return conversions.converted(ctx, dtype(x), t.dtype, element(ctx, x, inner), str(e.attrs.get("round") or "rn"), e.span)


def _fresh(ctx: Context, e: Expr, at: At) -> str:
    """An element of a fragment that an expression makes: its first value."""
    if e.attrs.get("init") is None:
        return not_lowered("a fragment without a first value inside an expression", e.span)
    return number(e.attrs["init"], CTYPE[dtype(e)])


_ELEMENT = {
    "worst": _entry, "frag": _fresh, "rowvec": _fresh, "colvec": _fresh,
    "var": _var, "item": _var, "frag_cols": _slice, "frag_rows": _slice, "iota": _iota, "in_bounds": _in_bounds, "where": _where, "fma": _fma, "cast": _cast,
    "frag_stage": lambda ctx, e, at: read(ctx, stage_place(ctx, e)[0], at, e, stage_place(ctx, e)[1]),
}  # fmt: skip

__all__ = ["assign_elements", "ctype", "element", "prepared", "word"]
