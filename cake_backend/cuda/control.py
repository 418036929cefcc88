"""Statements: assignments, loops over ranges and tiles, uniform branches."""

from __future__ import annotations

from cake_backend.cuda import compute, fragment_arrays, pins, schedulers
from cake_backend.cuda.addresses import rect
from cake_backend.cuda.arming import analyse as arming_of
from cake_backend.cuda.context import Context, PairPlace, Place, Rect, Scalar, Slot, Tile, scope
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.lowerings import EFFECTS, RESULTS
from cake_backend.cuda.move import arm
from cake_backend.cuda.rings import counter, last_slot, position, step_slots
from cake_backend.cuda.scalars import CTYPE, scalar
from cake_backend.cuda.webs import Web
from cake_ir.program import Assign, Do, Expr, For, If, Op, Stmt, op_of
from cake_ir.program import statements as all_statements
from cake_ir.types import FragT, ListT, PairT, ScalarT, SlotT, TileT, TmemT, Type, ViewT


def body(ctx: Context, statements: tuple[Stmt, ...]) -> None:
    """Emit a role's body."""
    at_load, at_loop = arming_of(statements)
    ctx.role.armed = at_load
    ctx.role.armed_loops = at_loop
    block(ctx, statements)


def block(ctx: Context, statements: tuple[Stmt, ...]) -> None:
    """Emit a list of statements."""
    for i, s in enumerate(statements):
        if isinstance(s, For) and (ring := fragment_arrays.counted_ring(ctx, s)) is not None:
            fragment_arrays.unroll(ctx, s, ring, statements[i + 1 :], block, _end_of_body)
            return
        ctx.role.live = ctx.role.webs.live.get(id(s), frozenset())
        span = s.head if isinstance(s, For | If) else s.span
        with ctx.out.at(span):
            statement(ctx, s)


def statement(ctx: Context, s: Stmt) -> None:
    """Emit one statement."""
    begins = {w.name: w for w in ctx.role.webs.declared.get(id(s), ())}
    fragment_arrays.restart(ctx, begins)
    if isinstance(s, For | If):
        for web in begins.values():
            declare_ahead(ctx, web)
        _for(ctx, s) if isinstance(s, For) else _if(ctx, s)
        return
    if isinstance(s, Do):
        effect(ctx, s.op)
        return
    _assign(ctx, s, begins)
    pins.note_assignment(ctx, s)


def effect(ctx: Context, op: Op) -> None:
    """Emit an operation without a result."""
    handler = EFFECTS.get(op.name if "view" not in op.operands or f"view.{op.name}" not in EFFECTS else f"view.{op.name}")
    if handler is None:
        not_lowered(f"`{op.name}`", op.span)
    handler(ctx, op)


def declare_ahead(ctx: Context, web: Web) -> None:
    """Declare a place in front of the block that first writes it."""
    t, role = web.type, ctx.role
    if isinstance(t, FragT) and t.dtype == "bool" and not web.joined:
        return  # a name for its expression
    if isinstance(t, FragT | PairT | ListT):
        role.env[web.name] = compute.declare_place(ctx, web.name, t)
    elif isinstance(t, ScalarT):
        name = role.names.take(web.name)
        ctx.out.line(f"{CTYPE[t.dtype]} {name};")
        role.env[web.name] = Scalar(name)
    elif isinstance(t, SlotT):
        name, ring = role.names.take(web.name), role.env[f"ring {t.ring}"]
        parity = role.names.take(f"{web.name}_phase") if isinstance(ring, Slot) and ring.parity else ""
        ctx.out.line(f"u32 {name}{f', {parity}' if parity else ''};")
        role.env[web.name] = Slot(name, parity=parity)
    elif isinstance(t, ViewT | TmemT | TileT):
        return  # bound where it is assigned


def _assign(ctx: Context, s: Assign, begins: dict[str, Web]) -> None:
    t = s.value.type
    if isinstance(s.value, Op):
        if s.value.name == "compute":
            value = s.value.operands["value"]
            assert isinstance(value, Expr)
            web = begins.get(s.targets[0])
            compute.bind(ctx, s.targets[0], value, web.type if web else None, joined=id(s) in ctx.role.webs.joined)
            return
        _result(ctx, s, s.value, t, begins)
        return
    name = s.targets[0]
    e = s.value
    if isinstance(t, SlotT) and e.op == "step" and str(e.attrs["ring"]) in ctx.role.positions:
        ctx.role.env[name] = fragment_arrays.step(ctx, str(e.attrs["ring"]))
    elif isinstance(t, SlotT) and e.op == "step" and getattr(ctx.role.env[f"ring {e.attrs['ring']}"], "parity", ""):
        ctx.role.env[name] = step_slots(ctx, str(e.attrs["ring"]), name, begins=name in begins)
    elif isinstance(t, SlotT) and e.op == "at" and getattr(ctx.role.env[f"ring {e.attrs['ring']}"], "last", None) is not None:
        ctx.role.env[name] = last_slot(ctx, str(e.attrs["ring"]), name, begins=name in begins)
    elif isinstance(t, SlotT):
        _bind_text(ctx, name, "u32", _slot_text(ctx, e), begins, Slot)
    elif isinstance(t, ScalarT):
        _bind_text(ctx, name, CTYPE[t.dtype], scalar(ctx, e), begins, Scalar)
    elif isinstance(t, ViewT):
        _bind_view(ctx, name, e, begins)
    elif isinstance(t, TileT) and e.op == "var":
        ctx.role.env[name] = ctx.lookup(str(e.attrs["name"]))
    else:
        not_lowered(f"a name for {t}", s.span)


def _slot_text(ctx: Context, e: Expr) -> str:
    return f"{counter(ctx, str(e.attrs['ring']))}++" if e.op == "step" else position(ctx, e)


def _bind_text(ctx: Context, name: str, ctype: str, text: str, begins: dict[str, Web], kind: type[Scalar] | type[Slot]) -> None:
    if name in begins:
        constant = "const " if ctx.role.webs.written.get(name, 1) == 1 else ""
        variable = ctx.role.names.take(name)
        ctx.out.line(f"{constant}{ctype} {variable} = {text};")
        ctx.role.env[name] = kind(variable)
        return
    bound = ctx.role.env[name]
    assert isinstance(bound, Scalar | Slot)
    ctx.out.line(f"{bound.text} = {text};")


def _bind_view(ctx: Context, name: str, e: Expr, begins: dict[str, Web]) -> None:
    """A named view: its base address in a variable, its first column kept as text."""
    if ctx.role.webs.written.get(name, 1) > 1 and name not in begins:
        not_lowered("a view name that is bound to another view in the same place", e.span)
    found = rect(ctx, e)
    if e.op == "var" or found.base.isidentifier():
        ctx.role.env[name] = found
        return
    variable = ctx.role.names.take(name)
    ctx.out.line(f"const u32 {variable} = {found.base};")
    phase = found.phase
    if phase and not phase.isdigit():
        phase = ctx.role.names.take(f"{name}_row")
        ctx.out.line(f"const u32 {phase} = (u32)({found.phase});")
    ctx.role.env[name] = Rect(found.view, variable, found.col, found.rows, found.cols, found.transposed, found.stage, phase)


def _result(ctx: Context, s: Assign, op: Op, t: Type, begins: dict[str, Web]) -> None:
    """An operation whose result is bound: a load, a reduction across warps, a scalar read."""
    key = f"view.{op.name}" if "view" in op.operands and f"view.{op.name}" in RESULTS else op.name
    handler = RESULTS.get(key)
    if handler is None:
        not_lowered(f"`{op.name}`", op.span)
    name = s.targets[0]
    if isinstance(t, ScalarT):
        _bind_text(ctx, name, CTYPE[t.dtype], handler(ctx, op, None) or "", begins, Scalar)
        return
    if not isinstance(t, FragT):
        not_lowered(f"`{op.name}` into {t}", op.span)
    if name in begins:
        declared = begins[name].type
        assert isinstance(declared, FragT)
        place = compute.declare_place(ctx, name, declared)
        assert isinstance(place, Place)
        handler(ctx, op, place)
        ctx.role.env[name] = place
        return
    place = ctx.role.env[name]
    assert isinstance(place, Place | PairPlace) and isinstance(place, Place)
    handler(ctx, op, place)


# ------------------------------------------------------------------ loops and branches


def _if(ctx: Context, s: If) -> None:
    before, flying = dict(ctx.role.unpinned), list(ctx.role.flying)
    with ctx.out.block(f"if ({scalar(ctx, s.cond)})"):
        with scope(ctx):
            block(ctx, s.then)
        after_then = dict(ctx.role.unpinned)
        if s.orelse:
            ctx.role.unpinned, ctx.role.flying = dict(before), flying
            ctx.out.otherwise()
            with scope(ctx):
                block(ctx, s.orelse)
    ctx.role.unpinned = {**after_then, **ctx.role.unpinned} if s.orelse else {**before, **after_then}


def _for(ctx: Context, s: For) -> None:
    role = ctx.role
    live_out = role.webs.live.get(id(s), frozenset())
    role.live = role.live | {n for n in role.unpinned}
    pins.flush(ctx, s.head)
    if (armed := role.armed_loops.get(id(s))) is not None:
        arm(ctx, armed)
    with scope(ctx):
        if s.kind == "tiles":
            _tiles(ctx, s)
        else:
            _range(ctx, s)
    role.live = live_out


def _end_of_body(ctx: Context, s: For) -> None:
    """Pin what the next iteration, or the code after the loop, still needs."""
    role = ctx.role
    last = s.body[-1] if s.body else None
    role.live = role.webs.live.get(id(last), frozenset()) if last is not None else frozenset()
    pins.flush(ctx, s.head)


def _range(ctx: Context, s: For) -> None:
    assert s.lo is not None and s.hi is not None
    var = ctx.role.names.take(s.var)
    ctx.role.env[s.var] = Scalar(var)
    ctx.out.unroll() if s.kind == "static" else ctx.out.line("#pragma unroll 1")
    bound = scalar(ctx, s.hi)
    with ctx.out.block(f"for (int {var} = {scalar(ctx, s.lo)}; {var} < {bound}; ++{var})"):
        block(ctx, s.body)
        if s.kind != "static" or any((op := op_of(x)) is not None and op.name == "mma" for x in all_statements(s.body)):
            _end_of_body(ctx, s)  # an unrolled round's products come behind what the round before computed, too


def _tiles(ctx: Context, s: For) -> None:
    scheduler = ctx.program.schedulers[str(s.scheduler)]
    role, outer = ctx.role, ctx.role.tile
    with schedulers.loop(ctx, scheduler, s.var) as tile:
        role.env[s.var] = tile
        role.tile = tile.linear
        block(ctx, s.body)
        _end_of_body(ctx, s)
    role.tile = outer


__all__ = ["Tile", "body"]
