"""Global memory element by element: gathers and scatters, whose coordinates hold one entry that is a fragment."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.edges import outer_tests
from cake_backend.cuda.elementwise import element, prepared
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, ctype, elements, first_of_row, loop, packing
from cake_backend.cuda.globals import extent, pointer, stride
from cake_backend.cuda.positions import At
from cake_backend.cuda.scalars import CTYPE, constant, number, scalar
from cake_ir.dtypes import DTYPES
from cake_ir.ops.vectors import rows_placed
from cake_ir.program import Expr, Op
from cake_ir.types import FragT


def is_gather(op: Op) -> bool:
    """Whether a coordinate is given for each element."""
    coords = op.operands.get("coords")
    return isinstance(coords, tuple) and any(isinstance(c.type, FragT) for c in coords)


def exists(ctx: Context, t: FragT, at: At) -> list[str]:
    """The test that an element of a ragged `vec` exists."""
    if t.form == "vec" and t.rows * t.cols // (t.chunk or 1) % ctx.role.threads:
        return [f"{at.flat_position(ctx)} < {t.rows * t.cols}"]
    return []


def once(ctx: Context, t: FragT, at: At) -> list[str]:
    """Tests that pick one lane of those that hold an element."""
    out = exists(ctx, t, at)
    if t.form == "rowvec":
        out += [x for x in (first_of_row(ctx, t, at.flat), f"warp / {t.warps[0]}u == 0" if t.warps and t.warps[1] > 1 else "") if x]
    elif t.form == "colvec":
        out.append("lane == 0" if t.parent == "rows" else "(lane >> 2) == 0")
        if ctx.role.warps > 1:
            out.append(f"warp % {t.warps[0]}u == 0" if t.warps else "warp == 0")
    elif t.form == "scalar":
        out.append("thread == 0")
    elif t.form == "a" and t.warps and t.warps[1] > 1:
        out.append(f"warp / {t.warps[0]}u == 0")
    elif t.form == "b" and ctx.role.warps > 1:
        out.append(f"warp % {t.warps[0]}u == 0" if t.warps else "warp == 0")
    return out


class Elements:
    """The elements of one access: their addresses and the tests under which they exist, as C text."""

    def __init__(self, ctx: Context, op: Op, t: FragT, mask: Expr | None) -> None:
        self.ctx, self.type, self.mask = ctx, t, mask
        self.tensor = str(op.attrs["tensor"])
        coords = op.operands["coords"]
        assert isinstance(coords, tuple)
        self.coords = tuple(prepared(ctx, c) if isinstance(c.type, FragT) else c for c in coords)
        if len(coords) != ctx.program.tensors[self.tensor].rank:
            not_lowered("an access with fewer coordinates than dimensions", op.span)
        self.own = any(isinstance(c.type, FragT) for c in coords)
        self.placed = rows_placed(coords)
        self.clip = bool(op.attrs.get("clip"))
        self.flat = t.rank == 1 or t.form in ("rowvec", "colvec", "scalar")

    def coordinate(self, axis: int, at: At) -> str:
        """C text of an element's coordinate along an axis, innermost first."""
        ctx, c = self.ctx, self.coords[axis]
        if isinstance(c.type, FragT):
            return element(ctx, c, at)
        inner = ""
        if self.type.form != "scalar" and not self.flat:
            inner = at.col(ctx) if axis == 0 else at.row(ctx) if axis == 1 and not self.placed else ""
        elif self.type.form != "scalar" and axis == 0 and not self.own:
            inner = at.row(ctx) if self.type.form == "rowvec" else at.col(ctx)
        if constant(c) == 0 and inner and inner != "0":
            return operand(inner)
        text = operand(scalar(ctx, c))
        return f"({text} + {inner})" if inner and inner != "0" else text

    def address(self, at: At) -> str:
        """C text of an element's address."""
        ctx, rank = self.ctx, len(self.coords)
        terms = [pointer(ctx, self.tensor)]
        for axis in range(rank - 1, 0, -1):
            if (where := self.coordinate(axis, at)) != "0":
                terms.append(f"(u64){where} * {stride(ctx, self.tensor, rank - 1 - axis)}")
        return " + ".join([*terms, self.coordinate(0, at)])

    def tests(self, at: At, *, whole_once: bool) -> list[str]:
        """Tests of an element: it exists (`whole_once`: one lane of those that share it), it is wanted, it lies inside."""
        ctx, t = self.ctx, self.type
        out = once(ctx, t, at) if whole_once else exists(ctx, t, at)
        if self.mask is not None:
            out.append(element(ctx, self.mask, at))
        if self.clip:
            rank = len(self.coords)
            for axis, c in enumerate(self.coords):
                if axis <= 1 - self.flat or isinstance(c.type, FragT):
                    out.append(f"(u32){self.coordinate(axis, at)} < (u32){operand(extent(ctx, self.tensor, rank - 1 - axis))}")
            out += outer_tests(ctx, self.tensor, self.coords, 1 if self.flat else 2)
        return out

    def visit(self, body: Callable[[Index, str, list[str]], None], *, once: bool) -> None:
        """Call `body(index, address, tests)` for each element of a thread, in an unrolled loop."""
        ctx = self.ctx
        count = elements(self.type, ctx.role.warps)
        if count == 1:
            at = At(self.type, Index())
            body(Index(), self.address(at), self.tests(at, whole_once=once))
            return
        with ctx.out.unrolled("i_", count):
            at = At(self.type, loop("i_", 1, 0, count))
            body(at.index, self.address(at), self.tests(at, whole_once=once))


def memory_constant(ctx: Context, dtype: str, value: object, op: Op) -> str:
    """C text (u32) of a number as one element of a packed register."""
    from cake_backend.cuda.vectors import memory_value

    return f"(u32){'(u8)' if DTYPES[dtype].bits == 8 else ''}{memory_value(ctx, dtype, number(value, CTYPE[dtype]), op.span)}"


def gather(ctx: Context, op: Op, place: Place, mask: Expr | None) -> None:
    """`lm.load` with a coordinate an element, or of a form that no vector access serves."""
    t = place.type
    visit = Elements(ctx, op, t, mask)
    fill, per = op.attrs.get("fill") or 0, packing(t)
    bits = DTYPES[t.dtype].bits
    other = memory_constant(ctx, t.dtype, fill, op) if per > 1 and fill != 0 else ""
    if per > 1:
        with ctx.out.unrolled("i_", place.count):
            ctx.out.line(f"{place.name}[i_] = 0u;")

    def body(i: Index, address: str, tests: list[str]) -> None:
        value = f"*({address})"
        if per > 1:
            shift = i.modulo(per)
            value = f"(u32){'(u8)' if bits == 8 else ''}{value}"
            if tests and other:
                value, tests = f"({' && '.join(tests)} ? {value} : {other})", []
            text = f"{place.name}[{i.divided(per)}] |= {value} << ({bits} * ({shift}));"
            ctx.out.line(f"if ({' && '.join(tests)}) {text}" if tests else text)
        else:
            value = f"{' && '.join(tests)} ? {value} : {number(fill, ctype(t))}" if tests else value
            ctx.out.line(f"{place.name}[{i.text}] = {value};")

    visit.visit(body, once=False)


def scatter(ctx: Context, op: Op, x: Expr, t: FragT, mask: Expr | None, value: Callable[[Index], str]) -> None:
    """`lm.store` with a coordinate an element; `value(i)` is the element as its type in memory."""
    def body(i: Index, address: str, tests: list[str]) -> None:
        text = f"*({address}) = {value(i)};"
        ctx.out.line(f"if ({' && '.join(tests)}) {text}" if tests else text)

    Elements(ctx, op, t, mask).visit(body, once=True)
