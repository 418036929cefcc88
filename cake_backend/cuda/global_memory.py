"""Fragments to and from global memory, in the widest vectors that alignment allows, and uniform scalar reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from cake_backend.cuda import vectors
from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.congruence import assumed_divisor, multiple_of
from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.edges import outer_tests
from cake_backend.cuda.elementwise import element, prepared, rank, resolve, word
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, ctype, elements, loop, operand_order, packing
from cake_backend.cuda.globals import extent, pointer, stride
from cake_backend.cuda.per_element import gather, is_gather, scatter
from cake_backend.cuda.positions import TILES, At, vec_element
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.scalars import constant, factor, number, scalar
from cake_ir.dtypes import DTYPES
from cake_ir.program import Expr, Op
from cake_ir.types import FragT, ScalarT

_HINT = {"stream": ".L1::no_allocate", "keep": ".L1::evict_last"}


def vector_load(bits: int, *, const: bool, cache: str | None) -> Device:
    """A load of 32, 64 or 128 bits into u32 registers."""
    n = bits // 32
    name = f"load_global_{bits}" + ("_const" if const else "") + (f"_{cache}" if cache in _HINT else "")
    path = ("ld.global.nc" if const else "ld.global") + _HINT.get(cache or "", "")
    regs = ", ".join(f"%{i}" for i in range(n))
    listed = regs if n == 1 else f"{{{regs}}}"
    params = ", ".join(f"u32& r{i}" for i in range(n))
    outs = ", ".join(f'"=r"(r{i})' for i in range(n))
    volatile, clobber = ("", "") if const else (" volatile", ' : "memory"')
    wide = "" if n == 1 else f".v{n}"
    text = f"{path}{wide}.u32 {listed}, [%{n}];"
    if cache == "keep":  # in the second-level cache as well, which takes a policy
        text = f"{{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0; {path}.L2::cache_hint{wide}.u32 {listed}, [%{n}], policy; }}"
    return Device(
        name,
        f"""
DEVICE void {name}({params}, const void* p) {{
  asm{volatile}("{text}" : {outs} : "l"(p){clobber});
}}""",
    )


def vector_store(bits: int, cache: str | None) -> Device:
    """A store of 32, 64 or 128 bits from u32 registers."""
    n = bits // 32
    name = f"store_global_{bits}" + (f"_{cache}" if cache in _HINT else "")
    regs = ", ".join(f"%{i + 1}" for i in range(n))
    listed = regs if n == 1 else f"{{{regs}}}"
    params = ", ".join(f"u32 r{i}" for i in range(n))
    ins = ", ".join(f'"r"(r{i})' for i in range(n))
    return Device(
        name,
        f"""
DEVICE void {name}(void* p, {params}) {{
  asm volatile("st.global{_HINT.get(cache or "", "")}{"" if n == 1 else f".v{n}"}.u32 [%0], {listed};" :: "l"(p), {ins} : "memory");
}}""",
    )


class Access:
    """One load or store of a rectangle at `coords` (innermost first): where its rows and columns lie in the tensor."""

    def __init__(self, ctx: Context, op: Op, t: FragT) -> None:
        self.ctx, self.op, self.type = ctx, op, t
        self.tensor = str(op.attrs["tensor"])
        coords = op.operands.get("coords")
        assert isinstance(coords, tuple)
        self.coords = coords
        self.param = ctx.program.tensors[self.tensor]
        if len(coords) != self.param.rank:
            not_lowered("an access with fewer coordinates than dimensions", op.span)
        cache = op.attrs.get("cache")
        self.cache = str(cache) if cache else None
        # A vector along rows of a 1-D fragment, or a rowvec, runs along the innermost dimension.
        self.flat = t.rank == 1 or t.form in ("rowvec", "colvec", "scalar")

    def base(self) -> str:
        """C text of the address of the first element."""
        ctx, rank_ = self.ctx, self.param.rank
        terms = [pointer(ctx, self.tensor)]
        for i in range(rank_ - 1, 0, -1):
            if constant(self.coords[i]) != 0:
                terms.append(f"(u64)({scalar(ctx, self.coords[i])}) * {stride(ctx, self.tensor, rank_ - 1 - i)}")
        if constant(self.coords[0]) != 0:
            terms.append(operand(scalar(ctx, self.coords[0])))
        return " + ".join(terms)

    def row_stride(self) -> str:
        """C name of the distance between rows of a 2-D rectangle."""
        return stride(self.ctx, self.tensor, self.param.rank - 2)

    def aligned(self, elements_: int) -> bool:
        """Whether every row starts on a multiple of `elements_` elements; records the launcher's part of it."""
        if not multiple_of(self.ctx.program, self.ctx.role.role.name, self.coords[0], elements_):
            return False
        self.ctx.need_alignment(self.tensor, self.op.span, elements_ * DTYPES[self.param.dtype or "f32"].bits // 8)
        return True

    def extent_divides(self, n: int) -> bool:
        """Whether the innermost extent is known to be a multiple of `n`."""
        e = self.param.extents[-1] if self.param.extents else None
        return e % n == 0 if isinstance(e, int) else e is not None and assumed_divisor(self.ctx.program, e) % n == 0

    def clip(self, row: str, col: str) -> str:
        """C text of the test that an element lies inside the tensor; empty without `clip=True`."""
        if not self.op.attrs.get("clip"):
            return ""
        ctx, r = self.ctx, self.param.rank
        tests = [f"{operand(f'{scalar(ctx, self.coords[0])} + {col}')} < {extent(ctx, self.tensor, r - 1)}"]
        if not self.flat and r > 1:
            tests.append(f"{operand(f'{scalar(ctx, self.coords[1])} + {row}')} < {extent(ctx, self.tensor, r - 2)}")
        return " && ".join([*tests, *outer_tests(ctx, self.tensor, self.coords, 1 if self.flat else 2)])


def chunk_mask(ctx: Context, mask: Expr, t: FragT, per: int) -> str | None:
    """C text of the test for a whole run of `per` elements that starts at (`row_`, `col_`); None if the mask may change inside a run."""
    if mask.op == "in_bounds" and multiple_of(ctx.program, ctx.role.role.name, mask.args[2], per) and t.cols % per == 0:
        return f"row_ < {factor(ctx, mask.args[1])} && col_ < {factor(ctx, mask.args[2])}"
    return None


class VecVisit:
    """The pieces of a `vec` fragment that a thread moves: 16 bytes, or one register's elements where a mask or alignment forbids that."""

    def __init__(self, ctx: Context, a: Access, mask: Expr | None) -> None:
        t = a.type
        self.ctx, self.access, self.mask = ctx, a, mask
        bits = DTYPES[t.dtype].bits
        self.per = min(t.chunk or 1, 128 // bits)
        self.whole = t.rows * t.cols // (t.chunk or 1) % ctx.role.threads == 0
        test = chunk_mask(ctx, mask, t, self.per) if mask is not None else ""
        clip_fits = not a.op.attrs.get("clip") or (multiple_of(ctx.program, ctx.role.role.name, a.coords[0], self.per) and a.extent_divides(self.per))
        self.wide = bits in (8, 16, 32) and t.dtype != "bool" and self.per * bits in (32, 64, 128) and t.cols % self.per == 0 and test is not None and clip_fits and a.aligned(self.per)
        self.test = test or ""

    def _own(self, at: Index) -> tuple[str, str, str, list[str]]:
        """Place, row, column and guard of one element by itself."""
        t = self.access.type
        flat = operand(vec_element(self.ctx, t, at))
        row, col = (f"{flat} / {t.cols}", f"{flat} % {t.cols}") if t.rows > 1 else ("0", flat)
        place = f"(u64)({row}) * {self.access.row_stride()} + {col}" if t.rows > 1 else flat
        return place, row, col, [] if self.whole else [f"{flat} < {t.rows * t.cols}"]

    def walk(self, wide: Callable[[Index, str], None], narrow: Callable[[Index, list[str], list[str]], None]) -> None:
        """Call `wide(index, place)` for each 16-byte piece, or `narrow(index, places, guards)` for each register's elements."""
        ctx, a, t = self.ctx, self.access, self.access.type
        step = self.per if self.wide else packing(t)
        with ctx.out.unrolled("i_", elements(t, ctx.role.warps) // step):
            at = loop("i_", step)
            ctx.out.line(f"const int at_ = {vec_element(ctx, t, at)};")
            if t.rows > 1:
                ctx.out.line(f"const int row_ = at_ / {t.cols}, col_ = at_ % {t.cols};")
            row, col = ("row_", "col_") if t.rows > 1 else ("0", "at_")
            base = f"(u64)row_ * {a.row_stride()} + col_" if t.rows > 1 else "at_"
            inside = [] if self.whole else [f"at_ < {t.rows * t.cols}"]
            if self.wide:
                tests = inside + ([self.test.replace("row_", row).replace("col_", col)] if self.test else [])
                tests += [c] if (c := a.clip(row, col)) else []
                with ctx.out.block(f"if ({' && '.join(tests)})") if tests else nullcontext():
                    wide(at, base)
                return
            places, guards = [], []
            apart = (t.chunk or 1) % step != 0  # the elements of a register lie in several runs
            for p in range(step):
                if apart and p:
                    base, row, col, inside = self._own(at.plus(p))
                tests = inside + ([element(ctx, self.mask, At(t, at.plus(p)))] if self.mask is not None else [])
                shift = f" + {p}" if p and not apart else ""
                tests += [c] if (c := a.clip(row, f"{col}{shift}")) else []
                places.append(f"{base}{shift}")
                guards.append(" && ".join(tests))
            narrow(at, places, guards)


def by_element(t: FragT) -> bool:
    """Whether no vector access moves a fragment: operands in their own order, a thread a row, tiles of 64-bit elements or truth values."""
    return t.form in ("b", "rows") or (t.form in TILES and (DTYPES[t.dtype].bits == 64 or t.dtype == "bool"))


def load(ctx: Context, op: Op, place: Place | None) -> str:
    """`lm.load`."""
    assert place is not None
    t = place.type
    mask = op.operands.get("mask")
    mask_e = resolve(ctx, mask) if isinstance(mask, Expr) else None
    filled = packing(t) > 1 and op.attrs.get("fill") and t.form not in ("rowvec", "colvec")
    if is_gather(op) or filled or by_element(t):
        gather(ctx, op, place, mask_e)
        return ""
    a = Access(ctx, op, t)
    if t.form == "vec":
        _load_vec(ctx, op, place, a, mask_e)
    elif t.form in TILES:
        _load_tile(ctx, op, place, a, mask_e)
    elif t.form in ("rowvec", "colvec"):
        vectors.load_global(ctx, place, a.base(), [c] if (c := a.clip("", "where_")) else [], mask_e, op.attrs.get("fill") or 0, op.span)
    else:
        not_lowered(f"a load of {t} from global memory", op.span)
    return ""


def _load_vec(ctx: Context, op: Op, place: Place, a: Access, mask: Expr | None) -> None:
    t, p = place.type, packing(place.type)
    visit = VecVisit(ctx, a, mask)
    fill = op.attrs.get("fill") or 0
    if visit.wide and (mask is not None or op.attrs.get("clip") or not visit.whole):
        _fill(ctx, place, fill)
    bits = DTYPES[t.dtype].bits

    def wide(at: Index, where: str) -> None:
        regs = [f"{place.name}[{at.plus(p * w).divided(p)}]" for w in range(visit.per // p)]
        regs = regs if ctype(t) == "u32" else [f"(u32&){x}" for x in regs]
        ctx.out.line(f"{ctx.use(vector_load(visit.per * bits, const=a.param.const, cache=a.cache))}({', '.join(regs)}, {a.base()} + {where});")

    def narrow(at: Index, places: list[str], guards: list[str]) -> None:
        values = []
        for k, (where, guard) in enumerate(zip(places, guards, strict=True)):
            value = f"({a.base()})[{where}]"
            value = f"({guard} ? {value} : {number(fill, ctype(t)) if p == 1 else '0'})" if guard else value
            values.append(value if p == 1 else f"(u32){'(u8)' if bits == 8 else ''}{value}" + (f" << {k * bits}" if k else ""))
        ctx.out.line(f"{place.name}[{at.divided(p)}] = {' | '.join(values)};")

    visit.walk(wide, narrow)


def _load_tile(ctx: Context, op: Op, place: Place, a: Access, mask: Expr | None) -> None:
    """Two neighbouring columns a thread at a time, or one where a mask may part them."""
    t = place.type
    bits, p = DTYPES[t.dtype].bits, packing(t)
    if mask is None and not op.attrs.get("clip") and bits > 8 and paired(t) and a.aligned(2):
        device = ctx.use(vector_load(2 * bits, const=a.param.const, cache=a.cache))

        def call(at: Index, where: str) -> str:
            regs = [f"{place.name}[{at.plus(k).divided(p)}]" for k in range(0, 2, p)]
            return f"{device}({', '.join(x if ctype(t) == 'u32' else f'(u32&){x}' for x in regs)}, {where});"

        tile_pairs(ctx, a, call)
        return
    if mask is None and not op.attrs.get("clip") and bits == 8 and a.aligned(2):
        byte_pairs(ctx, a, lambda at, first, second: f"{place.name}[{at.divided(4)}] = (u32)*(const u16*)({first}) | (u32)*(const u16*)({second}) << 16;")
        return
    fill = op.attrs.get("fill") or 0
    with ctx.out.unrolled("i_", elements(t, ctx.role.warps) // p):
        values = []
        for k in range(p):
            at = At(t, loop("i_", p, k))
            ctx.out.line(f"const int row{k}_ = {at.row(ctx)}, col{k}_ = {at.col(ctx)};")
            guards = [element(ctx, mask, at)] if mask is not None else []
            guards += [c] if (c := a.clip(f"row{k}_", f"col{k}_")) else []
            value = f"({a.base()})[(u64)row{k}_ * {a.row_stride()} + col{k}_]"
            value = f"({' && '.join(guards)} ? {value} : {number(fill, ctype(t)) if p == 1 else '0'})" if guards else value
            values.append(value if p == 1 else f"(u32){'(u8)' if bits == 8 else ''}{value}" + (f" << {bits * k}" if k else ""))
        ctx.out.line(f"{place.name}[i_] = {' | '.join(values)};")


def _fill(ctx: Context, place: Place, fill: object) -> None:
    with ctx.out.unrolled("i_", place.count):
        ctx.out.line(f"{place.name}[i_] = {'0u' if packing(place.type) > 1 else fill};")


def paired(t: FragT) -> bool:
    """Whether elements 2i and 2i + 1 of a tile are neighbouring columns."""
    return t.form == "acc" or operand_order(t) > 1


def tile_pairs(ctx: Context, a: Access, call: Callable[[Index, str], str]) -> None:
    """Visit the two neighbouring columns that a thread has of each row half of a tile."""
    t = a.type
    with ctx.out.unrolled("i_", elements(t, ctx.role.warps) // 2):
        at = loop("i_", 2)
        position = At(t, at)
        ctx.out.line(call(at, f"{a.base()} + (u64)({position.row(ctx)}) * {a.row_stride()} + {position.col(ctx)}"))


def byte_pairs(ctx: Context, a: Access, call: Callable[[Index, str, str], str]) -> None:
    """Visit the four 8-bit elements of each register of a tile: two pairs of neighbouring columns."""
    with ctx.out.unrolled("i_", elements(a.type, ctx.role.warps) // 4):
        at = loop("i_", 4)
        where = [f"{a.base()} + (u64)({p.row(ctx)}) * {a.row_stride()} + {p.col(ctx)}" for p in (At(a.type, at), At(a.type, at.plus(2)))]
        ctx.out.line(call(at, *where))


def store(ctx: Context, op: Op) -> None:
    """`lm.store`."""
    x = op.operands["x"]
    assert isinstance(x, Expr)
    if isinstance(x.type, ScalarT):
        _store_scalar(ctx, op, x)
        return
    mask = op.operands.get("mask")
    mask_e = resolve(ctx, mask) if isinstance(mask, Expr) else None
    x = prepared(ctx, x)
    t = x.type
    assert isinstance(t, FragT)
    if is_gather(op) or by_element(t):
        scatter(ctx, op, x, t, mask_e, lambda i: _memory_value(ctx, x, t, i))
        return
    a = Access(ctx, op, t)
    bits = DTYPES[t.dtype].bits
    if t.form == "vec":
        _store_vec(ctx, a, x, t, mask_e)
    elif t.form in TILES:
        _store_tile(ctx, a, x, t, mask_e, bits)
    elif t.form in ("rowvec", "colvec"):
        vectors.store_global(ctx, x, t, a.base(), [c] if (c := a.clip("", "where_")) else [], mask_e)
    elif t.form == "scalar":
        guard = "thread == 0"
        ctx.out.line(f"if ({guard}) *({a.base()}) = {_memory_value(ctx, x, t, Index())};")
    else:
        not_lowered(f"a store of {t} to global memory", op.span)


def _store_vec(ctx: Context, a: Access, x: Expr, t: FragT, mask: Expr | None) -> None:
    visit = VecVisit(ctx, a, mask)
    p = packing(t)

    def wide(at: Index, where: str) -> None:
        words = [_bits(ctx, x, t, at.plus(w)) for w in range(0, visit.per, p)]
        device = ctx.use(vector_store(visit.per * DTYPES[t.dtype].bits, a.cache))
        ctx.out.line(f"{device}({a.base()} + {where}, {', '.join(words)});")

    def narrow(at: Index, places: list[str], guards: list[str]) -> None:
        for k, (where, guard) in enumerate(zip(places, guards, strict=True)):
            text = f"({a.base()})[{where}] = {_memory_value(ctx, x, t, at.plus(k))};"
            ctx.out.line(f"if ({guard}) {text}" if guard else text)

    visit.walk(wide, narrow)


def _bits(ctx: Context, x: Expr, t: FragT, at: Index) -> str:
    """One 32-bit register of the fragment as u32."""
    text = word(ctx, x, t, at)
    return {"float": f"__float_as_uint({text})", "int": f"(u32)({text})"}.get(ctype(t), text)


def _memory_value(ctx: Context, x: Expr, t: FragT, at: Index) -> str:
    """The element as its type in memory."""
    return vectors.memory_value(ctx, t.dtype, element(ctx, x, At(t, at)), x.span)


def _store_tile(ctx: Context, a: Access, x: Expr, t: FragT, mask: Expr | None, bits: int) -> None:
    pairs = mask is None and not a.op.attrs.get("clip") and paired(t) and a.aligned(2)
    if pairs and bits == 8:
        byte_pairs(ctx, a, lambda at, first, second: f"const u32 x_ = {word(ctx, x, t, at)}; *(u16*)({first}) = (u16)x_; *(u16*)({second}) = (u16)(x_ >> 16);")
        return
    if pairs:
        device = ctx.use(vector_store(2 * bits, a.cache))
        tile_pairs(ctx, a, lambda at, p: f"{device}({p}, {', '.join(_bits(ctx, x, t, at.plus(k)) for k in range(0, 2, packing(t)))});")
        return
    with ctx.out.unrolled("i_", elements(t, ctx.role.warps)):
        at = At(t, loop("i_"))
        ctx.out.line(f"const int row_ = {at.row(ctx)}, col_ = {at.col(ctx)};")
        guards = [element(ctx, mask, at)] if mask is not None else []
        guards += [c] if (c := a.clip("row_", "col_")) else []
        text = f"({a.base()})[(u64)row_ * {a.row_stride()} + col_] = {_memory_value(ctx, x, t, loop('i_'))};"
        ctx.out.line(f"if ({' && '.join(guards)}) {text}" if guards else text)


def _store_scalar(ctx: Context, op: Op, x: Expr) -> None:
    dtype = ctx.program.tensors[str(op.attrs["tensor"])].dtype or (x.type.dtype if isinstance(x.type, ScalarT) else "i32")
    a = Access(ctx, op, FragT("scalar", 1, 1, dtype))
    x = Expr("const", (), x.attrs, ScalarT(dtype), x.span) if x.op == "const" else x
    text = f"*({a.base()}) = {vectors.memory_value(ctx, dtype, scalar(ctx, x), x.span)};"
    ctx.out.line(text if ctx.role.single else f"if (thread == 0) {text}")


def ld(ctx: Context, op: Op, place: Place | None) -> str:
    """`lm.ld`: one uniform scalar."""
    i = op.operands["i"]
    assert isinstance(i, Expr)
    tensor = str(op.attrs["tensor"])
    dtype = ctx.program.tensors[tensor].dtype
    text = f"{pointer(ctx, tensor)}[{scalar(ctx, i)}]"
    return vectors.computed(ctx, dtype or "i32", text, op.span)


EFFECTS: dict[str, Callable[[Context, Op], None]] = {"store": store}
RESULTS: dict[str, Callable[[Context, Op, Place | None], str]] = {"load": load, "ld": ld}

__all__ = ["EFFECTS", "RESULTS", "rank"]
