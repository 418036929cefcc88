"""wgmma: instruction text, shared-memory descriptors, group control."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.preamble import Device, asm_call

FENCE = asm_call("wgmma_fence", "", "wgmma.fence.sync.aligned;", "")
COMMIT = asm_call("wgmma_commit", "", "wgmma.commit_group.sync.aligned;", "")
WAIT = asm_call("wgmma_wait", "", "wgmma.wait_group.sync.aligned %0;", '"n"(N)', template="template <int N>")

DESCRIPTOR_LOW = Device(
    "descriptor_low",
    "DEVICE u32 descriptor_low(u32 address, u32 leading) { return (address & 0x3ffffu) >> 4 | (leading >> 4) << 16; }",
)
"""The half of a descriptor that depends on the address: made once a view, then stepped by bytes / 16 to a slot, a row block, a K step.

The mask takes away the CTA's rank in its cluster, which addresses carry in their upper bits.
"""

DESCRIPTOR = Device("descriptor", "DEVICE u64 descriptor(u32 high, u32 low) { return (u64)high << 32 | low; }")

SWIZZLE_SPAN = {"128b": 128, "64b": 64, "32b": 32}
"""Bytes of a row of one panel, by swizzle name."""

_LAYOUT_TYPE = {"128b": 1, "64b": 2, "32b": 3}


def high_word(swizzle: str, stride: int) -> str:
    """The upper half of a descriptor as a C literal: stride-dimension byte offset and swizzle mode."""
    return f"0x{(stride >> 4) | _LAYOUT_TYPE[swizzle] << 30:08x}u"


@dataclass(frozen=True, slots=True)
class Shape:
    """One wgmma instruction: m64 x n x k with its operand types; `a_registers` for A from registers; `trans_*` for MN-major operands."""

    n: int
    a: str
    b: str
    acc: str = "f32"
    a_registers: bool = False
    trans_a: bool = False
    trans_b: bool = False

    @property
    def k(self) -> int:
        """Elements of K that one instruction consumes: 32 bytes of them."""
        return K_OF[self.a]

    @property
    def registers(self) -> int:
        """Accumulator registers a thread."""
        return self.n // 4 if self.acc == "f16" else self.n // 2


K_OF = {"bf16": 16, "f16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "i8": 32, "u8": 32}
"""K of one instruction by operand type."""

_PTX = {"i8": "s8", "i32": "s32"}


def instruction(shape: Shape) -> Device:
    """The function that issues one instruction: accumulators in place, then A (descriptor or four registers), B, accumulate-or-start."""
    r = shape.registers
    a, b, acc = (_PTX.get(t, t) for t in (shape.a, shape.b, shape.acc))
    kind = "rs" if shape.a_registers else "ss"
    major = ("_ta" if shape.trans_a else "") + ("_tb" if shape.trans_b else "")
    types = shape.a if shape.a == shape.b else f"{shape.a}_{shape.b}"
    name = f"wgmma_m64n{shape.n}k{shape.k}_{shape.acc}_{types}_{kind}{major}"
    place, constraint = {"f32": ("float", "f"), "f16": ("u32", "r"), "i32": ("int", "r")}[shape.acc]
    d = ", ".join(f"%{i}" for i in range(r))
    a_operands = 4 if shape.a_registers else 1
    a_text = "{" + ", ".join(f"%{r + i}" for i in range(4)) + "}" if shape.a_registers else f"%{r}"
    p = r + a_operands + 1
    immediates = ""
    if acc != "s32":
        immediates = ", 1, 1"
        if shape.a in ("bf16", "f16"):
            immediates += f", {int(shape.trans_b)}" if shape.a_registers else f", {int(shape.trans_a)}, {int(shape.trans_b)}"
    places = ", ".join(f'"+{constraint}"(d[{i}])' for i in range(r))
    a_param = "u32 a0, u32 a1, u32 a2, u32 a3" if shape.a_registers else "u64 a"
    a_values = ", ".join(f'"r"(a{i})' for i in range(4)) if shape.a_registers else '"l"(a)'
    return Device(
        name,
        f"""
DEVICE void {name}({place}* d, {a_param}, u64 b, int accumulate) {{
  asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{p}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n{shape.n}k{shape.k}.{acc}.{a}.{b} {{{d}}}, {a_text}, %{p - 1}, p{immediates}; }}"
    : {places}
    : {a_values}, "l"(b), "r"(accumulate));
}}""",
    )
