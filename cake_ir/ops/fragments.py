"""Fragments and vectors as they come into being."""

from __future__ import annotations

from cake_ir.ops.spec import Call, OpSpec, P
from cake_ir.ops.vectors import COLUMNS_OF_VEC, NO_COLUMNS, row_vector, rows_of_vec, vec_chunk
from cake_ir.types import FragT, Type, ViewT


def _frag(call: Call) -> Type:
    shape, form = call.attrs["shape"], str(call.attrs["form"])
    like = call.type_of("like")
    assert isinstance(shape, tuple)
    if form not in ("acc", "a", "b", "rows", "vec", "rowvec", "colvec"):
        call.fault("N043", f"`{form}` is not a register form", "form", help="forms: acc a b rows vec rowvec colvec")
    rows, cols = (1, int(shape[0])) if len(shape) == 1 else (int(shape[0]), int(shape[1]))  # type: ignore[arg-type]  # a shape is ints
    warps = call.attrs["warps"]
    assert warps is None or isinstance(warps, tuple)
    if warps is not None and len(warps) != 2:
        call.fault("N057", "`warps` says over how many warps the rows and the columns are spread", "warps", help="write `warps=(4, 1)`", expected=2, found=len(warps))
    if isinstance(like, FragT) and warps is None:
        warps = like.warps
    chunk = like.chunk if isinstance(like, FragT) else vec_chunk(str(call.attrs["dtype"])) if form == "vec" else None
    return FragT(form, rows, cols, str(call.attrs["dtype"]), warps=tuple(warps) if warps else None, chunk=chunk,  # type: ignore[arg-type]  # one of the named forms
                 stages=int(call.attrs["stage"] or 1), rank=len(shape))  # type: ignore[arg-type]  # an int option


def _vector(call: Call) -> Type:
    like = call.type_of("like")
    if isinstance(like, ViewT) or not isinstance(like, FragT):
        call.fault("D024", f"`lm.{call.name}` takes a fragment as model, found {like}", "like")
    init = call.attrs["init"]
    dtype = str(call.attrs["dtype"] or ("i32" if isinstance(init, int) and not isinstance(init, bool) else "f32"))
    if call.name == "rowvec":
        if like.form == "vec" and (why := rows_of_vec(like, like.cols)):
            call.fault("D026", why, "like")
        return row_vector(like, like.rows, dtype)
    if like.form == "vec":
        call.fault("D002", NO_COLUMNS, "like", help=COLUMNS_OF_VEC)
    return FragT("colvec", 1, like.cols, dtype, warps=like.warps, parent=like.form)


_VEC = (P("like", "value"), P("init", "float", 0), P("dtype", "dtype", None))

SPECS = (
    OpSpec("frag", "declare", (P("shape", "shape"), P("dtype", "dtype"), P("form", "str"), P("warps", "shape", None), P("init", "float", None),
                               P("stage", "int", 1), P("like", "value", None)),
           _frag, pure=True, doc="A register fragment; without `init` its elements are undefined until written."),
    OpSpec("rowvec", "declare", _VEC, _vector, pure=True, doc="One value for each row of a fragment."),
    OpSpec("colvec", "declare", _VEC, _vector, pure=True, doc="One value for each column of a fragment."),
)  # fmt: skip
