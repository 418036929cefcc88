"""`lm.mma` and its grouping: one operation over wgmma, mma.sync and tcgen05, told apart by its operands.

Operand contract: acc[M,N] += a[M,K] b[N,K]^T. The `kind` attribute, derived from the operand types, is `wgmma` (b a view), `mma_sync`
(both fragments) or `tcgen05` (acc in tensor memory).
"""

from __future__ import annotations

from cake_ir.ops.effects import Effect, Issue, Touch
from cake_ir.ops.scales import check_scales, region_of
from cake_ir.ops.spec import Call, OpSpec, P
from cake_ir.program import Op, Program
from cake_ir.types import NONE, FragT, TmemT, Type, ViewT

_MMA_IN = {"bf16": 16, "f16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "i8": 32, "u8": 32, "e2m3": 32, "e3m2": 32, "e2m1": 64}
"""K of one instruction by operand dtype (32 bytes of K; fp6 sits in bytes, fp4 is packed)."""


def instruction_k(dtype: str) -> int:
    """K elements that one MMA instruction consumes for operands of `dtype`."""
    return _MMA_IN.get(dtype, 16)


def _shape(call: Call, name: str) -> tuple[int, int]:
    t = call.type_of(name)
    if isinstance(t, TmemT):
        return (t.lanes, t.cols)
    if isinstance(t, (ViewT, FragT)) and len(t.shape) == 2:
        return (t.shape[0], t.shape[1])
    call.fault("D021", f"`{name}` of `lm.mma` must be 2-D, found {t}", name)


def _mma(call: Call) -> Type:
    acc, a, b = call.type_of("acc"), call.type_of("a"), call.type_of("b")
    (m, n), (ma, ka), (nb, kb) = _shape(call, "acc"), _shape(call, "a"), _shape(call, "b")
    where = ((call.spans["acc"], f"acc is {m} x {n}"), (call.spans["a"], f"a is {ma} x {ka}"), (call.spans["b"], f"b is {nb} x {kb} (N x K)"))
    halves = 2 if isinstance(acc, TmemT) and call.attrs.get("ctas") == 2 else 1  # each CTA of a pair holds its rows of A and half of B's
    if m != ma:
        call.fault("D001", f"`lm.mma` has {m} accumulator rows but `a` has {ma}", "a", related=where, expected=m, found=ma)
    if n != halves * nb:
        help = "`b` is given as (N, K); `.T` reads a (K, N) view that way"
        if halves == 2:
            help = f"each CTA of a pair holds half of B: give `b` {n // 2} rows" if n % 2 == 0 else "the columns of a pair's accumulator are split in two"
        call.fault("D001", f"`lm.mma` has {n} accumulator columns but `b` has {nb} rows" + (", times two CTAs" if halves == 2 else ""), "b", related=where,
                   help=help, expected=n // halves, found=nb)
    if ka != kb:
        call.fault("D001", f"`lm.mma` has K = {ka} in `a` but K = {kb} in `b`", "b", related=where, expected=ka, found=kb)
    da, db = a.dtype, b.dtype  # type: ignore[union-attr]  # _shape has refused everything without a dtype
    eight = {"e4m3", "e5m2", "e2m1", "e2m3", "e3m2"}
    if da != db and not (da in eight and db in eight):
        call.fault("D003", f"`lm.mma` mixes {da} and {db} operands", "b", related=where[1:], expected=da, found=db)
    if isinstance(acc, TmemT):
        call.attrs["kind"] = "tcgen05"
    elif isinstance(acc, FragT) and isinstance(b, ViewT):
        call.attrs["kind"] = "wgmma"
    elif isinstance(acc, FragT) and isinstance(b, FragT) and isinstance(a, FragT):
        call.attrs["kind"] = "mma_sync"
    else:
        call.fault("D025", "`lm.mma` takes a fragment or tensor memory as accumulator, and `a` as a fragment where `b` is one", "a")
    if isinstance(acc, FragT):
        if acc.form != "acc":
            call.fault("D002", f"the accumulator has form `{acc.form}`, an MMA needs `acc`", "acc", expected="acc", found=acc.form)
        if isinstance(a, FragT) and a.form != "a":
            call.fault("D002", f"`a` has form `{a.form}`, an MMA needs `a`", "a", help="convert with `lm.cast(.., form=\"a\")`", expected="a", found=a.form)
        if isinstance(b, FragT) and b.form != "b":
            call.fault("D002", f"`b` has form `{b.form}`, an MMA needs `b`", "b", help="load it with `.ldmatrix(form=\"b\", like=acc)`", expected="b", found=b.form)
    check_scales(call, m, n, ka, a, b)
    return NONE


def _mma_effects(op: Op, program: Program) -> tuple[Effect, ...]:
    space = lambda name: "smem" if isinstance(op.operands[name].type, ViewT) else "tmem" if isinstance(op.operands[name].type, TmemT) else "reg"  # type: ignore[union-attr]  # noqa: E731
    kind = op.attrs["kind"]
    scales = tuple(Touch(name, "r", "tmem", "async") for name in ("scale_a", "scale_b") if region_of(op.operands.get(name)) is not None)
    touches = (Touch("a", "r", space("a"), "async"), Touch("b", "r", space("b"), "async"), Touch("acc", "rw", space("acc"), "async"))  # type: ignore[arg-type]  # `space` gives one of the named spaces
    if kind == "wgmma":
        return (Issue("wgmma", touches, "group", "all"),)
    if kind == "tcgen05":
        return (Issue("tcgen05", (*touches, *scales), "commit", "one"),)
    return (Touch("a", "r", "reg"), Touch("b", "r", "reg"), Touch("acc", "rw", "reg"))


SPECS = (
    OpSpec("mma", "mma", (P("acc", "place|tmem"), P("a", "view|value|tmem"), P("b", "view|value"), P("init", "scalar", False),
                          P("scale_a", "scales", None), P("scale_b", "scales", None), P("ctas", "int", 1)),
           _mma, _mma_effects,
           doc="acc[M,N] (+)= a[M,K] b[N,K]^T; `init` true starts from zero. Views of b on sm_90a make an asynchronous wgmma group."),
)  # fmt: skip
