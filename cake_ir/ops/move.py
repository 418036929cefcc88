"""Data movement between global memory, shared memory and registers."""

from __future__ import annotations

from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.ops.effects import Effect, Issue, Touch
from cake_ir.ops.spec import Call, OpSpec, P, always
from cake_ir.ops.vectors import COLUMNS_OF_VEC, NO_COLUMNS, row_vector, vec_chunk
from cake_ir.program import Expr, Op, Program
from cake_ir.types import NONE, FragT, ScalarT, Type, ViewT

_TMA_LOAD = always(Issue("tma", (Touch("tensor", "r", "gmem", "async", "one"), Touch("view", "w", "smem", "async", "one")), "tx"))
_BULK_STORE = always(Issue("bulk", (Touch("view", "r", "smem", "async", "one"), Touch("tensor", "w", "gmem", "async", "one")), "group"))
_BULK_REDUCE = always(Issue("bulk", (Touch("view", "r", "smem", "async", "one"), Touch("tensor", "rw", "gmem", "async", "one")), "group"))
_CP_ASYNC = always(Issue("cp_async", (Touch("tensor", "r", "gmem"), Touch("view", "w", "smem")), "group", "all"))


def placed(call: Call) -> Any:
    """The tensor that an operation touches at coordinates, of which there is one a dimension (D011)."""
    tensor, coords = call.scope.declared(str(call.attrs["tensor"])), call.operands["coords"]
    assert isinstance(coords, tuple)
    if len(coords) != tensor.rank:
        call.fault("D011", f"`{tensor.name}` has {tensor.rank} dimensions but `coords` gives {len(coords)}", "coords",
                   help="coordinates are innermost first, one a dimension", expected=tensor.rank, found=len(coords))  # fmt: skip
    return tensor


def _tma_load(call: Call) -> Type:
    view, tensor = call.type_of("view"), placed(call)
    if tensor.dtype and isinstance(view, ViewT) and tensor.dtype != view.dtype:
        call.fault("D012", f"`{tensor.name}` holds {tensor.dtype} but `{view.view}` holds {view.dtype}", "tensor",
                   expected=view.dtype, found=tensor.dtype)
    return NONE


def _cp_async(call: Call) -> Type:
    view, mask = call.type_of("view"), call.type_of("mask") if call.operands.get("mask") is not None else None
    if isinstance(view, ViewT) and isinstance(mask, FragT) and mask.rows * mask.cols != view.rows * view.cols:
        call.fault("D001", f"the mask is {'x'.join(map(str, mask.shape))}, `{view.view}` is {'x'.join(map(str, view.shape))} here", "mask",
                   help="make it with `lm.in_bounds` of a fragment of the view's shape", expected=list(view.shape), found=list(mask.shape))  # fmt: skip
    return _tma_load(call)


def _cp_async_rows(call: Call) -> Type:
    view, rows = call.type_of("view"), call.type_of("rows")
    assert isinstance(view, ViewT)
    if getattr(rows, "dtype", "") != "i32" or not isinstance(rows, (FragT, ViewT)):
        call.fault("D003", f"`rows` is a list of i32 row numbers, found {rows}", "rows", help="load it as i32, or convert with `lm.cast(.., lm.i32)`")
    count = rows.cols if isinstance(rows, ViewT) else rows.rows
    if (isinstance(rows, ViewT) and rows.rank != 1) or (isinstance(rows, FragT) and rows.form != "rowvec") or count != view.rows:
        call.fault("D001", f"`rows` gives {rows}, `{view.view}` has {view.rows} rows here", "rows", help="one row number for each row of the view, as a row vector or a 1-D view",
                   expected=view.rows, found=count)  # fmt: skip
    runs = view.cols * DTYPES[view.dtype].bits // 128
    if isinstance(rows, FragT) and rows.parent == "vec" and rows.chunk != runs:
        call.fault("D002", f"`rows` belongs to a `vec` with {rows.chunk} runs a row, a row of the view is {runs} pieces of 16 bytes", "rows",
                   help="load it `like=` a `vec` of the view's shape and dtype", expected=runs, found=rows.chunk)  # fmt: skip
    return _tma_load(call)


def _tma_gather(call: Call) -> Type:
    view, rows = call.type_of("view"), call.type_of("rows")
    assert isinstance(view, ViewT)
    tensor = call.scope.declared(str(call.attrs["tensor"]))
    if tensor.rank != 2:
        call.fault("D011", f"`{tensor.name}` has {tensor.rank} dimensions, `tma_gather` takes rows of a 2-D tensor", "tensor",
                   help="bind the tensor as `LM.tma2d`, its outer axes as one", expected=2, found=tensor.rank)  # fmt: skip
    if tensor.dtype and tensor.dtype != view.dtype:
        call.fault("D012", f"`{tensor.name}` holds {tensor.dtype} but `{view.view}` holds {view.dtype}", "tensor", expected=view.dtype, found=tensor.dtype)
    if getattr(rows, "dtype", "") != "i32" or not isinstance(rows, (FragT, ViewT)):
        call.fault("D003", f"`rows` is a list of i32 row numbers, found {rows}", "rows", help="load it as i32, or convert with `lm.cast(.., lm.i32)`")
    if isinstance(rows, ViewT):
        count, listed = rows.cols, rows.rank == 1
    else:
        count, listed = (rows.rows, True) if rows.form == "rowvec" else (rows.cols, rows.form == "vec" and rows.rank == 1)
    if not listed or count != view.rows:
        call.fault("D001", f"`rows` gives {rows}, `{view.view}` has {view.rows} rows here", "rows",
                   help="one row number for each row of the view, as a 1-D view, a 1-D `vec` or a row vector", expected=view.rows, found=count)  # fmt: skip
    role = call.scope.role
    if isinstance(rows, FragT) and role is not None and role.member_warps > 1:
        call.fault("D002", f"`rows` lies on {role.member_warps} warps, the one that issues the copy reaches only its own registers", "rows",
                   help="store the numbers to a 1-D view, meet, and give the view, or issue from a member of one warp", expected=1, found=role.member_warps)  # fmt: skip
    return NONE


def _gather_effects(op: Op, program: Program) -> tuple[Effect, ...]:
    rows, copy = op.operands["rows"], _TMA_LOAD(op, program)
    return (Touch("rows", "r", "smem", "generic", "one"), *copy) if isinstance(rows, Expr) and isinstance(rows.type, ViewT) else copy


def _rows_effects(op: Op, program: Program) -> tuple[Effect, ...]:
    copy = Issue("cp_async", (Touch("tensor", "r", "gmem"), Touch("view", "w", "smem")), "group", "all")
    rows = op.operands["rows"]
    return (Touch("rows", "r", "smem"), copy) if isinstance(rows, Expr) and isinstance(rows.type, ViewT) else (copy,)


REDUCES: dict[str, tuple[str, ...]] = {
    "add": ("i32", "u32", "f32", "f16", "bf16"), "min": ("i32", "u32", "f16", "bf16"), "max": ("i32", "u32", "f16", "bf16"), "inc": ("u32",),
    "and": ("i32", "u32"), "or": ("i32", "u32"), "xor": ("i32", "u32"),
}  # fmt: skip
"""How the copy engine combines with memory, and the element types that have it."""


def _tma_reduce(call: Call) -> Type:
    view, op = call.type_of("view"), str(call.attrs["op"])
    assert isinstance(view, ViewT)
    if op not in REDUCES:
        call.fault("N061", f"the copy engine does not combine by `{op}`", "op", help=f"it combines by {' '.join(REDUCES)}")
    if view.dtype not in REDUCES[op]:
        call.fault("D003", f"the copy engine has no `{op}` of {view.dtype}", "op", help=f"`{op}` exists for {', '.join(REDUCES[op])}",
                   expected=list(REDUCES[op]), found=view.dtype)  # fmt: skip
    if call.attrs["order"] not in (None, "any"):
        call.fault("N061", f"`{call.attrs['order']}` is not an order", "order", help='write `order="any"`, or leave it out')
    return _tma_load(call)


def like_or(call: Call, form: str) -> FragT | None:
    """The fragment type given as `like=`, if any."""
    like = call.type_of("like")
    return like if isinstance(like, FragT) else None


def _fragment(call: Call, form: str, shape: tuple[int, ...], dtype: str) -> FragT:
    """The type of a freshly loaded fragment of `shape` in `form`."""
    like = like_or(call, form)
    rows, cols = (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])
    warps = like.warps if like else None
    if form in ("acc", "a", "b", "rows"):
        if len(shape) != 2:
            call.fault("D021", f"form `{form}` needs a 2-D shape, found {len(shape)}-D", "form", expected=2, found=len(shape))
        return FragT(form, rows, cols, dtype, warps=warps)  # type: ignore[arg-type]  # one of the named forms
    if form == "vec":
        chunk = like.chunk if like and like.form == "vec" and like.chunk else vec_chunk(dtype)
        return FragT("vec", rows, cols, dtype, chunk=chunk, rank=len(shape))
    if form == "rowvec":
        if like is not None:
            return row_vector(like, cols if len(shape) == 1 else rows, dtype)
        return FragT("rowvec", cols if len(shape) == 1 else rows, 1, dtype, warps=warps, parent="acc")
    if form == "colvec":
        if like is not None and "vec" in (like.form, like.parent):
            call.fault("D002", NO_COLUMNS, "like", help=COLUMNS_OF_VEC)
        return FragT("colvec", 1, cols, dtype, warps=warps, parent=like.form if like else "acc")
    call.fault("D022", f"`{form}` is not a form that memory can be loaded into", "form", help="forms: acc a b vec rowvec colvec rows")


def _view_load(call: Call) -> Type:
    view = call.type_of("view")
    assert isinstance(view, ViewT)
    return _fragment(call, str(call.attrs["form"]), view.shape, view.dtype)


def _ldmatrix(call: Call) -> Type:
    view = call.type_of("view")
    assert isinstance(view, ViewT)
    form = str(call.attrs["form"])
    if form not in ("acc", "a", "b"):
        call.fault("D022", f"ldmatrix fills forms `acc`, `a` and `b`, not `{form}`", "form")
    if DTYPES[view.dtype].bits > 16 and (view.dtype != "tf32" or form == "acc"):
        call.fault("D023", f"ldmatrix moves elements of at most 16 bits, and tf32 into forms `a` and `b`; `{view.view}` holds {view.dtype}", "view", help=f"use `.load(form=\"{form}\")`")
    if view.dtype == "tf32" and view.transposed:
        call.fault("D023", "ldmatrix takes rows of tf32 as they are stored: it transposes 16-bit elements", "view", help="store the operand K-major, or use `.load(..)`")
    if DTYPES[view.dtype].bits < 8 and (view.transposed or form == "acc"):
        call.fault("D023", f"ldmatrix takes rows of packed {view.dtype} as they are stored, into forms `a` and `b`", "view", help="store the operand K-major")
    return _fragment(call, form, view.shape, view.dtype)


def _view_store(call: Call) -> Type:
    view, frag = call.type_of("view"), call.type_of("x")
    assert isinstance(view, ViewT)
    if not isinstance(frag, FragT):
        call.fault("D024", f"`store` takes a fragment, found {frag}", "x")
    if frag.form == "scalar":
        return NONE
    want = view.shape
    have = (frag.cols,) if frag.rank == 1 or (frag.form == "colvec" and len(want) == 1) else frag.shape
    if frag.form == "rowvec" and len(want) == 1:
        have = (frag.rows,)
    if tuple(have) != tuple(want) and not (frag.form == "vec" and frag.rows * frag.cols == view.rows * view.cols):
        call.fault("D001", f"a fragment of {'x'.join(map(str, have))} is stored to `{view.view}`, which is {'x'.join(map(str, want))} here", "x",
                   related=((call.spans["view"], f"{'x'.join(map(str, want))} elements"),), expected=list(want), found=list(have))
    if frag.dtype != view.dtype:
        call.fault("D003", f"`{view.view}` holds {view.dtype}, the fragment is {frag.dtype}", "x",
                   help=f"store `lm.cast(.., lm.{view.dtype})`", expected=view.dtype, found=frag.dtype)
    if frag.partial:
        call.fault("D007", f"a partial `{frag.partial}` is stored before `lm.finish`", "x", help="finish it: `lm.finish(..)`")
    return NONE


def _send(call: Call) -> Type:
    barrier = call.scope.declared(str(call.attrs["barrier"]))
    if barrier.arrive != "tx" or barrier.scope != "cluster":
        call.fault("S012", f"sends complete by bytes of other CTAs on `{barrier.name}`, which is declared arrive=\"{barrier.arrive}\", scope=\"{barrier.scope}\"", "barrier",
                   related=((barrier.span, "declared here"),), help='declare it `arrive="tx", scope="cluster"`')  # fmt: skip
    view, x = call.type_of("view"), call.type_of("x")
    bits = DTYPES[x.dtype].bits if isinstance(x, FragT) and x.dtype != "bool" else 0
    whole = bits >= 32 or (bits and isinstance(x, FragT) and (x.form in ("a", "b", "vec") or (x.form == "acc" and bits == 16)))
    if isinstance(x, FragT) and (not whole or (bits < 32 and isinstance(view, ViewT) and view.transposed)):
        call.fault("D003", f"sends go in whole 32-bit words, a thread's elements of this {x} do not lie side by side", "x",
                   help="send it as `vec`, or as f32", expected="32-bit words", found=str(x))  # fmt: skip
    if isinstance(x, FragT) and x.form == "vec" and bits * (x.chunk or 1) < 32:
        call.fault("D003", f"sends go in whole 32-bit words, the runs of this {x} have {bits * (x.chunk or 1)} bits", "x", help="load it with wider runs, or send f32")
    return _view_store(call)


def _load(call: Call) -> Type:
    tensor = placed(call)
    shape = call.attrs["shape"]
    assert isinstance(shape, tuple)
    return _fragment(call, str(call.attrs["form"]), tuple(int(n) for n in shape), tensor.dtype or "f32")  # type: ignore[arg-type]  # a shape is ints


def _store(call: Call) -> Type:
    tensor, x = placed(call), call.type_of("x")
    if isinstance(x, FragT):
        if tensor.dtype and x.dtype != tensor.dtype:
            call.fault("D003", f"`{tensor.name}` holds {tensor.dtype}, the fragment is {x.dtype}", "x",
                       help=f"store `lm.cast(.., lm.{tensor.dtype})`", expected=tensor.dtype, found=x.dtype)
        if x.partial:
            call.fault("D007", f"a partial `{x.partial}` is stored before `lm.finish`", "x", help="finish it: `lm.finish(..)`")
    return NONE


def _ld(call: Call) -> Type:
    tensor = call.scope.declared(str(call.attrs["tensor"]))
    if tensor.rank != 1:
        call.fault("D021", f"`lm.ld` reads element `i` of a 1-D tensor, `{tensor.name}` has {tensor.rank} dimensions", "tensor",
                   help=f"declare `{tensor.name}` as `LM.gmem1d` and give the element's number: a contiguous tensor can be bound so", expected=1, found=tensor.rank)  # fmt: skip
    return ScalarT(tensor.dtype or "i32")


def _view_ld(call: Call) -> Type:
    view = call.type_of("view")
    assert isinstance(view, ViewT)
    return ScalarT(view.dtype)


def _view_store_effects(op: Op, program: Program) -> tuple[Effect, ...]:
    return (Touch("view", "w", "smem"),)


_SMEM_READ = always(Touch("view", "r", "smem"))
_CACHE = P("cache", "str", None)
_COORDS = P("coords", "coords")

SPECS = (
    OpSpec("tma_load", "move", (P("view", "view"), P("tensor", "tma"), _COORDS, P("stage", "slot", None), P("barrier", "barrier"),
                                P("multicast", "str", None), P("box", "shape", None), _CACHE),
           _tma_load, _TMA_LOAD, on="view", needs="TMA", doc="Copy a box of a tensor into the view; completes by bytes on `barrier`."),
    OpSpec("tma_prefetch", "move", (P("view", "view"), P("tensor", "tma"), _COORDS, P("box", "shape", None)),
           _tma_load, always(), on="view", needs="TMA", doc="Fetch into the second-level cache what a `tma_load` of the view would copy; nothing waits for it."),
    OpSpec("tma_gather", "move", (P("view", "view"), P("tensor", "tma"), P("rows", "value|view"), P("col", "scalar"), P("stage", "slot", None),
                                  P("barrier", "barrier")),
           _tma_gather, _gather_effects, on="view", needs="TMA_GATHER4",
           doc="Gather rows of a 2-D tensor by an i32 list, four an instruction; zeros outside the tensor, completes by bytes on `barrier`."),
    OpSpec("bulk_load", "move", (P("view", "view"), P("tensor", "gmem"), P("offset", "scalar"), P("n", "scalar"), P("stage", "slot", None),
                                 P("barrier", "barrier")),
           effects=_TMA_LOAD, on="view", needs="TMA", doc="Copy n contiguous elements (bytes a multiple of 16); not clipped."),
    OpSpec("cp_async", "move", (P("view", "view"), P("tensor", "gmem"), _COORDS, P("stage", "slot", None), P("mask", "value", None)),
           _cp_async, _CP_ASYNC, on="view", doc="Copy a rectangle with cp.async, 16 bytes a thread at a time; zero-filled past the tensor's edges."),
    OpSpec("cp_async_rows", "move", (P("view", "view"), P("tensor", "gmem"), P("rows", "value|view"), _COORDS, P("stage", "slot", None)),
           _cp_async_rows, _rows_effects, on="view", doc="Gather rows with cp.async by an i32 list of rows; zeros for rows and columns outside the tensor."),
    OpSpec("tma_store", "move", (P("view", "view"), P("tensor", "tma"), _COORDS, P("box", "shape", None), P("rows", "scalar", None), _CACHE),
           _tma_load, _BULK_STORE, on="view", needs="TMA", doc="Copy the view to a box of a tensor, clipped at its edges; one bulk group."),
    OpSpec("tma_reduce", "move", (P("view", "view"), P("tensor", "tma"), _COORDS, P("op", "str", "add"), P("box", "shape", None), P("order", "str", None)),
           _tma_reduce, _BULK_REDUCE, on="view", needs="TMA_REDUCE", doc="Combine the view with a box of a tensor, clipped at its edges; one bulk group."),
    OpSpec("bulk_store", "move", (P("view", "view"), P("tensor", "gmem"), _COORDS, P("rows", "scalar")),
           _tma_load, _BULK_STORE, on="view", needs="TMA", doc="Copy the first `rows` rows, one bulk copy a row, all in one bulk group; not clipped."),
    OpSpec("store", "move", (P("view", "view"), P("x", "value")), _view_store, _view_store_effects, on="view",
           doc="Write a fragment to shared memory (stmatrix or st.shared)."),
    OpSpec("load", "move", (P("view", "view"), P("form", "str"), P("like", "value", None)), _view_load, _SMEM_READ, on="view",
           doc="Read shared memory into a fragment (ldmatrix for acc/a/b at 16 bit, ld.shared otherwise)."),
    OpSpec("ldmatrix", "move", (P("view", "view"), P("form", "str"), P("like", "value", None)), _ldmatrix, _SMEM_READ, on="view",
           doc="Read shared memory into an `acc`, `a` or `b` fragment with ldmatrix."),
    OpSpec("ld", "move", (P("view", "view"), P("i", "scalar", 0)), _view_ld, _SMEM_READ, on="view",
           doc="Read one uniform scalar from shared memory."),
    OpSpec("send", "cluster", (P("view", "view"), P("x", "value"), P("cta", "scalar"), P("barrier", "barrier"), P("stage", "slot", None)),
           _send, always(Issue("st_async", (Touch("view", "w", "smem"),), "tx", "all")), on="view", needs="CLUSTER",
           doc="Write to the shared memory of a peer CTA, completing by bytes on its barrier."),
    OpSpec("load", "move", (P("tensor", "gmem"), _COORDS, P("shape", "shape"), P("form", "str", "vec"), P("like", "value", None),
                            P("mask", "value", None), _CACHE, P("clip", "bool", False), P("fill", "float", 0)),
           _load, always(Touch("tensor", "r", "gmem")), doc="Read global memory into a fragment, in vectors."),
    OpSpec("store", "move", (P("tensor", "gmem"), P("x", "value|scalar"), _COORDS, P("mask", "value", None), _CACHE, P("clip", "bool", False)),
           _store, always(Touch("tensor", "w", "gmem")), doc="Write a fragment to global memory; vectors write once an element."),
    OpSpec("ld", "move", (P("tensor", "gmem"), P("i", "scalar")), _ld, always(Touch("tensor", "r", "gmem")),
           doc="Read one uniform scalar from global memory."),
)  # fmt: skip
