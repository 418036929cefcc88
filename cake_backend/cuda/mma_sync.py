"""Warp-level matrix instructions: mma.sync, ldmatrix, stmatrix, movmatrix."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.preamble import Device


@dataclass(frozen=True, slots=True)
class Shape:
    """One m16n8 instruction by operand types: registers of A, B and the accumulator, and K in elements."""

    a: str
    b: str
    acc: str
    k: int
    a_registers: int
    b_registers: int
    acc_registers: int

    @property
    def name(self) -> str:
        types = self.a if self.a == self.b else f"{self.a}_{self.b}"
        return f"mma_m16n8k{self.k}_{self.acc}_{types}"


_PTX = {"i8": "s8", "i32": "s32"}
_K_OF = {"bf16": 16, "f16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "i8": 32, "u8": 32}


def shape(a: str, b: str, acc: str) -> Shape | None:
    """The instruction for these types, or None where there is none."""
    if a not in _K_OF or _K_OF[a] != _K_OF.get(b):
        return None
    if a in ("bf16", "f16", "tf32") and a != b:
        return None
    allowed = {"f16": ("f32", "f16"), "e4m3": ("f32", "f16"), "e5m2": ("f32", "f16"), "i8": ("i32",), "u8": ("i32",)}.get(a, ("f32",))
    if acc not in allowed:
        return None
    return Shape(a, b, acc, _K_OF[a], 4, 2, 2 if acc == "f16" else 4)


def instruction(s: Shape) -> Device:
    """The function that multiplies one tile: accumulator in place, A and B as 32-bit registers."""
    n = s.acc_registers
    place, constraint = {"f32": ("float", "f"), "f16": ("u32", "r"), "i32": ("int", "r")}[s.acc]
    a, b, acc = (_PTX.get(t, t) for t in (s.a, s.b, s.acc))
    vector = lambda first, count: "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"  # noqa: E731
    d = vector(0, n)
    places = ", ".join(f'"+{constraint}"(d[{i}])' for i in range(n))
    values = ", ".join([*(f'"r"(a[{i}])' for i in range(s.a_registers)), *(f'"r"(b[{i}])' for i in range(s.b_registers))])
    return Device(
        s.name,
        f"""
DEVICE void {s.name}({place}* d, const u32* a, const u32* b) {{
  asm volatile("mma.sync.aligned.m16n8k{s.k}.row.col.{acc}.{a}.{b}.{acc} {d}, {vector(n, s.a_registers)}, {vector(n + s.a_registers, s.b_registers)}, {d};"
               : {places} : {values});
}}""",
    )


def ldmatrix(count: int, *, trans: bool = False) -> Device:
    """`count` (1, 2, 4) 8x8 matrices of 16-bit elements into as many registers; lane l gives the address of row l % 8 of matrix l / 8."""
    name = f"ldmatrix_x{count}" + ("_trans" if trans else "")
    params = ", ".join(f"u32& r{i}" for i in range(count))
    regs = ", ".join(f"%{i}" for i in range(count))
    outs = ", ".join(f'"=r"(r{i})' for i in range(count))
    return Device(
        name,
        f"""
DEVICE void {name}({params}, u32 address) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{".trans" if trans else ""}.shared.b16 {{{regs}}}, [%{count}];"
               : {outs} : "r"(address) : "memory");
}}""",
    )


def stmatrix(count: int, *, trans: bool = False) -> Device:
    """The inverse of `ldmatrix`: `count` registers into 8x8 matrices."""
    name = f"stmatrix_x{count}" + ("_trans" if trans else "")
    params = ", ".join(f"u32 r{i}" for i in range(count))
    regs = ", ".join(f"%{i + 1}" for i in range(count))
    ins = ", ".join(f'"r"(r{i})' for i in range(count))
    return Device(
        name,
        f"""
DEVICE void {name}(u32 address, {params}) {{
  asm volatile("stmatrix.sync.aligned.m8n8.x{count}{".trans" if trans else ""}.shared.b16 [%0], {{{regs}}};"
               :: "r"(address), {ins} : "memory");
}}""",
    )


MOVMATRIX = Device(
    "movmatrix",
    """
DEVICE u32 movmatrix(u32 x) {
  u32 r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x));
  return r;
}""",
)
