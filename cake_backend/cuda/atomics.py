"""Atomic updates of memory: reductions without a result, in vectors where the target has them."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.cuda import conversions
from cake_backend.cuda.addresses import linear_column, rect
from cake_backend.cuda.context import Context
from cake_backend.cuda.elementwise import element, prepared, resolve, word
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, elements, loop, packing
from cake_backend.cuda.global_memory import Access, VecVisit, paired, tile_pairs
from cake_backend.cuda.per_element import Elements, is_gather, once
from cake_backend.cuda.positions import TILES, At
from cake_backend.cuda.preamble import Device, asm_call
from cake_backend.cuda.scalars import plus, scalar
from cake_ir.program import Expr, Op
from cake_ir.types import FragT, ScalarT

_INTEGER = {"i32": ("s32", "int"), "u32": ("u32", "u32")}


def update(op: str, dtype: str, space: str, scope: str, count: int = 1) -> Device:
    """One reduction of `count` neighbouring elements: 32-bit ones, or 16-bit ones in pairs where `dtype` ends in `x2`."""
    bits = op in ("and", "or", "xor")
    kind, ctype = ("b32", "u32") if bits else _INTEGER.get(dtype, (dtype, "float" if dtype == "f32" else "u32"))
    constraint = {"float": "f", "int": "r", "u32": "r"}[ctype]
    half = dtype in ("f16", "bf16")
    name = f"red_{space}_{op}_{kind}{f'_v{count}' if count > 1 else ''}_{scope}"
    if dtype == "f32" and op != "add":
        return _float_extremum(op, space, scope)
    pointer, operand = ("u32 p", '"r"(p)') if space == "shared" else ("void* p", '"l"(p)')
    values = ", ".join(f"{'(u16)' if half else ''}x{i}" for i in range(count))
    inputs = ", ".join(f'"{"h" if half else constraint}"({v})' for v in values.split(", "))
    regs = ", ".join(f"%{i + 1}" for i in range(count))
    vector, listed = (f".v{count}", f"{{{regs}}}") if count > 1 else ("", regs)
    rounding = ".noftz" if "16" in kind else ""
    return asm_call(
        name, f"{pointer}, {', '.join(f'{ctype} x{i}' for i in range(count))}",
        f"red.relaxed.{scope}.{space}.{op}{rounding}{vector}.{kind} [%0], {listed};", f"{operand}, {inputs}",
    )  # fmt: skip


def _float_extremum(op: str, space: str, scope: str) -> Device:
    """f32 bits order like integers, those of negative numbers the other way round."""
    other = {"min": "max", "max": "min"}[op]
    signed, unsigned = update(op, "i32", space, scope), update(other, "u32", space, scope)
    name = f"red_{space}_{op}_f32_{scope}"
    pointer = "u32 p" if space == "shared" else "void* p"
    return Device(
        name,
        f"""
DEVICE void {name}({pointer}, float x) {{
  if (__float_as_int(x) >= 0) {signed.name}(p, __float_as_int(x));
  else {unsigned.name}(p, __float_as_uint(x));
}}""",
        (signed, unsigned),
    )


def _guarded(ctx: Context, tests: list[str], text: str) -> None:
    ctx.out.line(f"if ({' && '.join(tests)}) {text}" if tests else text)


def _bits(ctx: Context, dtype: str, value: str, e: Expr) -> str:
    """An element as the parameter of its update."""
    return conversions.pack(ctx, dtype, [value, "0.0f"], e.span) if dtype in ("bf16", "f16") else value


def atomic(ctx: Context, op: Op) -> None:
    """`lm.atomic`."""
    x, name, scope = op.operands["x"], str(op.attrs["op"]), str(op.attrs["scope"])
    assert isinstance(x, Expr)
    dtype = ctx.program.tensors[str(op.attrs["tensor"])].dtype or "f32"
    if dtype == "bf16" and not ctx.has("BF16X2_ADD"):
        not_lowered(f"an atomic addition of bf16 on {ctx.program.target}", op.span)
    one = update(name, dtype, "global", scope)
    mask = op.operands.get("mask")
    mask_e = resolve(ctx, mask) if isinstance(mask, Expr) else None
    if isinstance(x.type, ScalarT):
        value = _bits(ctx, dtype, scalar(ctx, x if x.op != "const" else Expr("const", (), x.attrs, ScalarT(dtype), x.span)), x)
        t = FragT("scalar", 1, 1, dtype)
        Elements(ctx, op, t, mask_e).visit(lambda i, p, tests: _guarded(ctx, [] if ctx.role.single else tests, f"{ctx.use(one)}({p}, {value});"), once=True)
        return
    x = prepared(ctx, x)
    t = x.type
    assert isinstance(t, FragT)
    if name == "add" and dtype != "i32" and dtype != "u32" and not is_gather(op) and _vectors(ctx, op, x, t, mask_e, scope):
        return
    value_of: Callable[[Index], str] = lambda i: _bits(ctx, dtype, element(ctx, x, At(t, i)), x)  # noqa: E731 - bound here, used below
    Elements(ctx, op, t, mask_e).visit(lambda i, p, tests: _guarded(ctx, tests, f"{ctx.use(one)}({p}, {value_of(i)});"), once=True)


def _vectors(ctx: Context, op: Op, x: Expr, t: FragT, mask: Expr | None, scope: str) -> bool:
    """Additions of neighbouring elements at once; False where the fragment's form or alignment has none."""
    wide, pair = ctx.has("RED_VECTOR"), packing(t) == 2
    a = Access(ctx, op, t)
    kind = f"{t.dtype}x2" if pair else t.dtype
    if t.form == "vec" and (pair or wide):
        visit = VecVisit(ctx, a, mask)
        if not visit.wide or visit.per < 2:
            return False
        words = visit.per // 2 if pair else visit.per
        at_once = words if wide else 1
        device = ctx.use(update("add", kind, "global", scope, at_once))

        def runs(at: Index, where: str) -> None:
            values = [word(ctx, x, t, at.plus(i * packing(t))) for i in range(words)]
            for first in range(0, words, at_once):
                step = first * packing(t)
                ctx.out.line(f"{device}({a.base()} + {where}{f' + {step}' if step else ''}, {', '.join(values[first : first + at_once])});")

        visit.walk(runs, lambda at, places, guards: None)
        return True
    if t.form in TILES and mask is None and not op.attrs.get("clip") and (pair or wide) and paired(t) and a.aligned(2):
        device = ctx.use(update("add", kind, "global", scope, 1 if pair else 2))
        tile_pairs(ctx, a, lambda at, p: f"{device}({p}, {', '.join(word(ctx, x, t, at.plus(k)) for k in range(0, 2, packing(t)))});")
        return True
    return False


def view_atomic(ctx: Context, op: Op) -> None:
    """`view.atomic`: each element at its own index; an index outside the view touches nothing."""
    view, x, idx = op.operands["view"], op.operands["x"], op.operands["idx"]
    assert isinstance(view, Expr) and isinstance(x, Expr) and isinstance(idx, Expr)
    r = rect(ctx, view)
    dtype = ctx.program.views[r.view].dtype
    if ctx.layouts[r.view].swizzle:
        not_lowered("an atomic update of a swizzled view", op.span)
    idx = prepared(ctx, idx)
    t = idx.type
    assert isinstance(t, FragT)
    x = prepared(ctx, x) if isinstance(x.type, FragT) else Expr(x.op, x.args, x.attrs, ScalarT(dtype), x.span) if x.op == "const" else x
    call = ctx.use(update(str(op.attrs["op"]), dtype, "shared", "cta"))
    count = elements(t, ctx.role.warps)
    with ctx.out.unrolled("i_", count) if count > 1 else ctx.out.block(""):
        at = At(t, loop("i_", 1, 0, count) if count > 1 else Index())
        ctx.out.line(f"const int at_ = {element(ctx, idx, at)};")
        tests = [*once(ctx, t, at), f"(u32)at_ < {r.cols}u"]
        address = plus(r.base, linear_column(r, ctx.layouts[r.view]), "4u * (u32)at_")
        ctx.out.line(f"if ({' && '.join(tests)}) {call}({address}, {element(ctx, x, at)});")


EFFECTS: dict[str, Callable[[Context, Op], None]] = {"atomic": atomic, "view.atomic": view_atomic}
