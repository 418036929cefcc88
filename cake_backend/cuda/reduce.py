"""Reductions over fragments: in-thread chains, quad shuffles, running arguments."""

from __future__ import annotations

from contextlib import nullcontext

from cake_backend.cuda.context import Context, PairPlace, Place
from cake_backend.cuda.elementwise import assign_elements, element, kind_of, prepared
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, Term, elements, loop, tile_blocks, tile_columns
from cake_backend.cuda.positions import TILES, At
from cake_backend.cuda.scalars import CTYPE, factor
from cake_ir.program import Expr
from cake_ir.types import FragT, PairT

_COMBINE = {"float": {"add": "{} + {}", "max": "fmaxf({}, {})", "min": "fminf({}, {})"}, "int": {"add": "{} + {}", "max": "max({}, {})", "min": "min({}, {})"}}

SHUFFLE = "__shfl_xor_sync(0xffffffffu, {}, {})"


def combine(op: str, kind: str, a: str, b: str) -> str:
    """C text of one step of a reduction."""
    return _COMBINE[kind][op].format(a, b)


def reduce_into(ctx: Context, target: Place, e: Expr) -> None:
    """`reduce` of an expression into a rowvec (axis 1) or a scalar (vec), finished over the quad or warp unless partial."""
    op = "add" if e.op == "sum" else str(e.attrs["op"])
    x = prepared(ctx, e.args[0])
    t = x.type
    assert isinstance(t, FragT)
    kind = kind_of(t.dtype)
    if t.form == "vec" and target.type.form == "rowvec":
        _runs(ctx, target, x, t, op, kind)
        if not e.attrs.get("partial"):
            over_lanes(ctx, target, op, kind, lanes_of(target.type))
    elif t.form in TILES and e.attrs.get("axis") == 1:
        if t.warps and t.warps[1] > 1:
            not_lowered("a row reduction of a tile that several warps share along its columns", e.span, "reduce with `across=` and scratch")
        tile_rows(ctx, target, x, t, op, kind)
        if not e.attrs.get("partial"):
            over_lanes(ctx, target, op, kind, (1, 2))
    elif t.form in TILES:
        if (t.warps[0] if t.warps else ctx.role.warps) > 1:
            not_lowered("a column reduction of a tile that several warps share along its rows", e.span, "reduce with `across=` and scratch")
        _columns(ctx, target, x, t, op, kind)
        if not e.attrs.get("partial"):
            over_lanes(ctx, target, op, kind, (4, 8, 16))
    elif t.form == "rows" and e.attrs.get("axis") == 1:
        _straight(ctx, target, x, t, op, kind)
    elif t.form == "vec":
        in_thread(ctx, target, x, t, op, kind)
        if e.attrs.get("partial"):
            return
        if ctx.role.warps > 1:
            not_lowered("a reduction of a `vec` over several warps without scratch", e.span, "add `across=`, `scratch=` and `sync=`")
        over_lanes(ctx, target, op, kind, (16, 8, 4, 2, 1))
    else:
        not_lowered(f"a reduction of form `{t.form}`", e.span)


def tile_rows(ctx: Context, target: Place, x: Expr, t: FragT, op: str, kind: str) -> None:
    """One value a row: even and odd columns in two chains, then the two together."""
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    ctype = CTYPE[t.dtype]
    for block in range(blocks):
        base = 4 * columns * block
        with ctx.out.unrolled("r_", 2):
            row = Term("r_", 2, 2)
            first = [element(ctx, x, At(t, Index((row,), base + p))) for p in (0, 1)]
            ctx.out.line(f"{ctype} even = {first[0]}, odd = {first[1]};")
            with ctx.out.unrolled("j_", columns, 1):
                even, odd = (element(ctx, x, At(t, Index((Term("j_", 4), row), base + p))) for p in (0, 1))
                ctx.out.line(f"even = {combine(op, kind, 'even', even)};")
                ctx.out.line(f"odd = {combine(op, kind, 'odd', odd)};")
            where = f"{2 * block} + r_" if block else "r_"
            ctx.out.line(f"{target.name}[{where}] = {combine(op, kind, 'even', 'odd')};")


def lanes_of(t: FragT) -> tuple[int, ...]:
    """Distances between the lanes that share a row or column of a vector (all of a warp for a scalar), in the order in which they are combined."""
    if t.form == "scalar":
        return (16, 8, 4, 2, 1)
    if t.form == "colvec":
        return (4, 8, 16)
    return tuple(d for d in (16, 8, 4, 2, 1) if d < (t.chunk or 1)) if t.parent == "vec" else (1, 2)


def _runs(ctx: Context, target: Place, x: Expr, t: FragT, op: str, kind: str) -> None:
    """One value a run of a `vec`: its even and odd elements in two chains."""
    runs, chunk = elements(target.type, ctx.role.warps), t.chunk or 1
    ctype = CTYPE[t.dtype]
    with ctx.out.unrolled("r_", runs) if runs > 1 else ctx.out.block(""):
        base = Index((Term("r_", chunk, runs),) if runs > 1 else ())
        where = "r_" if runs > 1 else "0"
        if chunk == 1:
            ctx.out.line(f"{target.name}[{where}] = {element(ctx, x, At(t, base))};")
            return
        first = [element(ctx, x, At(t, base.plus(p))) for p in (0, 1)]
        ctx.out.line(f"{ctype} even = {first[0]}, odd = {first[1]};")
        if chunk > 2:
            with ctx.out.unrolled("j_", chunk // 2, 1):
                for p, chain in enumerate(("even", "odd")):
                    at = Index((*base.terms, Term("j_", 2, chunk // 2)), p)
                    ctx.out.line(f"{chain} = {combine(op, kind, chain, element(ctx, x, At(t, at)))};")
        ctx.out.line(f"{target.name}[{where}] = {combine(op, kind, 'even', 'odd')};")


def _straight(ctx: Context, target: Place, x: Expr, t: FragT, op: str, kind: str) -> None:
    """A thread's own rows, each in one chain."""
    with ctx.out.unrolled("r_", target.count), ctx.out.unrolled("j_", t.cols):
        at = Index((Term("r_", t.cols, target.count), Term("j_", 1, t.cols)))
        name, value = f"{target.name}[r_]", element(ctx, x, At(t, at))
        ctx.out.line(f"{name} = j_ ? {combine(op, kind, name, value)} : {value};")


def _columns(ctx: Context, target: Place, x: Expr, t: FragT, op: str, kind: str) -> None:
    """One value a column: a thread's rows in one chain."""
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    column = Term("j_", 4, columns)
    with ctx.out.unrolled("j_", columns):
        for p in (0, 1):
            values = [element(ctx, x, At(t, Index((column,), 4 * columns * block + 2 * half + p))) for block in range(blocks) for half in (0, 1)]
            text = values[0]
            for v in values[1:]:
                text = combine(op, kind, text, v)
            ctx.out.line(f"{target.name}[2 * j_{' + 1' if p else ''}] = {text};")


def over_lanes(ctx: Context, target: Place, op: str, kind: str, distances: tuple[int, ...]) -> None:
    """Combine over lanes whose numbers differ in the bits of `distances`."""
    with ctx.out.unrolled("i_", target.count) if target.count > 1 else nullcontext():
        name = f"{target.name}[{'i_' if target.count > 1 else '0'}]"
        for d in distances:
            ctx.out.line(f"{name} = {combine(op, kind, name, SHUFFLE.format(name, d))};")


def in_thread(ctx: Context, target: Place, x: Expr, t: FragT, op: str, kind: str) -> None:
    """A thread's own elements into `target[0]`: even and odd elements in two chains."""
    count = elements(t, ctx.role.warps)
    ctype = CTYPE[t.dtype]
    with ctx.out.block(""):
        if count == 1:
            ctx.out.line(f"{target.name}[0] = {element(ctx, x, At(t, Index()))};")
            return
        first = [element(ctx, x, At(t, Index((), p))) for p in (0, 1)]
        ctx.out.line(f"{ctype} even = {first[0]}, odd = {first[1]};")
        with ctx.out.unrolled("i_", count // 2, 1):
            for p, chain in enumerate(("even", "odd")):
                ctx.out.line(f"{chain} = {combine(op, kind, chain, element(ctx, x, At(t, loop('i_', 2, p))))};")
        ctx.out.line(f"{target.name}[0] = {combine(op, kind, 'even', 'odd')};")


def finish_into(ctx: Context, target: Place, e: Expr) -> None:
    """Complete a partial reduction over the lanes that share each value."""
    t = e.args[0].type
    assert isinstance(t, FragT)
    assign_elements(ctx, target, prepared(ctx, e.args[0]))
    if t.partial in ("add", "max", "min"):
        over_lanes(ctx, target, t.partial, kind_of(t.dtype), lanes_of(t))


# ------------------------------------------------------------------ running (value, index)


def spread_into(ctx: Context, place: Place, e: Expr) -> None:
    """A finished row vector into a running one that keeps a chain for even and one for odd columns: both start from it."""
    e = prepared(ctx, e)
    t = e.type
    assert isinstance(t, FragT)
    per_row = place.count // elements(t, ctx.role.warps)
    with ctx.out.unrolled("i_", elements(t, ctx.role.warps)):
        text = element(ctx, e, At(t, loop("i_")))
        for c in range(per_row):
            ctx.out.line(f"{place.name}[{f'{per_row} * i_ + {c}' if per_row > 1 else 'i_'}] = {text};")


def running_argument(ctx: Context, target: PairPlace, e: Expr) -> None:
    """`argmin` / `argmax` along the columns: the tile's own best with immediate column numbers, merged into the running one once.

    Strict comparison in column order keeps the lowest index on ties, and a NaN never wins.
    """
    names = e.attrs.get("operands")
    args: dict[str, Expr] = dict(zip(names if isinstance(names, tuple) else ("x", "base", "into"), e.args, strict=False))  # type: ignore[arg-type]  # operand names are strings
    x, base, into = prepared(ctx, args["x"]), args.get("base"), args["into"]
    if into.op != "var" or ctx.lookup(str(into.attrs["name"])) is not target:
        from cake_backend.cuda.compute import evaluate_into

        evaluate_into(ctx, target, into)
    t = x.type
    assert isinstance(t, FragT)
    if t.warps and t.warps[1] > 1:
        not_lowered(f"`{e.op}` of a tile that several warps share along its columns", e.span)
    wins, worst, keep = ("<", "__int_as_float(0x7f800000)", "fminf") if e.op == "argmin" else (">", "__int_as_float(0xff800000)", "fmaxf")
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    offset = "" if base is None or (base.op == "const" and base.attrs["value"] == 0) else f"{factor(ctx, base)} + "
    value, index = target.value.name, target.index.name
    for block in range(blocks):
        first = 4 * columns * block
        with ctx.out.block(""):
            if columns % 2 == 0:
                _groups_of_four(ctx, x, t, columns, first, wins, worst, keep)
            else:
                _column_by_column(ctx, x, t, columns, first, wins, worst, keep)
            chains, of_row = (2, "2 * ") if columns % 2 == 0 else (4, "")
            with ctx.out.unrolled("i_", chains):
                at = f"{4 * block} + {of_row}i_" if block else f"{of_row}i_"
                ctx.out.line(f"const bool wins = best[i_] {wins} {value}[{at}];")
                ctx.out.line(f"{value}[{at}] = wins ? best[i_] : {value}[{at}];")
                ctx.out.line(f"{index}[{at}] = wins ? {offset}2 * (int)(lane & 3u) + column[i_] : {index}[{at}];")


def _column_by_column(ctx: Context, x: Expr, t: FragT, columns: int, first: int, wins: str, worst: str, keep: str) -> None:
    """`best` and `column` of a thread's two rows, even and odd columns in chains of their own."""
    ctx.out.line("float best[4];")
    ctx.out.line("int column[4];")
    with ctx.out.unrolled("i_", 4):
        ctx.out.line(f"best[i_] = {keep}({element(ctx, x, At(t, loop('i_', 1, first)))}, {worst});")
        ctx.out.line("column[i_] = i_ & 1;")
    with ctx.out.unrolled("i_", 4 * columns, 4):
        ctx.out.line(f"const float x_ = {element(ctx, x, At(t, loop('i_', 1, first)))};")
        ctx.out.line(f"const bool wins = x_ {wins} best[i_ & 3];")
        ctx.out.line("best[i_ & 3] = wins ? x_ : best[i_ & 3];")
        ctx.out.line("column[i_ & 3] = wins ? 8 * (i_ / 4) + (i_ & 1) : column[i_ & 3];")


def _groups_of_four(ctx: Context, x: Expr, t: FragT, columns: int, first: int, wins: str, worst: str, keep: str) -> None:
    """`best` and `column` of a thread's two rows, four columns at a time: the best of each group is compared, and which of the winning
    group's four it is, is found once at the end. A third fewer instructions than column by column, all on the pipe that binds."""
    ctx.out.line("float best[2], kept[2][3];")
    ctx.out.line("int group[2], column[2];")

    def group(of: tuple[Term, ...]) -> None:
        at = [element(ctx, x, At(t, Index((*of, Term("r_", 2, 2)), first + place))) for place in (0, 1, 4, 5)]
        ctx.out.line(f"const float x_[4] = {{{', '.join(at)}}};")
        ctx.out.line(f"const float top = {keep}({keep}(x_[0], x_[1]), {keep}(x_[2], x_[3]));")

    with ctx.out.unrolled("r_", 2):
        group(())
        ctx.out.line(f"best[r_] = {keep}(top, {worst});")
        ctx.out.line("group[r_] = 0;")
        for k in range(3):
            ctx.out.line(f"kept[r_][{k}] = x_[{k}];")
    if columns > 2:
        with ctx.out.unrolled("j_", columns // 2, 1), ctx.out.unrolled("r_", 2):
            group((Term("j_", 8, columns // 2),))
            ctx.out.line(f"const bool wins = top {wins} best[r_];")
            ctx.out.line(f"best[r_] = {keep}(best[r_], top);")
            ctx.out.line("group[r_] = wins ? 16 * j_ : group[r_];")
            for k in range(3):
                ctx.out.line(f"kept[r_][{k}] = wins ? x_[{k}] : kept[r_][{k}];")
    with ctx.out.unrolled("r_", 2):
        ctx.out.line("column[r_] = group[r_] + (kept[r_][0] == best[r_] ? 0 : kept[r_][1] == best[r_] ? 1 : kept[r_][2] == best[r_] ? 8 : 9);")


def finish_pair(ctx: Context, target: PairPlace, e: Expr) -> None:
    """Merge the chains of a running argument, then the quad; equal values keep the lowest index."""
    source = ctx.lookup(str(e.args[0].attrs["name"])) if e.args[0].op == "var" else None
    t = e.args[0].type
    if not isinstance(source, PairPlace) or not isinstance(t, PairT):
        not_lowered("`finish` of an unnamed pair", e.span)
    wins = ">" if t.value.partial == "argmax" else "<"
    value, index = target.value.name, target.index.name
    chains = source.value.count // target.value.count
    merge = f"if (w_ {wins} {value}[i_] || (w_ == {value}[i_] && at_ < {index}[i_])) {{ {value}[i_] = w_; {index}[i_] = at_; }}"
    with ctx.out.unrolled("i_", target.value.count):
        ctx.out.line(f"{value}[i_] = {source.value.name}[{f'{chains} * i_' if chains > 1 else 'i_'}];")
        ctx.out.line(f"{index}[i_] = {source.index.name}[{f'{chains} * i_' if chains > 1 else 'i_'}];")
        for c in range(1, chains):
            with ctx.out.block(""):
                ctx.out.line(f"const float w_ = {source.value.name}[{chains} * i_ + {c}];")
                ctx.out.line(f"const int at_ = {source.index.name}[{chains} * i_ + {c}];")
                ctx.out.line(merge)
        for d in (1, 2):
            with ctx.out.block(""):
                ctx.out.line(f"const float w_ = {SHUFFLE.format(f'{value}[i_]', d)};")
                ctx.out.line(f"const int at_ = {SHUFFLE.format(f'{index}[i_]', d)};")
                ctx.out.line(merge)
