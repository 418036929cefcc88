"""The forms that are tried: one or two lines of PTX each, on registers that nothing has written.

Whether a form assembles is a matter of its spelling and the target alone, so operands are whatever has the right type. Names of registers:
`r` 32 bits, `d` 64 bits, `f` f32, `h` 16 bits, `p` predicates.
"""

from __future__ import annotations

from dataclasses import dataclass

PROLOGUE = (
    ".reg .b32 r<160>; .reg .b64 d<40>; .reg .f32 f<160>; .reg .b16 h<16>; .reg .b8 c<8>; .reg .pred p<4>; .reg .b128 q<2>;"
)  # fmt: skip
"""Declarations in front of every form, for a block of its own."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form: a name, its PTX, and its id in the instruction table where that has the same form. `bounds` are launch bounds it needs."""

    name: str
    text: str
    table: str = ""
    bounds: str = "128, 1"


def regs(letter: str, count: int, start: int = 0) -> str:
    """A vector of registers as an operand."""
    return "{" + ", ".join(f"{letter}{i}" for i in range(start, start + count)) + "}"


def _forms(rows: str) -> tuple[Form, ...]:
    """`NAME | PTX | table id` a line."""
    out = []
    for row in rows.strip().splitlines():
        name, text, *table = (part.strip() for part in row.rstrip(" |").split(" | "))
        out.append(Form(name, text, table[0] if table else ""))
    return tuple(out)


_G2S = "shared::cluster.global.mbarrier::complete_tx::bytes"

FEATURE_FORMS: tuple[Form, ...] = _forms(f"""
CP_ASYNC | cp.async.cg.shared.global [r0], [d0], 16; | cp.async.cg.16
LDMATRIX | ldmatrix.sync.aligned.m8n8.x4.shared.b16 {regs("r", 4)}, [r9]; | ldmatrix.m8n8.x4.b16
LDMATRIX_B8 | ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {regs("r", 2)}, [r9]; | ldmatrix.m16n16.x1.trans.b8
LDMATRIX_UNPACK | ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {regs("r", 1)}, [r9]; | ldmatrix.m8n16.x1.b8x16.b4x16_p64
STMATRIX | stmatrix.sync.aligned.m8n8.x4.shared.b16 [r9], {regs("r", 4)}; | stmatrix.m8n8.x4.b16
STMATRIX_B8 | stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [r9], {regs("r", 1)}; | stmatrix.m16n8.x1.trans.b8
MOVMATRIX | movmatrix.sync.aligned.m8n8.trans.b16 r0, r1; | movmatrix.m8n8.trans.b16
MMA_SYNC | mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {regs("f", 4)}, {regs("r", 4)}, {regs("r", 2, 8)}, {regs("f", 4, 8)}; | mma.sync.m16n8k16.f32.bf16.bf16.f32
FP8_MMA | mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {regs("f", 4)}, {regs("r", 4)}, {regs("r", 2, 8)}, {regs("f", 4, 8)}; | mma.sync.m16n8k32.f32.e4m3.e5m2.f32
F8F6F4_MMA | mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 {regs("f", 4)}, {regs("r", 4)}, {regs("r", 2, 8)}, {regs("f", 4, 8)}; | mma.sync.m16n8k32.kind::f8f6f4.f32.e3m2.e2m1.f32
BLOCK_SCALED_MMA | mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {regs("f", 4)}, {regs("r", 4)}, {regs("r", 2, 8)}, {regs("f", 4, 8)}, r20, {{0, 0}}, r21, {{0, 0}}; | mma.sync.m16n8k64.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
TMA | cp.async.bulk.tensor.2d.{_G2S} [r0], [d0, {{r1, r2}}], [r3]; | tensor.2d.g2s.tile
MULTICAST | cp.async.bulk.tensor.2d.{_G2S}.multicast::cluster [r0], [d0, {{r1, r2}}], [r3], h0; | tensor.2d.g2s.tile.multicast
TMA_REDUCE | cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [d0, {{r1, r2}}], [r0]; | tensor.2d.reduce.add.tile
TMA_GATHER4 | cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [r0], [d0, {{r1, r2, r3, r4, r5}}], [r6]; |
TMA_SCATTER4 | cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [d0, {{r1, r2, r3, r4, r5}}], [r0]; |
TMA_CTA_GROUP | cp.async.bulk.tensor.2d.cta_group::2.{_G2S} [r0], [d0, {{r1, r2}}], [r3]; |
CLUSTER | barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; |
DSMEM | mapa.shared::cluster.u32 r0, r1, r2; ld.shared::cluster.u32 r3, [r0]; |
ST_ASYNC | st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [r0], r1, [r2]; | st.async.b32
MBARRIER | mbarrier.init.shared.b64 [r0], 1; mbarrier.arrive.shared.b64 d0, [r0]; |
MBARRIER_TX | mbarrier.arrive.expect_tx.shared.b64 d0, [r0], r1; | mbarrier.arrive.expect_tx
MBARRIER_TRY_WAIT | mbarrier.try_wait.parity.shared.b64 p0, [r0], r1; | mbarrier.try_wait.parity
WGMMA | wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {regs("f", 4)}, d0, d1, p0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; |
SETMAXNREG | setmaxnreg.dec.sync.aligned.u32 40; |
TCGEN05 | tcgen05.mma.cta_group::1.kind::f16 [r0], d0, d1, r1, p0; | tcgen05.mma.cg1.f16.SS
TCGEN05_I8 | tcgen05.mma.cta_group::1.kind::i8 [r0], d0, d1, r1, p0; | tcgen05.mma.cg1.i8.SS
TCGEN05_BLOCK_SCALED | tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [r0], d0, d1, r1, [r2], [r3], p0; | tcgen05.mma.cg1.mxf8f6f4.SS.block_scale
TCGEN05_LD_RED | tcgen05.ld.red.sync.aligned.32x32b.x8.max.f32 {regs("f", 8)}, f9, [r0]; |
TCGEN05_SHIFT | tcgen05.shift.cta_group::1.down [r0]; | tcgen05.shift.cg1.down
TWO_CTA_MMA | tcgen05.mma.cta_group::2.kind::f16 [r0], d0, d1, r1, p0; | tcgen05.mma.cg2.f16.SS
TMEM | tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [r0], 128; tcgen05.dealloc.cta_group::1.sync.aligned.b32 r1, 128; |
CLC | clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [r0], [r1]; | clc.try_cancel
PDL | griddepcontrol.wait; | griddepcontrol.wait
ELECT_SYNC | elect.sync r0|p0, 0xffffffff; | elect.sync
FENCE_PROXY_ASYNC | fence.proxy.async.shared::cta; | fence.proxy.async.shared::cta
REDUX_I32 | redux.sync.max.s32 r0, r1, 0xffffffff; |
REDUX_F32 | redux.sync.max.f32 f0, f1, 0xffffffff; | redux.sync.max.f32
F32X2 | fma.rn.f32x2 d0, d1, d2, d3; | fma.rn.f32x2
MAX3_F32 | max.f32 f0, f1, f2, f3; |
BF16X2_ADD | add.rn.bf16x2 r0, r1, r2; |
FP8_CVT | cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1; | cvt.e4m3x2.f32
FP6_CVT | cvt.rn.satfinite.e2m3x2.f32 h0, f0, f1; | cvt.e2m3x2.f32
FP4_CVT | cvt.rn.satfinite.e2m1x2.f32 c0, f0, f1; | cvt.e2m1x2.f32
UE8M0_CVT | cvt.rz.satfinite.ue8m0x2.f32 h0, f0, f1; |
STOCHASTIC_CVT | cvt.rs.bf16x2.f32 r0, f0, f1, r1; | cvt.rs.bf16x2.f32
LDST_256 | ld.global.v8.f32 {regs("f", 8)}, [d0]; | ld.global.v8.f32
RED_VECTOR | red.global.add.v4.f32 [d0], {regs("f", 4)}; |
""")
"""One form for each feature of `cake_ir.targets.features`, named by it."""

LIMIT_FORMS: tuple[Form, ...] = _forms("""
cp.async.4 | cp.async.ca.shared.global [r0], [d0], 4; | cp.async.ca.4
cp.async.2 | cp.async.ca.shared.global [r0], [d0], 2; | cp.async.ca.2
cp.async.cg.8 | cp.async.cg.shared.global [r0], [d0], 8; | cp.async.cg.8
setmaxnreg.24 | setmaxnreg.dec.sync.aligned.u32 24; | setmaxnreg.dec.24.maxntid
setmaxnreg.28 | setmaxnreg.dec.sync.aligned.u32 28; |
setmaxnreg.16 | setmaxnreg.dec.sync.aligned.u32 16; |
setmaxnreg.256 | setmaxnreg.inc.sync.aligned.u32 256; |
setmaxnreg.264 | setmaxnreg.inc.sync.aligned.u32 264; | setmaxnreg.inc.264.maxntid
barrier.15 | bar.sync 15, 64; |
barrier.16 | bar.sync 16, 64; |
barrier.33 | bar.sync 1, 33; | bar.sync.1.33
red.bf16 | red.global.add.noftz.bf16 [d0], h0; |
red.f16 | red.global.add.noftz.f16 [d0], h0; |
ld.v4 | ld.global.v4.f32 {f0, f1, f2, f3}, [d0]; | ld.global.v4.f32
ld.shared.v8 | ld.shared.v8.f32 {f0, f1, f2, f3, f4, f5, f6, f7}, [r0]; | ld.shared.v8.f32
bulk.16 | cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r0], [d0], 16, [r1]; | bulk.g2s.size_imm.16
bulk.24 | cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r0], [d0], 24, [r1]; | bulk.g2s.size_imm.24
ldmatrix.off | .shared .align 128 .b8 s[256]; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r0, r1, r2, r3}, [s+8]; | ldmatrix.misaligned_imm
""")
"""Forms on both sides of a limit, and forms that assemble although hardware refuses them."""


# ------------------------------------------------------------------ matrix multiply-accumulate

_PTX = {"i8": "s8", "i32": "s32"}


def mma_form(a: str, b: str, acc: str, k: int) -> Form:
    """mma.sync m16n8 of dtypes of the language."""
    pa, pb, pd = (_PTX.get(t, t) for t in (a, b, acc))
    narrow = {a, b} & {"e2m1", "e2m3", "e3m2"}
    kind = ".kind::f8f6f4" if narrow else ""
    letter, n = ("f", 4) if acc == "f32" else ("r", 2) if acc == "f16" else ("r", 4)
    text = f"mma.sync.aligned.m16n8k{k}.row.col{kind}.{pd}.{pa}.{pb}.{pd} {regs(letter, n)}, {regs('r', 4, 20)}, {regs('r', 2, 30)}, {regs(letter, n, 40)};"
    return Form(f"mma.sync {a} x {b} into {acc}", text, f"mma.sync.m16n8k{k}{kind}.{pd}.{pa}.{pb}.{pd}")


SCALED: dict[tuple[str, int, str], str] = {
    ("mxf8f6f4", 32, "ue8m0"): "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0",
    ("mxf4", 32, "ue8m0"): "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    ("mxf4nvf4", 16, "e4m3"): "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ("mxf4", 16, "e4m3"): "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ("mxf8f6f4", 16, "e4m3"): "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::2X.f32.e4m3.e4m3.f32.ue4m3",
}
"""Block-scaled mma.sync by kind, elements a scale and the scales' dtype; the last two exist nowhere."""


def scaled_form(kind: str, block: int, dtype: str) -> Form:
    """mma.sync on operands with block scales in registers."""
    text = f"mma.sync.aligned.{SCALED[kind, block, dtype]} {regs('f', 4)}, {regs('r', 4)}, {regs('r', 2, 8)}, {regs('f', 4, 8)}, r20, {{0, 0}}, r21, {{0, 0}};"
    return Form(f"mma.sync {kind}, {dtype} every {block}", text)


def wgmma_form(a: str, b: str, acc: str, k: int, n: int, from_registers: bool = False, transposed: bool = False) -> Form:
    """One wgmma with its fence, commit and wait."""
    pa, pb, pd = (_PTX.get(t, t) for t in (a, b, acc))
    letter, count = ("f", n // 2) if acc == "f32" else ("r", n // 4) if acc == "f16" else ("r", n // 2)
    flags = "" if acc == "i32" else ", 1, 1"
    if a in ("f16", "bf16"):
        flags += f", {int(transposed)}" if from_registers else f", 0, {int(transposed)}"
    source = regs("r", 4, 140) if from_registers else "d0"
    text = (f"wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n{n}k{k}.{pd}.{pa}.{pb} {regs(letter, count)}, {source}, d1, p0{flags}; "
            "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")  # fmt: skip
    where = "RS" if from_registers else "SS"
    return Form(f"wgmma {a} x {b} into {acc}, N = {n}, {where}{', b transposed' if transposed else ''}", text, f"wgmma.m64n{n}k{k}.{pd}.{pa}.{pb}.{where}" if not transposed else "")


def tcgen05_form(kind: str, ctas: int) -> Form:
    """tcgen05.mma on shared-memory operands."""
    scaled = kind.startswith("mx")
    vector = ".block16" if kind == "mxf4nvf4" else ".block32" if kind == "mxf4" else ""
    extra = ", [r2], [r3]" if scaled else ""
    text = f"tcgen05.mma.cta_group::{ctas}.kind::{kind}{'.block_scale' + vector if scaled else ''} [r0], d0, d1, r1{extra}, p0;"
    return Form(f"tcgen05 {kind}, ctas={ctas}", text)


# ------------------------------------------------------------------ conversions and reductions

CASTS: dict[tuple[str, str], str] = {
    ("f32", "bf16"): "cvt.rn.bf16.f32 h0, f0;", ("f32", "f16"): "cvt.rn.f16.f32 h0, f0;", ("f32", "tf32"): "cvt.rna.tf32.f32 r0, f0;",
    ("f16", "f32"): "cvt.f32.f16 f0, h0;", ("bf16", "f32"): "mov.b32 r0, {h1, h0};",
    ("f32", "e4m3"): "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1;", ("f32", "e5m2"): "cvt.rn.satfinite.e5m2x2.f32 h0, f0, f1;",
    ("e4m3", "f16"): "cvt.rn.f16x2.e4m3x2 r0, h0;", ("e5m2", "f16"): "cvt.rn.f16x2.e5m2x2 r0, h0;",
    ("f32", "e2m3"): "cvt.rn.satfinite.e2m3x2.f32 h0, f0, f1;", ("f32", "e3m2"): "cvt.rn.satfinite.e3m2x2.f32 h0, f0, f1;",
    ("e2m3", "f16"): "cvt.rn.f16x2.e2m3x2 r0, h0;", ("e3m2", "f16"): "cvt.rn.f16x2.e3m2x2 r0, h0;",
    ("f32", "e2m1"): "cvt.rn.satfinite.e2m1x2.f32 c0, f0, f1;", ("e2m1", "f16"): "cvt.rn.f16x2.e2m1x2 r0, c0;",
    ("f32", "ue8m0"): "cvt.rz.satfinite.ue8m0x2.f32 h0, f0, f1;", ("ue8m0", "bf16"): "cvt.rn.bf16x2.ue8m0x2 r0, h0;",
    ("f32", "i32"): "cvt.rzi.s32.f32 r0, f0;", ("i32", "f32"): "cvt.rn.f32.s32 f0, r0;", ("f32", "u32"): "cvt.rzi.u32.f32 r0, f0;",
}  # fmt: skip
"""One conversion instruction for each pair of dtypes that has one."""

STOCHASTIC: dict[str, str] = {
    "bf16": "cvt.rs.bf16x2.f32 r0, f0, f1, r1;", "f16": "cvt.rs.f16x2.f32 r0, f0, f1, r1;",
    "e4m3": "cvt.rs.satfinite.e4m3x4.f32 r0, {f0, f1, f2, f3}, r1;", "e5m2": "cvt.rs.satfinite.e5m2x4.f32 r0, {f0, f1, f2, f3}, r1;",
    "e2m1": "cvt.rs.satfinite.e2m1x4.f32 h0, {f0, f1, f2, f3}, r1;", "e2m3": "cvt.rs.satfinite.e2m3x4.f32 r0, {f0, f1, f2, f3}, r1;",
    "e3m2": "cvt.rs.satfinite.e3m2x4.f32 r0, {f0, f1, f2, f3}, r1;",
}  # fmt: skip


def reduce_form(op: str, dtype: str) -> Form:
    """How the copy engine combines with global memory: the 1-D form, whose type is spelled (a tensor's comes from its map)."""
    spelled = {"i32": "s32"}.get(dtype, dtype)
    if op in ("and", "or", "xor"):
        spelled = "b32"
    if op == "add" and dtype == "i32":
        spelled = "s32"
    ftz = ".noftz" if op == "add" and dtype in ("f16", "bf16") else ""
    return Form(f"bulk reduction {op} of {dtype}", f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}{ftz}.{spelled} [d0], [r0], r1;")
