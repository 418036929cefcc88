"""`vec` fragments to and from shared memory, in the widest pieces that a thread's runs allow."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.cuda.addresses import chunk_address
from cake_backend.cuda.context import Context, Place, Rect
from cake_backend.cuda.elementwise import word
from cake_backend.cuda.fragments import Index, ctype, elements, loop, packing
from cake_backend.cuda.positions import vec_element
from cake_backend.cuda.preamble import Device
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.program import Expr
from cake_ir.types import FragT


def access(kind: str, bits: int) -> Device:
    """A load or store of one thread: 32, 64 or 128 bits as 1, 2 or 4 registers of type u32."""
    n = bits // 32
    vector = "" if n == 1 else f".v{n}"
    regs = ", ".join(f"%{i + (kind == 'store')}" for i in range(n))
    listed = regs if n == 1 else f"{{{regs}}}"
    if kind == "load":
        outs = ", ".join(f'"=r"(r{i})' for i in range(n))
        params = ", ".join(f"u32& r{i}" for i in range(n))
        return Device(
            f"load_shared_{bits}",
            f'DEVICE void load_shared_{bits}({params}, u32 address) {{ asm volatile("ld.shared{vector}.u32 {listed}, [%{n}];" : {outs} : "r"(address) : "memory"); }}',
        )
    ins = ", ".join(f'"r"(r{i})' for i in range(n))
    params = ", ".join(f"u32 r{i}" for i in range(n))
    return Device(
        f"store_shared_{bits}",
        f'DEVICE void store_shared_{bits}(u32 address, {params}) {{ asm volatile("st.shared{vector}.u32 [%0], {listed};" :: "r"(address), {ins} : "memory"); }}',
    )


def in_pieces(t: FragT, r: Rect) -> bool:
    """Whether a thread's runs of a `vec` are whole pieces of 4, 8 or 16 bytes of the rectangle's rows."""
    bits = DTYPES[t.dtype].bits
    if t.dtype == "bool" or bits > 32:
        return False
    run = (t.chunk or 1) * bits
    wide = min(128, run)
    return not r.transposed and wide in (32, 64, 128) and run % wide == 0 and r.cols * bits % 128 == 0


def vec_pieces(ctx: Context, t: FragT, r: Rect, layout: ViewLayout, body: Callable[[Index, str], None]) -> None:
    """Visit a thread's pieces of a `vec` fragment: 16 bytes, or its runs where those are shorter."""
    bits = DTYPES[t.dtype].bits
    chunk = t.chunk or 1
    wide = min(128, chunk * bits)
    per, parts = wide // bits, 128 // wide
    count = elements(t, ctx.role.warps) // per
    whole = r.rows * r.cols // chunk % ctx.role.threads == 0
    with ctx.out.unrolled("i_", count):
        at = loop("i_", per)
        ctx.out.line(f"const u32 at_ = (u32)({vec_element(ctx, t, at)}) / {per}u;")
        if r.rows > 1:
            ctx.out.line(f"const u32 row_ = at_ / {r.cols // per}u, chunk_ = at_ % {r.cols // per}u;")
            row, chunk_ = "row_", "chunk_"
        else:
            row, chunk_ = "0u", "at_"
        if parts > 1:
            address = f"{chunk_address(r, layout, row, f'({chunk_} / {parts}u)')} + {16 // parts}u * ({chunk_} % {parts}u)"
        elif r.rows > 1 or layout.swizzle or r.col:
            address = chunk_address(r, layout, row, chunk_)
        else:
            address = f"{r.base} + 16u * at_"
        if whole:
            body(at, address)
        else:
            with ctx.out.block(f"if (at_ < {r.rows * r.cols // per}u)"):
                body(at, address)


def put_piece(ctx: Context, x: Expr, t: FragT, at: Index, address: str) -> None:
    per, bits = packing(t), piece_bits(t)
    words = [word(ctx, x, t, at.plus(per * w)) for w in range(bits // 32)]
    if ctype(t) == "float":
        words = [f"__float_as_uint({w})" for w in words]
    ctx.out.line(f"{ctx.use(access('store', bits))}({address}, {', '.join(words)});")


def piece_bits(t: FragT) -> int:
    """Bits that a thread moves at a time of a `vec`."""
    return min(128, (t.chunk or 1) * DTYPES[t.dtype].bits)


def get_piece(ctx: Context, place: Place, at: Index, address: str) -> None:
    per, bits = packing(place.type), piece_bits(place.type)
    regs = [f"{place.name}[{at.plus(per * w).divided(per)}]" for w in range(bits // 32)]
    if ctype(place.type) != "u32":
        regs = [f"(u32&){x}" for x in regs]
    ctx.out.line(f"{ctx.use(access('load', bits))}({', '.join(regs)}, {address});")
