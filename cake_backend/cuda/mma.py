"""`lm.mma`: wgmma groups on shared-memory operands, warp-level instructions on fragments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from cake_backend.cuda import block_scaled, mma_sync, wgmma
from cake_backend.cuda.addresses import linear_column, rect
from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.context import Context, Place, Rect
from cake_backend.cuda.elementwise import resolve, scaled_int, stage_place, temporary
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import packing, tile_blocks, tile_columns
from cake_backend.cuda.inflight import place_name
from cake_backend.cuda.pins import flush, pin_places
from cake_backend.cuda.resources import shared_memory
from cake_backend.cuda.rings import known_position
from cake_backend.cuda.scalars import plus, scalar
from cake_ir.derive.mma_groups import mma_groups
from cake_ir.descriptors import MatrixDescriptor, descriptor, operand_problem
from cake_ir.program import Expr, Op
from cake_ir.types import FragT, ViewT


def mma(ctx: Context, op: Op) -> None:
    """Dispatch on the operands."""
    kind = op.attrs["kind"]
    if kind == "wgmma" and ctx.has("WGMMA"):
        _wgmma(ctx, op)
    elif kind == "mma_sync":
        _mma_sync(ctx, op)
    else:
        not_lowered(f"an MMA of kind {kind} on {ctx.program.target}", op.span)


def operand_of(op: Op, name: str) -> Expr:
    e = op.operands[name]
    assert isinstance(e, Expr)
    return e


def accumulator(ctx: Context, op: Op) -> tuple[Place, str]:
    """The accumulator's array and the C text of its first register."""
    e = operand_of(op, "acc")
    if e.op not in ("var", "frag_stage"):
        not_lowered("an accumulator that is part of a fragment", e.span)
    place, offset = stage_place(ctx, e)
    return place, f"{place.name} + {offset}" if offset else place.name


def accumulate(ctx: Context, init: Expr | None, k: str, steps: int) -> str:
    """C text of the accumulate flag of step `k`: false only for the first step of an MMA that starts from zero."""
    if init is None or (init.op == "const" and not init.attrs["value"]):
        return "1"
    if init.op == "const":
        return f"{k} != 0" if steps > 1 else "0"
    starts = scalar(ctx, Expr("not", (init,), {}, init.type, init.span))
    return f"{k} != 0 || {starts}" if steps > 1 else starts


def _steps(steps: tuple[int, ...], k: str) -> str:
    """C text of `steps[k]` in the descriptor's unit of 16 bytes."""
    if len(steps) == 1:
        return ""
    steps = tuple(s >> 4 for s in steps)
    first = steps[1]
    if all(s == first * i for i, s in enumerate(steps)):
        return f"{first}u * {k}"
    per = next(i for i, s in enumerate(steps) if s != first * i)
    jump = steps[per]
    if all(s == jump * (i // per) + first * (i % per) for i, s in enumerate(steps)):
        inner = f" + {first}u * ({k} % {per})" if per > 1 else ""
        return f"{jump}u * ({k} / {per}){inner}"
    raise AssertionError("K steps are regular in panels")


_TERM = re.compile(r"(\d+)u( \* (?:\w+|\([^()]*\)))?")


def _sixteenth(text: str) -> str:
    """C text of a sum of bytes in the descriptor's unit of 16 bytes: its factors divided where they are all known, else the sum shifted."""
    terms = [_TERM.fullmatch(t) for t in text.split(" + ")]
    if all(m and not int(m[1]) % 16 for m in terms):
        return " + ".join(f"{int(m[1]) // 16}u{m[2] or ''}" for m in terms if m)
    return f"(({text}) >> 4)"


def _descriptor(ctx: Context, e: Expr, span_op: Op) -> tuple[str, str, MatrixDescriptor]:
    """Of a shared-memory operand: C text of its descriptor's lower half at the first K step, of the upper half, and the fields."""
    r = rect(ctx, e)
    layout = ctx.layouts[r.view]
    t = e.type
    assert isinstance(t, ViewT)
    col = int(r.col) if r.col.isdigit() else 0
    fault = operand_problem(layout, 0, r.rows, col, r.cols, r.transposed)
    if fault or layout.swizzle is None:
        not_lowered(f"this operand of wgmma ({fault or 'no swizzle'})", e.span)
    d = descriptor(layout, 0, 0, r.rows, col, r.cols, r.transposed)
    start = ctx.lookup(f"view {r.view}")
    assert isinstance(start, Rect)
    whole = plus(r.base, linear_column(r, layout))
    if ctx.program.turns and (whole == start.base or whole.startswith(f"{start.base} + ")):
        # as below, and what is known is one constant: on the way from a turn to the first MMA there is one addition
        view = ctx.program.views[r.view]
        known = (shared_memory(ctx.program).pools[view.pool] + view.offset) >> 4 | d.lbo >> 4 << 16
        slot = _sixteenth(whole.removeprefix(f"{start.base} + ")) if whole != start.base else ""
        return plus(f"pool_low + {known}u", slot), wgmma.high_word(layout.swizzle, d.sbo), d
    make = ctx.use(wgmma.DESCRIPTOR_LOW)
    if whole.startswith(f"{start.base} + "):
        # the view's own part does not change: with the way to the slot added behind the mask, a loop adds once and masks never
        low = f"{make}({start.base}, {d.lbo}u) + {_sixteenth(whole.removeprefix(f'{start.base} + '))}"
    else:
        low = f"{make}({whole}, {d.lbo}u)"
    return low, wgmma.high_word(layout.swizzle, d.sbo), d


def _wgmma(ctx: Context, op: Op) -> None:
    acc, a, b = operand_of(op, "acc"), operand_of(op, "a"), operand_of(op, "b")
    t, tb = acc.type, b.type
    assert isinstance(t, FragT) and isinstance(tb, ViewT)
    if t.warps is not None or ctx.role.warps != 4:
        not_lowered("a wgmma by anything but a warpgroup", op.span)
    _, first = accumulator(ctx, op)
    blocks = t.rows // 64
    b_base, b_word, b_desc = _descriptor(ctx, b, op)
    from_registers = isinstance(a.type, FragT)
    a_type = a.type
    assert isinstance(a_type, FragT | ViewT)
    a_transposed = isinstance(a_type, ViewT) and a_type.transposed
    shape = wgmma.Shape(t.cols, a_type.dtype, tb.dtype, t.dtype, from_registers, a_transposed, tb.transposed)
    if shape.a not in wgmma.K_OF or t.cols > 256 or t.cols % 8:
        not_lowered(f"a wgmma of {t.cols} columns of {shape.a}", op.span)
    steps = len(b_desc.k_steps)
    init = op.operands.get("init")
    flag = accumulate(ctx, init if isinstance(init, Expr) else None, "k_", steps)
    describe = ctx.use(wgmma.DESCRIPTOR)
    fresh = False
    if from_registers:
        a = resolve(ctx, a)
        if not _whole_registers(a, shape.k):
            a, fresh = temporary(ctx, a), True
    flush(ctx, op.span)
    fenced = fresh or op.id not in mma_groups(ctx.program).follows
    pin_places(ctx, _registers_ahead(ctx, op) if fenced else ())
    call = ctx.use(wgmma.instruction(shape))
    with ctx.out.block(""):
        source = _registers(ctx, a, shape.k) if from_registers else _shared(ctx, a, op)
        ctx.out.line(f"const u32 {f'a_ = {source.base}, ' if source.base else ''}b_ = {b_base};")
        if fenced:
            ctx.out.line(f"{ctx.use(wgmma.FENCE)}();")

        def issue(k: str) -> None:
            b_text = f"{describe}({b_word}, {plus('b_', _steps(b_desc.k_steps, k) if steps > 1 else '')})"
            if blocks == 1:
                ctx.out.line(f"{call}({first}, {source.text(k if steps > 1 else '', '')}, {b_text}, {flag});")
                return
            # The 64-row blocks are the inner loop: neighbouring instructions then never share all operands.
            with ctx.out.unrolled("m_", blocks):
                ctx.out.line(f"{call}({first} + {shape.registers} * m_, {source.text(k if steps > 1 else '', 'm_')}, {b_text}, {flag});")

        if steps == 1:
            issue("0")
        else:
            with ctx.out.unrolled("k_", steps):
                issue("k_")
        if op.id in mma_groups(ctx.program).closes:
            ctx.out.line(f"{ctx.use(wgmma.COMMIT)}();")
    at = known_position(ctx, acc.args[1]) if acc.op == "frag_stage" else None
    stage = None if at is None else (str(place_name(acc)), at % stage_place(ctx, acc)[0].type.stages)
    if op.id in mma_groups(ctx.program).opens:
        ctx.role.flying.append(stage)
    elif ctx.role.flying[-1] is None:
        ctx.role.flying[-1] = stage
    elif stage not in (None, ctx.role.flying[-1]):
        not_lowered("a group of MMAs into several fragments of an array", op.span)


def _registers_ahead(ctx: Context, op: Op) -> tuple[str, ...]:
    """Places that an MMA and those that follow it at once hold from here on: one fence stands in front of them all."""
    before, groups = ctx.role.inflight.before, mma_groups(ctx.program)
    names = dict.fromkeys(before.get(op.id, ()))
    ops = ctx.program.ops
    for later in ops[next(i for i, o in enumerate(ops) if o.id == op.id) + 1 :]:
        if later.id not in groups.follows:
            break
        names.update(dict.fromkeys(before.get(later.id, ())))
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Source:
    """The A operand: C text of its descriptor's lower half (none for registers), and of one instruction's operand by K step and 64-row block."""

    base: str
    text: Callable[[str, str], str]


def _shared(ctx: Context, a: Expr, op: Op) -> Source:
    base, word, fields = _descriptor(ctx, a, op)
    describe = ctx.use(wgmma.DESCRIPTOR)

    def text(k: str, m: str) -> str:
        row = f"{fields.row_steps[1] >> 4}u * {m}" if m else ""
        return f"{describe}({word}, {plus('a_', row, _steps(fields.k_steps, k) if k else '')})"

    return Source(base, text)


def _whole_registers(a: Expr, k: int) -> bool:
    """Whether an A fragment lies in registers as its instructions take it: a place, or columns of one that begin and end between two instructions."""
    if a.op != "frag_cols" or a.args[0].op != "var":
        return a.op == "var"
    lo = a.args[1]
    factors = lo.args if lo.op == "mul" else (lo,)
    return any(f.op == "const" and int(f.attrs["value"]) % k == 0 for f in factors)  # type: ignore[call-overload]  # columns are integers


def _registers(ctx: Context, a: Expr, depth: int) -> Source:
    """A in registers: four of them an instruction of `depth` columns, those of a block of 64 rows together."""
    lo = scaled_int(ctx, a.args[1], 4, depth) if a.op == "frag_cols" else ""
    place, offset = stage_place(ctx, a.args[0] if a.op == "frag_cols" else a)
    deep = place.type.cols // depth
    bits = "{}" if packing(place.type) > 1 else "__float_as_uint({})"  # tf32 is held as values

    def text(k: str, m: str) -> str:
        at = " + ".join(x for x in (offset, lo, f"{4 * deep} * {m}" if m else "", f"4 * {k}" if k else "") if x)
        return ", ".join(bits.format(f"{place.name}[{' + '.join(x for x in (at, str(i) if i or not at else '') if x)}]") for i in range(4))

    return Source("", text)


def _mma_sync(ctx: Context, op: Op) -> None:
    acc, a, b = operand_of(op, "acc"), operand_of(op, "a"), operand_of(op, "b")
    t, ta, tb = acc.type, a.type, b.type
    assert isinstance(t, FragT) and isinstance(ta, FragT) and isinstance(tb, FragT)
    shape = mma_sync.shape(ta.dtype, tb.dtype, t.dtype)
    if shape is None:
        not_lowered(f"an mma.sync of {ta.dtype} and {tb.dtype} into {t.dtype}", op.span)
    if ta.dtype in ("e4m3", "e5m2") and not ctx.has("FP8_MMA"):
        not_lowered(f"an 8-bit floating-point MMA on {ctx.program.target}", op.span)
    place, first = accumulator(ctx, op)
    sources = []
    for e in (a, b):
        e = resolve(ctx, e)
        sources.append(stage_place(ctx, e if e.op in ("var", "frag_stage") else temporary(ctx, e)))
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    deep = ta.cols // shape.k
    init = op.operands.get("init")
    if isinstance(init, Expr) and not (init.op == "const" and not init.attrs["value"]):
        _zero(ctx, place, init)
    scaled = block_scaled.scales(ctx, op)
    call = ctx.use((mma_sync if scaled is None else block_scaled).instruction(shape))
    (a_place, a_offset), (b_place, b_offset) = sources
    per_acc = shape.acc_registers

    def text(name: str, *terms: str) -> str:
        return " + ".join([name, *(x for x in terms if x)])

    def bits(place: Place, at: str) -> str:
        return at if packing(place.type) > 1 else f"(const u32*)({at})"  # tf32 is held as values

    def innermost(k: str, m: str, n: str) -> None:
        acc_index = f"{columns} * {m} + {n}" if m and n else f"{columns} * {m}" if m else n
        d = text(first, f"{per_acc} * {operand(acc_index)}" if acc_index else "")
        a_index = f"{deep} * {m} + {k}" if m and k else f"{deep} * {m}" if m else k
        b_index = f"{deep} * {n} + {k}" if n and k else f"{deep} * {n}" if n else k
        ctx.out.line(
            f"{call}({d}, {bits(a_place, text(a_place.name, a_offset, f'4 * {operand(a_index)}' if a_index else ''))}, "
            f"{bits(b_place, text(b_place.name, b_offset, f'2 * {operand(b_index)}' if b_index else ''))}{'' if scaled is None else ', ' + scaled.arguments(k, m, n)});"
        )

    _nest(ctx, (("k_", deep), ("m_", blocks), ("n_", columns)), innermost)


def _nest(ctx: Context, loops: tuple[tuple[str, int], ...], body: Callable[..., None], *names: str) -> None:
    """Unrolled loops around `body`; a loop of one trip is left out and passes an empty name."""
    if not loops:
        body(*names)
        return
    (var, count), rest = loops[0], loops[1:]
    if count == 1:
        _nest(ctx, rest, body, *names, "")
        return
    with ctx.out.unrolled(var, count):
        _nest(ctx, rest, body, *names, var)


def _zero(ctx: Context, place: Place, init: Expr) -> None:
    """Start from zero, always or under the condition."""
    zero = "0u" if packing(place.type) > 1 else "0" if place.type.dtype == "i32" else "0.0f"
    if init.op == "const":
        with ctx.out.unrolled("i_", place.count):
            ctx.out.line(f"{place.name}[i_] = {zero};")
        return
    with ctx.out.block(f"if ({scalar(ctx, init)})"), ctx.out.unrolled("i_", place.count):
        ctx.out.line(f"{place.name}[i_] = {zero};")


HANDLERS: dict[str, Callable[[Context, Op], None]] = {"mma": mma}
