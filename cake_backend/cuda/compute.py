"""`compute`: evaluate a pure expression into the places on the left of an assignment."""

from __future__ import annotations

from cake_backend.cuda import excess, form_changes, lists, quantise, reduce, scan
from cake_backend.cuda.context import Binding, Context, Lazy, ListPlace, PairPlace, Place, scope
from cake_backend.cuda.elementwise import assign_elements, element, literal_as, prepared, resolve
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import array_length, ctype, declare, elements, loop, packing
from cake_backend.cuda.masks import possible_failure
from cake_backend.cuda.positions import At
from cake_backend.cuda.scalars import number
from cake_ir.dtypes import DTYPES
from cake_ir.program import Expr
from cake_ir.span import NOWHERE
from cake_ir.types import FragT, ListT, PairT, Type

FRESH = ("frag", "rowvec", "colvec")


def bind(ctx: Context, name: str, e: Expr, declare_as: Type | None, *, joined: bool = False) -> None:
    """Execute `name = e`; `declare_as` is the type of the place where the name's web begins here, `joined` says that other paths write it, too."""
    if (not joined and is_lazy(ctx, e)) or (e.op == "frag" and e.attrs.get("init") is None and name not in ctx.role.held):
        ctx.role.env[name] = Lazy(resolve(ctx, e))
        return
    old = ctx.role.env.get(name)
    if declare_as is None and old is None:
        not_lowered("a mask that outlives the loop which makes it", e.span, "write the condition where it is used")
    if declare_as is None:
        assert isinstance(old, Place | PairPlace | ListPlace)
        if needed := excess.flags(ctx, old, resolve(ctx, e)):
            with ctx.out.block(f"if ({' || '.join(needed)})"), scope(ctx):
                evaluate_into(ctx, old, e)
            return
        evaluate_into(ctx, old, e)
        return
    place = declare_place(ctx, name, declare_as)
    if e.op == "excess" and isinstance(place, Place) and ctx.role.webs.written.get(name) == 1:
        ctx.role.env[name] = excess.excess_into(ctx, place, e)
        return
    # The right side is evaluated with the old binding of the name.
    evaluate_into(ctx, place, e)
    ctx.role.env[name] = place


def declare_place(ctx: Context, name: str, t: Type) -> Place | PairPlace | ListPlace:
    """Declare the arrays of a fragment, pair or list."""
    if isinstance(t, ListT):
        return lists.declare_list(ctx, name, t)
    if isinstance(t, PairT):
        return PairPlace(declare(ctx, f"{name}_value", t.value), declare(ctx, f"{name}_index", t.index))
    assert isinstance(t, FragT)
    return declare(ctx, name, t)


def is_lazy(ctx: Context, e: Expr) -> bool:
    """Whether a name stands for its expression: masks of what is not written again, and coordinates that no register array is read for."""
    t = e.type
    if not isinstance(t, FragT):
        return False
    if t.dtype == "bool":
        written = ctx.role.webs.written
        return all(
            x.op != "var" or not isinstance(ctx.lookup(str(x.attrs["name"])), Place) or written.get(str(x.attrs["name"]), 0) == 1 or _model_only(e, x) for x in e.parts()
        )
    if t.dtype not in ("i32", "u32") or not any(x.op == "iota" for x in e.parts()):
        return False
    for x in e.parts():
        if x.op == "var":
            bound = ctx.lookup(str(x.attrs["name"]))
            if isinstance(bound, Place | PairPlace | ListPlace) and not _model_only(e, x):
                return False
            if ctx.role.webs.written.get(str(x.attrs["name"]), 0) > 1 and not _model_only(e, x):
                return False
    return True


def _model_only(e: Expr, x: Expr) -> bool:
    """Whether a variable is only the model of an `iota` or `in_bounds`, whose elements are not read."""
    return all(x is not a or (parent.op in ("iota", "in_bounds") and i == 0) for parent in e.parts() for i, a in enumerate(parent.args))


def evaluate_into(ctx: Context, target: Binding, e: Expr) -> None:
    """Write the value of `e` to a place or a pair of places."""
    if isinstance(target, PairPlace):
        _pair_into(ctx, target, e)
        return
    if isinstance(target, ListPlace):
        lists.list_into(ctx, target, e)
        return
    assert isinstance(target, Place)
    e = resolve(ctx, e)
    if e.op in FRESH:
        _fill(ctx, target, e.attrs.get("init"))
    elif e.op in ("reduce", "sum"):
        reduce.reduce_into(ctx, target, e)
    elif e.op == "finish":
        reduce.finish_into(ctx, target, e)
    elif e.op == "scan":
        scan.scan_into(ctx, target, e)
    elif e.op == "amax_scale":
        quantise.amax_scale_into(ctx, target, e)
    elif e.op == "excess":
        excess.excess_into(ctx, target, e)
    elif form_changes.is_form_change(e):
        form_changes.change_into(ctx, target, e)
    elif e.op == "where" and (branch := possible_failure(ctx, e.args[0])) is not None:
        _masked(ctx, target, e, branch)
    else:
        assign_elements(ctx, target, prepared(ctx, e))


def _fill(ctx: Context, place: Place, init: object) -> None:
    if init is None:
        return
    t = place.type
    value = number(init, ctype(t)) if ctype(t) != "u32" or t.dtype == "u32" else _packed_constant(init, place)
    with ctx.out.unrolled("i_", place.count * t.stages):
        ctx.out.line(f"{place.name}[i_] = {value};")


def _packed_constant(init: object, place: Place) -> str:
    """A register of elements that all start as `init`."""
    if init == 0:
        return "0u"
    import numpy as np

    from cake_backend.simulate.floats import encode, rounded

    t = place.type
    if not isinstance(init, int | float) or not DTYPES[t.dtype].is_float:
        return not_lowered(f"a {t.dtype} fragment that starts as {init}", NOWHERE)
    bits = int(encode(rounded(np.full(1, init, np.float32), t.dtype), t.dtype)[0])
    n = packing(t)
    return f"0x{sum(bits << 32 // n * i for i in range(n)):x}u"


def _masked(ctx: Context, place: Place, e: Expr, branch: str) -> None:
    """`where` with a mask that usually holds everywhere: one uniform branch instead of a select an element."""
    mask, value, other = e.args
    if not (value.op == "var" and ctx.lookup(str(value.attrs["name"])) is place):
        assign_elements(ctx, place, prepared(ctx, value))
    with ctx.out.block(f"if ({branch})"):
        count = elements(place.type, ctx.role.warps)
        if array_length(place.type, ctx.role.warps) != count:
            assign_elements(ctx, place, prepared(ctx, e))
            return
        condition, fallback = prepared(ctx, mask), prepared(ctx, other)
        with ctx.out.unrolled("i_", count):
            at = At(place.type, loop("i_"))
            ctx.out.line(f"{place.name}[i_] = {element(ctx, condition, at)} ? {place.name}[i_] : {element(ctx, literal_as(fallback, e), at)};")


def _pair_into(ctx: Context, target: PairPlace, e: Expr) -> None:
    if e.op == "pair":
        for place, part in zip((target.value, target.index), e.args, strict=True):
            if part.op in FRESH:
                _fill(ctx, place, part.attrs.get("init"))
            else:
                reduce.spread_into(ctx, place, part)
    elif e.op in ("argmin", "argmax"):
        reduce.running_argument(ctx, target, e)
    elif e.op == "finish":
        reduce.finish_pair(ctx, target, e)
    elif e.op == "list_item":
        for part, place in enumerate((target.value, target.index)):
            with ctx.out.unrolled("i_", place.count):
                ctx.out.line(f"{place.name}[i_] = {lists.entry(ctx, e, part, 'i_')};")
    elif e.op == "var":
        source = ctx.lookup(str(e.attrs["name"]))
        assert isinstance(source, PairPlace)
        for to, frm in ((target.value, source.value), (target.index, source.index)):
            if to.count != frm.count:
                not_lowered("a copy between a finished and a partial pair", e.span)
            with ctx.out.unrolled("i_", to.count):
                ctx.out.line(f"{to.name}[i_] = {frm.name}[i_];")
    else:
        not_lowered(f"`{e.op}` as a pair", e.span)
