"""Tensor memory (sm_100a, sm_103a): moves between it and registers or shared memory."""

from __future__ import annotations

from cake_ir.ops.effects import Issue, Touch
from cake_ir.ops.spec import Call, OpSpec, P, always
from cake_ir.types import FragT, TmemT, Type


def _tmem_load(call: Call) -> Type:
    t = call.type_of("t")
    assert isinstance(t, TmemT)
    form = str(call.attrs["form"])
    if form not in ("rows", "acc"):
        call.fault("D022", f"tensor memory loads into form `rows` or `acc`, not `{form}`", "form")
    return FragT(form, t.lanes, int(call.attrs["cols"] or t.cols), t.dtype)  # type: ignore[arg-type]  # one of the named forms


SPECS = (
    OpSpec("tmem_load", "tmem", (P("t", "tmem"), P("cols", "int", None), P("form", "str", "rows")), _tmem_load,
           always(Issue("tmem_ld", (Touch("t", "r", "tmem"), Touch("result", "w", "reg")), "group", "all")), needs="TCGEN05",
           doc="Read tensor memory into registers; complete after `lm.tmem_wait(\"ld\")`."),
    OpSpec("tmem_store", "tmem", (P("t", "tmem"), P("x", "value")),
           effects=always(Issue("tmem_st", (Touch("x", "r", "reg"), Touch("t", "w", "tmem")), "group", "all")), needs="TCGEN05",
           doc="Write a fragment to tensor memory; complete after `lm.tmem_wait(\"st\")`."),
    OpSpec("tmem_copy", "tmem", (P("t", "tmem"), P("view", "view")),
           effects=always(Issue("tcgen05", (Touch("view", "r", "smem", "async"), Touch("t", "w", "tmem", "async")), "commit")),
           needs="TCGEN05", build=False, doc="Copy shared memory to tensor memory (operands, scales)."),
)  # fmt: skip
