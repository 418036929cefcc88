"""Tensor memory (sm_100a, sm_103a): moves between it and registers or shared memory."""

from __future__ import annotations

from cake_ir.ops.effects import Issue, Touch
from cake_ir.ops.spec import Call, OpSpec, P, always
from cake_ir.types import NONE, FragT, TmemT, Type, ViewT


def _tmem_load(call: Call) -> Type:
    t = call.type_of("t")
    assert isinstance(t, TmemT)
    form = str(call.attrs["form"])
    if form not in ("rows", "acc"):
        call.fault("D022", f"tensor memory loads into form `rows` or `acc`, not `{form}`", "form")
    return FragT(form, t.lanes, int(call.attrs["cols"] or t.cols), t.dtype)  # type: ignore[arg-type]  # one of the named forms


COPY_ROWS = (128, 32)
"""Rows of a view that one copy brings: a row a lane, or 32 rows to each quarter of the lanes."""


def _tmem_copy(call: Call) -> Type:
    t, view = call.type_of("t"), call.type_of("view")
    assert isinstance(t, TmemT) and isinstance(view, ViewT)
    where = ((call.spans["t"], f"{t.lanes} lanes x {t.cols} of {t.dtype}"), (call.spans["view"], f"{' x '.join(map(str, view.shape))} of {view.dtype}"))
    if len(view.shape) != 2:
        call.fault("D021", f"`lm.tmem_copy` copies a 2-D view, `{view.view}` is {len(view.shape)}-D", "view", expected=2, found=len(view.shape))
    if t.lanes != COPY_ROWS[0]:
        call.fault("D001", f"`lm.tmem_copy` fills 128 lanes, `{t.tmem}` has {t.lanes}", "t", related=where, expected=COPY_ROWS[0], found=t.lanes)
    rows, cols = view.shape
    if rows not in COPY_ROWS:
        call.fault("D001", f"`lm.tmem_copy` brings 128 rows, a row a lane, or 32 rows to each quarter of the lanes: this part of `{view.view}` has {rows}", "view",
                   related=where, expected=COPY_ROWS[0], found=rows)
    if cols != t.cols:
        call.fault("D001", f"`lm.tmem_copy` fills {t.cols} columns of `{t.tmem}` with {cols} of `{view.view}`", "view", related=where, expected=t.cols, found=cols)
    if view.dtype != t.dtype:
        call.fault("D003", f"`lm.tmem_copy` moves bits as they are: `{t.tmem}` is {t.dtype}, `{view.view}` is {view.dtype}", "view", related=where,
                   expected=t.dtype, found=view.dtype)
    return NONE


SPECS = (
    OpSpec("tmem_load", "tmem", (P("t", "tmem"), P("cols", "int", None), P("form", "str", "rows")), _tmem_load,
           always(Issue("tmem_ld", (Touch("t", "r", "tmem"), Touch("result", "w", "reg")), "group", "all")), needs="TCGEN05",
           doc="Read tensor memory into registers; complete after `lm.tmem_wait(\"ld\")`."),
    OpSpec("tmem_store", "tmem", (P("t", "tmem"), P("x", "value")),
           effects=always(Issue("tmem_st", (Touch("x", "r", "reg"), Touch("t", "w", "tmem")), "group", "all")), needs="TCGEN05",
           doc="Write a fragment to tensor memory; complete after `lm.tmem_wait(\"st\")`."),
    OpSpec("tmem_copy", "tmem", (P("t", "tmem"), P("view", "view")), _tmem_copy,
           effects=always(Issue("tcgen05", (Touch("view", "r", "smem", "async"), Touch("t", "w", "tmem", "async")), "commit")),
           needs="TCGEN05", doc="Copy shared memory to tensor memory, in order with the later MMAs of its thread; complete when a `lm.commit` has arrived."),
)  # fmt: skip
