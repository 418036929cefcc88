"""Reductions, running arguments, lists and scans over fragments."""

from __future__ import annotations

from cake_ir.dtypes import DTYPES
from cake_ir.ops.effects import Effect, Sync, Touch
from cake_ir.ops.spec import Call, OpSpec, P
from cake_ir.ops.vectors import NO_COLUMNS, row_vector, rows_of_vec
from cake_ir.program import Op, Program
from cake_ir.types import FragT, ListT, PairT, ScalarT, Type, ViewT


def _frag(call: Call, name: str) -> FragT:
    t = call.type_of(name)
    if not isinstance(t, FragT):
        call.fault("D024", f"`lm.{call.name}` takes a fragment, found {t}", name)
    return t


def _along(x: FragT, axis: object, partial: str | None, dtype: str | None = None) -> FragT:
    """The vector left when `x` is reduced along `axis`."""
    if _by_row(x, axis):
        return row_vector(x, x.rows, dtype or x.dtype, partial)
    if x.form in ("vec", "rowvec", "colvec", "scalar"):
        return FragT("scalar", 1, 1, dtype or x.dtype, partial=partial, parent=x.form)
    return FragT("colvec", 1, x.cols, dtype or x.dtype, partial=partial, warps=x.warps, parent=x.form)


def _by_row(x: FragT, axis: object) -> bool:
    """Whether a reduction leaves a value a row; a `vec` of one row leaves one value."""
    return axis == 1 and x.form not in ("rowvec", "colvec", "scalar") and not (x.form == "vec" and x.rows == 1)


def _lanes(call: Call, x: FragT, length: int) -> None:
    """Refuse rows of a `vec` that no single warp holds."""
    why = rows_of_vec(x, length) if x.form == "vec" else None
    if why:
        call.fault("D026", why, "x", help="load rows of another length or a narrower type, or reduce with `across=`", expected=32 * (x.chunk or 1), found=length)


def _inside_a_warp(call: Call, x: FragT, axis: object, partial: bool) -> None:
    """Refuse a reduction whose lines lie on several warps: shuffles do not leave a warp."""
    role = call.scope.role
    warps = role.member_warps if role is not None else 1
    wm, wn = x.warps or (warps, 1)
    if x.form in ("rowvec", "colvec", "scalar", "b") or (x.form == "rows" and axis != 1):
        call.fault("D002", f"`lm.{call.name}` combines a tile or a `vec`, found {x}", "x", help="reduce the fragment that it was made from")
    if x.form in ("a", "b") and (DTYPES[x.dtype].bits == 8 or x.dtype == "tf32"):
        call.fault("D002", f"`lm.{call.name}` does not run over an operand of {x.dtype}, whose columns are dealt in another order", "x", help="reduce it before it becomes an operand, as `acc`")
    shared = wn > 1 and x.form == "acc" if axis == 1 else wm > 1
    if x.form in ("acc", "a") and shared:
        call.fault("D002", f"the {'rows' if axis == 1 else 'columns'} of this `{x.form}` lie on several warps, `lm.{call.name}` runs inside one", "x",
                   help="reduce with `across=`, `scratch=` and `sync=`, or split the tile along the other axis")  # fmt: skip
    if x.form == "vec" and x.rows > 1 and axis == 0:
        call.fault("D002", f"`lm.{call.name}` leaves a value a column, and {NO_COLUMNS.replace('its', 'whose')}", "x", help="reduce the rows along axis 1, or load the tile as `acc`")
    if x.form == "vec" and not _by_row(x, axis) and warps > 1 and not partial:
        call.fault("D002", f"this `vec` lies on {warps} warps, `lm.{call.name}` runs inside one", "x", help="add `across=`, `scratch=` and `sync=`")


def _reduce(call: Call) -> Type:
    x, op = _frag(call, "x"), str(call.attrs["op"])
    if op not in ("add", "max", "min"):
        call.fault("N041", f"`{op}` is not a reduction", "op", help="reductions: add max min")
    if x.partial:
        call.fault("D007", f"a partial `{x.partial}` is reduced again before `lm.finish`", "x")
    if call.attrs["axis"] is None and x.form not in ("vec", "rowvec", "colvec"):
        call.fault("N042", f"`lm.reduce` of `{x.form}` needs `axis=0` or `axis=1`", None, help="axis=1 leaves one value a row, axis=0 one a column")
    if _by_row(x, call.attrs["axis"]):
        _lanes(call, x, x.cols)
    _inside_a_warp(call, x, call.attrs["axis"], bool(call.attrs["partial"]))
    return _along(x, call.attrs["axis"], op if call.attrs["partial"] else None)


def _scratch(call: Call, x: FragT) -> None:
    """Refuse what no scratch takes: other forms, narrow values, a scratch of another type."""
    axis, scratch = call.attrs["axis"], call.type_of("scratch")
    rows = axis == 1 and x.form not in ("vec", "scalar")
    if (rows and (x.form not in ("acc", "rowvec") or x.warps is None)) or (not rows and x.form not in ("vec", "scalar", "acc")) or (axis == 0 and x.form == "acc"):
        call.fault("D002", f"`across=` leaves a scalar of a `vec` or `acc`, or with axis=1 a row vector of an `acc` that is split over the warps, found {x}", "x",
                   help="declare the accumulator with `warps=(wm, wn)`, or reduce without `across=`")  # fmt: skip
    if x.dtype not in ("f32", "i32"):
        call.fault("D003", f"`across=` combines f32 or i32 values, found {x.dtype}", "x", help="convert with `lm.cast(x, lm.f32)`")
    if isinstance(scratch, ViewT) and scratch.dtype != x.dtype:
        call.fault("D003", f"`{scratch.view}` holds {scratch.dtype}, the values are {x.dtype}", "scratch", help=f"declare the scratch as {x.dtype}", expected=x.dtype, found=scratch.dtype)


def _across(call: Call) -> Type:
    x = _frag(call, "x")
    role = call.scope.declared(str(call.attrs["across"]))
    if x.form == "scalar" and not x.partial and call.attrs["op"] == "add" and role.member_warps > 1:
        call.fault("D027", f"the {role.member_warps} warps of a member of `{role.name}` hold the same value, and adding over warps counts it {role.member_warps} times", "x",
                   help="reduce the vector itself with `across=`, or give each member one warp", expected=1, found=role.member_warps)
    _scratch(call, x)
    if call.attrs["axis"] == 1 and x.form not in ("vec", "rowvec"):
        return row_vector(x, x.rows, x.dtype)
    if x.form == "rowvec":
        return x.with_(partial=None)
    return FragT("scalar", 1, 1, x.dtype, parent=x.form)


def _across_effects(op: Op, program: Program) -> tuple[Effect, ...]:
    return (Touch("scratch", "w", "smem"), Sync(), Touch("scratch", "r", "smem"))


def _finish(call: Call) -> Type:
    x = call.type_of("x")
    if isinstance(x, PairT):
        return PairT(x.value.with_(partial=None), x.index.with_(partial=None))
    if isinstance(x, ListT):
        return ListT(x.k, x.value.with_(partial=None), x.index.with_(partial=None), x.largest)
    if isinstance(x, FragT):
        return x.with_(partial=None)
    call.fault("D024", f"`lm.finish` takes a partial reduction, found {x}", "x")


def _argmin(call: Call) -> Type:
    x, into = _frag(call, "x"), call.type_of("into")
    op = call.name
    if not isinstance(into, PairT):
        call.fault("D024", f"`into` takes a (value, index) pair, found {into}", "into", help="start with `(lm.rowvec(x, init=lm.inf), lm.rowvec(x, init=0))`")
    if call.attrs["axis"] != 1:
        call.fault("N042", f"`lm.{op}` runs along the columns of a row: `axis=1`", "axis")
    if into.index.dtype != "i32":
        call.fault("D003", f"the index of `into` is {into.index.dtype}, not i32", "into", help="initialise it with an integer")
    if into.value.rows != x.rows:
        call.fault("D001", f"`into` has {into.value.rows} rows, the scores have {x.rows}", "into", expected=x.rows, found=into.value.rows)
    return PairT(into.value.with_(partial=op), into.index.with_(partial=op))


def _topk(call: Call) -> Type:
    x, into = _frag(call, "x"), call.type_of("into")
    if not isinstance(into, ListT):
        call.fault("D024", f"`into` takes a list from `lm.topk_list`, found {into}", "into")
    if into.value.partial is None:
        call.fault("D007", "a finished list takes no more scores", "into", help="start another with `lm.topk_list`")
    if call.attrs["axis"] != 1:
        call.fault("N042", "`lm.topk` runs along the columns of a row: `axis=1`", "axis")
    if x.dtype != "f32":
        call.fault("D003", f"`lm.topk` orders f32 scores, found {x.dtype}", "x", help="convert with `lm.cast(x, lm.f32)`", expected="f32", found=x.dtype)
    if x.form != "acc" or (x.warps and x.warps[1] > 1):
        call.fault("D002", f"`lm.topk` takes an `acc` whose rows lie in one warp, found {x}", "x")
    if into.value.rows != x.rows or into.value.warps != x.warps:
        call.fault("D001", f"the list has {into.value.rows} rows, the scores have {x.rows}", "into", expected=x.rows, found=into.value.rows)
    return into


def _topk_list(call: Call) -> Type:
    like = _frag(call, "like")
    k, largest = int(call.attrs["k"]), bool(call.attrs["largest"])  # type: ignore[call-overload]  # an int by kind
    if like.form != "acc":
        call.fault("D002", f"`lm.topk_list` keeps a list for each row of an `acc`, found {like}", "like")
    if not 1 <= k <= MOST_PLACES:
        call.fault("N022", f"a list has 1 to {MOST_PLACES} places, not {k}", "k", help="keep the best of parts and merge them in a second kernel")
    vec = FragT("rowvec", like.rows, 1, "f32", "argmax" if largest else "argmin", warps=like.warps, parent=like.form)
    return ListT(k, vec, vec.with_(dtype="i32"), largest)


def _scan(call: Call) -> Type:
    x, op, axis = _frag(call, "x"), str(call.attrs["op"]), call.attrs["axis"]
    if op not in ("add", "max", "min"):
        call.fault("N041", f"`{op}` is not a scan", "op", help="scans: add max min")
    if x.partial:
        call.fault("D007", f"a partial `{x.partial}` is scanned before `lm.finish`", "x", help="finish it: `lm.finish(..)`")
    if DTYPES[x.dtype].bits != 32:
        call.fault("D003", f"`lm.scan` works on 32-bit elements, found {x.dtype}", "x", help="convert with `lm.cast(x, lm.f32)`")
    role = call.scope.role
    warps = role.member_warps if role is not None else 1
    wm, wn = x.warps or (warps, 1)
    if x.form == "vec" and not (x.rank == 1 or x.rows == 1) and axis == 1:
        _lanes(call, x, x.cols)
    elif x.form == "vec" and not (x.rank == 1 or x.rows == 1):
        call.fault("D002", "a `vec` is scanned along its rows: `axis=1`", "axis", help="load the tile as `acc`")
    elif (x.form == "vec" and warps > 1) or (x.form == "acc" and (wn if axis == 1 else wm) > 1):
        call.fault("D002", f"the lines of this `{x.form}` lie on several warps, `lm.scan` runs inside one", "x",
                   help="split the work over `members=`, or scan the transposed tile along its columns")  # fmt: skip
    elif x.form not in ("acc", "vec"):
        call.fault("D002", f"`lm.scan` takes an `acc` or a `vec`, found {x}", "x")
    return x.with_(stages=1)


def _amax_scale(call: Call) -> Type:
    x, axis, block = _frag(call, "x"), call.attrs["axis"], int(call.attrs["block"])  # type: ignore[call-overload]  # an int by kind
    kind, target = str(call.attrs["kind"]), str(call.attrs["dtype"])
    if kind not in ("f32", "ue8m0"):
        call.fault("N061", f"`{kind}` is not a kind of scale", "kind", help="kinds: f32 ue8m0")
    if target not in ("e4m3", "e5m2"):
        call.fault("N061", f"`lm.amax_scale` makes scales for e4m3 and e5m2, not {target}", "dtype")
    if DTYPES[x.dtype].kind != "float" or x.partial:
        call.fault("D003", f"`lm.amax_scale` works on finished floating point, found {x}", "x", help="convert with `lm.cast(x, lm.f32)`")
    if x.form == "vec" and (x.rank == 1 or x.rows == 1):
        _lanes(call, x, block)
        return row_vector(x, x.cols // block, kind)
    if x.form not in ("acc", "a", "vec") or axis not in (0, 1) or (axis == 0 and x.form != "acc"):
        call.fault("D002", f"`lm.amax_scale` takes an `acc` along either axis or a `vec` along its rows, found {x} along axis {axis}", "x")
    extent = x.cols if axis == 1 else x.rows
    if block != extent:
        call.fault("D001", f"a block of {block} meets {extent} {'columns' if axis == 1 else 'rows'}", "block",
                   help=f"one call makes one scale a {'row' if axis == 1 else 'column'}: take slices, `x.{'cols' if axis == 1 else 'rows'}(lo, {block})`", expected=extent, found=block)  # fmt: skip
    _lanes(call, x, x.cols)
    return _along(x, axis, None, kind)


def _excess(call: Call) -> Type:
    x, axis = _frag(call, "x"), call.attrs["axis"]
    if x.dtype != "f32" or x.partial:
        call.fault("D003", f"`lm.excess` works on finished f32 values, found {x}", "x", help="convert with `lm.cast(x, lm.f32)`", expected="f32", found=x.dtype)
    if axis != 1:
        call.fault("N042", "`lm.excess` runs along the columns of a row: `axis=1`", "axis")
    if x.form != "acc" or (x.warps and x.warps[1] > 1):
        call.fault("D002", f"`lm.excess` takes an `acc` whose rows lie in one warp, found {x}", "x")
    if not 0 <= float(call.attrs["margin"]) <= 64:  # type: ignore[arg-type]  # a float by kind
        call.fault("N061", f"a margin lies in [0, 64], not at {call.attrs['margin']}", "margin", help="values far below zero must not vanish: 24 leaves 2^-102 of the largest")
    return _along(x, axis, None)


def _sum(call: Call) -> Type:
    t = call.type_of("x")
    if isinstance(t, ScalarT):
        return t
    x = _frag(call, "x")
    if _by_row(x, call.attrs["axis"]):
        _lanes(call, x, x.cols)
    _inside_a_warp(call, x, call.attrs["axis"], False)
    return _along(x, call.attrs["axis"], None)


MOST_PLACES = 32
"""Places of a running list: each takes two registers a row and thread."""

_ARG = (P("x", "value"), P("axis", "int"), P("base", "scalar", 0), P("into", "value"))

SPECS = (
    OpSpec("reduce", "reduce", (P("x", "value"), P("op", "str"), P("axis", "int", None), P("partial", "bool", False)), _reduce, pure=True,
           doc="Reduce along an axis: 1 leaves a row vector, 0 a column vector; `partial` stops before the quad's shuffles."),
    OpSpec("reduce_across", "reduce", (P("x", "value"), P("op", "str"), P("axis", "int", None), P("across", "role"), P("scratch", "view"), P("sync", "named")),
           _across, _across_effects, doc="Reduce over all warps of a role through named scratch and a named barrier."),
    OpSpec("finish", "reduce", (P("x", "value"),), _finish, pure=True, doc="Complete a partial reduction over the quad."),
    OpSpec("argmin", "reduce", _ARG, _argmin, pure=True, doc="Running (value, index) minimum along a row; ties keep the lowest index, NaN never wins."),
    OpSpec("argmax", "reduce", _ARG, _argmin, pure=True, doc="Running (value, index) maximum along a row; ties keep the lowest index, NaN never wins."),
    OpSpec("topk", "reduce", _ARG, _topk, pure=True, doc="Merge a tile's scores into a running sorted list."),
    OpSpec("topk_list", "reduce", (P("like", "value"), P("k", "int"), P("largest", "bool", False)), _topk_list, pure=True,
           doc="An empty running list of k (value, index) pairs a row."),
    OpSpec("scan", "reduce", (P("x", "value"), P("op", "str"), P("axis", "int")), _scan, pure=True, doc="Inclusive prefix along an axis."),
    OpSpec("excess", "reduce", (P("x", "value"), P("axis", "int", 1), P("margin", "float", 24.0)), _excess, pure=True,
           doc="What a row must fall by so that its largest value is at -margin; 0 where every value is negative already."),
    OpSpec("amax_scale", "quantize", (P("x", "value"), P("axis", "int"), P("block", "int"), P("kind", "str", "f32"), P("dtype", "dtype", "e4m3")),
           _amax_scale, pure=True, doc="The scale of each block of elements: its absolute maximum over the largest number of `dtype`."),
    OpSpec("sum", "reduce", (P("x", "value"), P("axis", "int", None)), _sum, pure=True, doc="`lm.reduce(x, \"add\", axis)`."),
)  # fmt: skip
