"""Running sorted lists of (value, index) pairs: each thread keeps its own best of a row, the quad merges them at the end.

A list of a row is `k` neighbouring registers, best first. Equal values keep the lowest index everywhere, a NaN never enters, and places
that nothing has filled hold the worst value and index -1.
"""

from __future__ import annotations

from cake_backend.cuda.context import Context, ListPlace, Place
from cake_backend.cuda.elementwise import element, prepared, temporary
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, Term, elements, tile_blocks, tile_columns
from cake_backend.cuda.positions import TILES, At
from cake_backend.cuda.reduce import SHUFFLE
from cake_backend.cuda.scalars import factor, scalar
from cake_ir.program import Expr
from cake_ir.types import FragT, ListT

CHUNK = 32
"""Scores that are compared before any is inserted: one bit each."""


def declare_list(ctx: Context, name: str, t: ListT) -> ListPlace:
    """Declare the arrays of a list."""
    count = elements(t.value.with_(partial=None), ctx.role.warps) * t.k
    places = []
    for part, suffix, ctype in ((t.value, "value", "float"), (t.index, "index", "int")):
        place = Place(ctx.role.names.take(f"{name}_{suffix}"), part, count)
        ctx.out.line(f"{ctype} {place.name}[{count}];")
        places.append(place)
    return ListPlace(places[0], places[1], t.k, t.largest)


def worst(largest: bool) -> str:
    """C text of the value of a place that nothing has filled."""
    return "__int_as_float(0xff800000)" if largest else "__int_as_float(0x7f800000)"


def _beats(largest: bool, value: str, index: str, than_value: str, than_index: str) -> str:
    """C text of whether a pair stands before another: the better value, of equal ones the lower index."""
    return f"({value} {'>' if largest else '<'} {than_value} || ({value} == {than_value} && {index} < {than_index}))"


def list_into(ctx: Context, target: ListPlace, e: Expr) -> None:
    """Write the value of a list expression to a place."""
    if e.op == "topk_list":
        with ctx.out.unrolled("i_", target.value.count):
            ctx.out.line(f"{target.value.name}[i_] = {worst(target.largest)};")
            ctx.out.line(f"{target.index.name}[i_] = -1;")
    elif e.op == "topk":
        _insert(ctx, target, e)
    elif e.op == "finish":
        list_into(ctx, target, e.args[0])
        _merge(ctx, target)
    elif e.op == "var":
        _copy(ctx, target, _source(ctx, e))
    else:
        not_lowered(f"`{e.op}` as a list", e.span)


def _source(ctx: Context, e: Expr) -> ListPlace:
    bound = ctx.lookup(str(e.attrs["name"])) if e.op == "var" else None
    if not isinstance(bound, ListPlace):
        not_lowered("a list without a name", e.span)
    return bound


def _copy(ctx: Context, target: ListPlace, source: ListPlace) -> None:
    if target is source:
        return
    for to, frm in ((target.value, source.value), (target.index, source.index)):
        with ctx.out.unrolled("i_", to.count):
            ctx.out.line(f"{to.name}[i_] = {frm.name}[i_];")


def _insert(ctx: Context, target: ListPlace, e: Expr) -> None:
    """Scores that beat the last place are marked first, so that a tile without any costs one comparison a score."""
    args = dict(zip(("x", "base", "into"), e.args, strict=True))
    x, base = prepared(ctx, args["x"]), args["base"]
    if args["into"].op != "var" or ctx.lookup(str(args["into"].attrs["name"])) is not target:
        list_into(ctx, target, args["into"])
    if x.op != "var":
        x = temporary(ctx, x)  # it is read where it is compared and where it is taken
    t = x.type
    assert isinstance(t, FragT)
    if t.form not in TILES or (t.warps and t.warps[1] > 1):
        not_lowered(f"`topk` of {t}", e.span, "use a tile whose rows are whole in one warp")
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    better = ">=" if target.largest else "<="
    offset = "" if base.op == "const" and base.attrs["value"] == 0 else f"{factor(ctx, base)} + "
    for block in range(blocks):
        with ctx.out.unrolled("r_", 2):
            slot = f"({2 * block} + r_)" if block else "r_"
            value, index = f"({target.value.name} + {target.k} * {slot})", f"({target.index.name} + {target.k} * {slot})"
            for first in range(0, 2 * columns, CHUNK):
                count = min(CHUNK, 2 * columns - first)
                at = Index((Term("j_", 4, count // 2), Term("r_", 2, 2), Term("p_", 1, 2)), 4 * columns * block + 2 * first)
                score = element(ctx, x, At(t, at))
                with ctx.out.block(""):
                    ctx.out.line("u32 left_ = 0;")
                    with ctx.out.unrolled("j_", count // 2), ctx.out.unrolled("p_", 2):
                        ctx.out.line(f"left_ |= {score} {better} {value}[{target.k - 1}] ? 1u << (2 * j_ + p_) : 0u;")
                    ctx.out.line("#pragma unroll 1")
                    with ctx.out.block("while (left_)"):
                        ctx.out.line("const int bit_ = __ffs((int)left_) - 1;")
                        ctx.out.line("left_ &= left_ - 1;")
                        ctx.out.line("float score_ = 0.0f;")
                        with ctx.out.unrolled("j_", count // 2), ctx.out.unrolled("p_", 2):
                            ctx.out.line(f"score_ = bit_ == 2 * j_ + p_ ? {score} : score_;")
                        ctx.out.line(f"int where_ = {offset}{4 * first} + 8 * (bit_ / 2) + (bit_ & 1) + 2 * (int)(lane & 3u);")
                        _place(ctx, target, value, index)


def _place(ctx: Context, target: ListPlace, value: str, index: str) -> None:
    """Carry a score down the list: where it stands before what is there, the two change places."""
    with ctx.out.unrolled("i_", target.k):
        ctx.out.line(f"const bool wins = {_beats(target.largest, 'score_', 'where_', f'{value}[i_]', f'{index}[i_]')};")
        ctx.out.line(f"const float old_ = {value}[i_];")
        ctx.out.line(f"const int at_ = {index}[i_];")
        ctx.out.line(f"{value}[i_] = wins ? score_ : old_;")
        ctx.out.line(f"{index}[i_] = wins ? where_ : at_;")
        ctx.out.line("score_ = wins ? old_ : score_;")
        ctx.out.line("where_ = wins ? at_ : where_;")


def _merge(ctx: Context, target: ListPlace) -> None:
    """The best of two lanes' lists, twice: each place against the mirrored one of the other lane, then sorted again."""
    k, v, w = target.k, target.value.name, target.index.name
    with ctx.out.unrolled("s_", target.value.count // k):
        for distance in (1, 2):
            with ctx.out.block(""):
                ctx.out.line(f"float other_[{k}];")
                ctx.out.line(f"int there_[{k}];")
                with ctx.out.unrolled("i_", k):
                    mirrored = f"{k} * s_ + {k - 1} - i_"
                    ctx.out.line(f"other_[i_] = {SHUFFLE.format(f'{v}[{mirrored}]', distance)};")
                    ctx.out.line(f"there_[i_] = {SHUFFLE.format(f'{w}[{mirrored}]', distance)};")
                with ctx.out.unrolled("i_", k):
                    ctx.out.line(f"const bool wins = {_beats(target.largest, 'other_[i_]', 'there_[i_]', f'{v}[{k} * s_ + i_]', f'{w}[{k} * s_ + i_]')};")
                    ctx.out.line(f"{v}[{k} * s_ + i_] = wins ? other_[i_] : {v}[{k} * s_ + i_];")
                    ctx.out.line(f"{w}[{k} * s_ + i_] = wins ? there_[i_] : {w}[{k} * s_ + i_];")
                _sort(ctx, target)


def _sort(ctx: Context, target: ListPlace) -> None:
    """Sort a bitonic list: halving distances where its length is a power of two, else neighbours in turn."""
    k = target.k
    if k & (k - 1) == 0:
        d = k // 2
        while d:
            with ctx.out.unrolled("i_", k // 2):
                _exchange(ctx, target, f"i_ / {d} * {2 * d} + i_ % {d}", d)
            d //= 2
        return
    with ctx.out.unrolled("n_", k), ctx.out.unrolled("i_", k // 2):
        ctx.out.line(f"if (2 * i_ + (n_ & 1) + 1 < {k}) {{")
        _exchange(ctx, target, "2 * i_ + (n_ & 1)", 1)
        ctx.out.line("}")


def _exchange(ctx: Context, target: ListPlace, low: str, distance: int) -> None:
    v, w, at = target.value.name, target.index.name, f"{target.k} * s_ + {low}"
    ctx.out.line(f"const float x_ = {v}[{at}], y_ = {v}[{at} + {distance}];")
    ctx.out.line(f"const int m_ = {w}[{at}], n2_ = {w}[{at} + {distance}];")
    ctx.out.line(f"const bool wins = {_beats(target.largest, 'y_', 'n2_', 'x_', 'm_')};")
    ctx.out.line(f"{v}[{at}] = wins ? y_ : x_; {v}[{at} + {distance}] = wins ? x_ : y_;")
    ctx.out.line(f"{w}[{at}] = wins ? n2_ : m_; {w}[{at} + {distance}] = wins ? m_ : n2_;")


def entry(ctx: Context, e: Expr, part: int, slot: str) -> str:
    """C text of the value (part 0) or index (part 1) of an entry of a list, for the row at `slot`: `e` is `list[i]` or `list.worst`."""
    place = _source(ctx, e.args[0])
    i = str(place.k - 1) if e.op == "worst" else scalar(ctx, e.args[1])
    array = place.value if part == 0 else place.index
    where = i if slot == "0" else f"{place.k} * ({slot}) + {i}"
    return f"{array.name}[{where}]"
