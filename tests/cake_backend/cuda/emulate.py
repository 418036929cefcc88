"""Compile a lowered kernel for the CPU, against `emulator.hpp` instead of its asm functions, and run it on NumPy arrays."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cake_backend.cuda.lower import Lowered
from cake_backend.expressions import evaluate
from cake_backend.manifest import Param

HEADER = Path(__file__).with_name("emulator.hpp")
COMPILER = shutil.which("g++")

_CTYPE = {"i32": "int", "u32": "u32", "i64": "i64", "u64": "u64", "f32": "float"}
_KIND = {"bf16": "BF16", "f16": "F16", "e4m3": "E4M3", "e5m2": "E5M2", "tf32": "TF32", "i8": "I8", "u8": "U8"}
_PLACE = {"f32": "float", "f16": "u32", "i32": "int"}


@dataclass(frozen=True)
class _Shape:
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def run(lowered: Lowered, tensors: Mapping[str, np.ndarray], scalars: Mapping[str, Any], folder: Path, *, clusters: int | None = None) -> dict[str, np.ndarray]:
    """The tensors after one launch; `clusters` limits a persistent grid. Outputs are in `tensors` too, as they are before the launch."""
    launch = lowered.manifest.launches[0]
    shapes = {n: _Shape(a.shape, tuple(s // a.itemsize for s in a.strides)) for n, a in tensors.items()}
    for g in lowered.manifest.guards:
        assert evaluate(g.expr, scalars, shapes), f"guard does not hold: {g.message}"
    size = launch.cluster[0]
    tiles = 1
    for i, t in enumerate(launch.grid.tiles):
        n = int(evaluate(t, scalars, shapes))
        extent = launch.grid.cluster[i] if i < len(launch.grid.cluster) else 1
        tiles *= -(-n // extent)
    count = tiles if launch.grid.kind == "tiles" or clusters is None else min(tiles, clusters)
    names = sorted(tensors)
    for n in names:
        np.ascontiguousarray(tensors[n]).tofile(folder / f"{n}.bin")
    text = _program(lowered, tensors, scalars, names, count, size, folder)
    (folder / "kernel.cpp").write_text(text)
    assert COMPILER is not None
    built = subprocess.run(
        [COMPILER, "-std=c++17", "-O1", "-w", "-fpermissive", "-I", str(HEADER.parent), "-o", str(folder / "kernel"), str(folder / "kernel.cpp")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[:4000]
    done = subprocess.run([str(folder / "kernel")], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return {n: np.fromfile(folder / f"{n}.bin", dtype=tensors[n].dtype).reshape(tensors[n].shape) for n in names}


def _program(
    lowered: Lowered, tensors: Mapping[str, np.ndarray], scalars: Mapping[str, Any], names: list[str], count: int, size: int, folder: Path
) -> str:
    launch = lowered.manifest.launches[0]
    preamble, _, kernel = lowered.text.partition('extern "C" __global__')
    kernel = re.sub(r"extern __shared__ __align__\((\d+)\) u8 smem_raw\[\];", r"void* smem_raw = (void*)(1024 + \1 % 1024);", kernel)  # no better aligned than asked for
    out = ['#include "emulator.hpp"']
    out += _emulated(preamble)
    out += _kept(preamble)
    out.append("static " + kernel.lstrip())
    statics, main = [], [f"emu::block_dim.x = {launch.block}; emu::grid_dim.x = {count * size};"]
    for n in names:
        a = tensors[n]
        statics.append(f"static std::vector<char> {n}_data({a.nbytes} + 64); static char* {n}_ptr;")
        main.append(f"{n}_ptr = (char*)(((uintptr_t){n}_data.data() + 63) & ~63ull);")
        main.append(f'{{ FILE* f = fopen("{folder / n}.bin", "rb"); if (fread({n}_ptr, 1, {a.nbytes}, f) != {a.nbytes}) return 2; fclose(f); }}')
    for i, m in enumerate(lowered.manifest.maps):
        a = tensors[m.tensor]
        dims, strides = ", ".join(str(d) for d in a.shape[::-1]), ", ".join(str(s // a.itemsize) for s in a.strides[::-1])
        span = {"none": 0, "32b": 32, "64b": 64, "128b": 128}[m.swizzle]
        statics.append(f"static emu::Map m{i}; static TensorMap map{i};")
        main.append(f"m{i} = {{{m.tensor}_ptr, {m.rank}, {a.itemsize}, {{{dims}}}, {{{strides}}}, {{{', '.join(map(str, m.box))}}}, {span}, '{a.dtype.name[0]}'}}; map{i}.opaque[0] = (u64)&m{i};")
    args = ", ".join(_argument(p, tensors, scalars) for p in launch.params)
    main.append(f"emu::body = +[] {{ {launch.entry}({args}); }};")
    main.append(f"for (unsigned c = 0; c < {count}; c++) emu::run_cluster(c * {size}, {size}, {launch.block}, {launch.smem});")
    for n in names:
        main.append(f'{{ FILE* f = fopen("{folder / n}.bin", "wb"); fwrite({n}_ptr, 1, {tensors[n].nbytes}, f); fclose(f); }}')
    body = "\n  ".join(main)
    out += [*statics, f"int main() {{\n  {body}\n  return 0;\n}}"]
    return "\n".join(out)


def _argument(p: Param, tensors: Mapping[str, np.ndarray], scalars: Mapping[str, Any]) -> str:
    if p.kind == "tmap":
        return f"map{p.map}"
    if p.kind == "ptr":
        return f"emu_pointer({p.tensor}_ptr)"
    if p.kind == "stride":
        a = tensors[str(p.tensor)]
        return f"{a.strides[int(p.dim or 0)] // a.itemsize}ull"
    if p.kind == "extent":
        return str(tensors[str(p.tensor)].shape[int(p.dim or 0)])
    if p.kind == "scalar":
        value = scalars[str(p.name)]
        return f"{float(value)!r}f" if p.ctype == "f32" else str(value)
    if p.kind == "hang":
        return "nullptr"
    raise AssertionError(p.kind)


def _kept(preamble: str) -> list[str]:
    """Device functions without asm: they run as they are."""
    out = []
    for text in re.split(r"\n(?=DEVICE |template <)", preamble):
        if text.startswith("DEVICE ") and "asm" not in text and not text.startswith("DEVICE u32 shared_address") and "mbarrier_wait" not in text and "hang_report" not in text:
            out.append(text)
    return out


def _emulated(preamble: str) -> list[str]:
    """Definitions of the asm functions whose names carry their shape."""
    out = ["struct emu_pointer { char* p; template <class T> operator T*() const { return (T*)p; } emu_pointer(char* q) : p(q) {} };"]
    done = set()
    for name in re.findall(r"DEVICE \w+ (\w+)\(", preamble):
        if name in done:
            continue
        done.add(name)
        out += _one(name)
    return out


def _kinds(types: str) -> str:
    """The kinds of both operands out of a name: one name where they are the same."""
    both = types.split("_")
    return f"emu::{_KIND[both[0]]}, emu::{_KIND[both[-1]]}"


def _one(name: str) -> list[str]:
    if m := re.fullmatch(r"(load|store)_global_(\d+)\w*", name):
        n = int(m[2]) // 32
        if m[1] == "load":
            params = ", ".join(f"u32& r{i}" for i in range(n))
            body = " ".join(f"r{i} = v[{i}];" for i in range(n))
            return [f"static void {name}({params}, const void* p) {{ u32 v[{n}]; emu_load_global(v, p, {4 * n}); {body} }}"]
        params = ", ".join(f"u32 r{i}" for i in range(n))
        return [f"static void {name}(void* p, {params}) {{ u32 v[{n}] = {{{', '.join(f'r{i}' for i in range(n))}}}; emu_global(p, {4 * n}); std::memcpy(p, v, {4 * n}); }}"]
    if m := re.fullmatch(r"(ld|st)matrix_x(\d)(_trans)?", name):
        n, trans = int(m[2]), "true" if m[3] else "false"
        if m[1] == "ld":
            params = ", ".join(f"u32& r{i}" for i in range(n))
            body = " ".join(f"r{i} = v[{i}];" for i in range(n))
            return [f"static void {name}({params}, u32 a) {{ u32 v[4]; emu::matrix(a, v, {n}, {trans}, false); {body} }}"]
        params = ", ".join(f"u32 r{i}" for i in range(n))
        return [f"static void {name}(u32 a, {params}) {{ u32 v[4] = {{{', '.join(f'r{i}' for i in range(n))}}}; emu::matrix(a, v, {n}, {trans}, true); }}"]
    if m := re.fullmatch(r"tma_(load|store|reduce_(?:add|min|max|inc|and|or|xor))_(\d)d(_multicast)?(_hint)?", name):
        axes = [f"int c{i}" for i in range(int(m[2]))]
        c = f"int c[] = {{{', '.join(f'c{i}' for i in range(int(m[2])))}}};"
        if m[1] == "load":
            extra = (", u16 ctas" if m[3] else "") + (", u64" if m[4] else "")
            mask = "ctas" if m[3] else "1u << emu::cur->cta->rank"
            return [f"static void {name}(u32 dst, const TensorMap* map, {', '.join(axes)}, u32 bar{extra}) {{ {c} emu::tensor_load(dst, map, c, bar, {mask}); }}"]
        kinds = ["add", "min", "max", "inc", "and", "or", "xor"]
        reduce = 1 + kinds.index(m[1].removeprefix("reduce_")) if m[1] != "store" else 0
        return [f"static void {name}(const TensorMap* map, u32 src, {', '.join(axes)}) {{ {c} emu::tensor_copy(map, src, c, false, {{emu::cur->cta}}, {reduce}); }}"]
    if re.fullmatch(r"tma_prefetch_\dd", name):
        return [f"template <class... Axes> static void {name}(const TensorMap*, Axes...) {{}}"]
    if m := re.fullmatch(r"wgmma_m64n(\d+)k(\d+)_(f32|f16|i32)_(\w+?)_(ss|rs)(_ta)?(_tb)?", name):
        a = "u32 a0, u32 a1, u32 a2, u32 a3" if m[5] == "rs" else "u64 a"
        regs = "u32 r[4] = {a0, a1, a2, a3};" if m[5] == "rs" else "u32* r = nullptr;"
        flags = ", ".join(("true" if x else "false") for x in (m[5] == "rs", m[6], m[7]))
        call = f"emu::wgmma(t, {'0' if m[5] == 'rs' else 'a'}, r, b, accumulate, {m[1]}, {m[2]}, {_kinds(m[4])}, {flags});"
        return [f"static void {name}({_PLACE[m[3]]}* d, {a}, u64 b, int accumulate) {{ {regs} emu::with_floats(d, {int(m[1]) // 2}, [&](float* t) {{ {call} }}); }}"]
    if m := re.fullmatch(r"mma_scaled_m16n8k32_(\w+)_ue8m0_x1", name):
        return [f"static void {name}(float* d, const u32* a, const u32* b, u32 sa, u32 sb, int byte) {{ emu::mma_scaled(d, a, b, sa, sb, byte, {_kinds(m[1])}); }}"]
    if m := re.fullmatch(r"mma_m16n8k(\d+)_(f32|f16|i32)_(\w+)", name):
        call = f"emu::mma(t, a, b, {m[1]}, {_kinds(m[3])});"
        return [f"static void {name}({_PLACE[m[2]]}* d, const u32* a, const u32* b) {{ emu::with_floats(d, 4, [&](float* t) {{ {call} }}); }}"]
    if m := re.fullmatch(r"red_(global|shared)_(add|min|max|inc|and|or|xor)_(f32|s32|u32|b32|f16x2|bf16x2|f16|bf16)(_v(\d))?_(cta|gpu|sys)", name):
        if m[3] == "f32" and m[2] != "add":
            return []  # kept as it is
        n = int(m[5] or 1)
        kind = {"f32": "float", "s32": "int"}.get(m[3], "u32")
        params = ", ".join(f"{kind} x{i}" for i in range(n))
        size = 2 if m[3] in ("f16", "bf16") else 4
        where = "emu::at(p, 4)" if m[1] == "shared" else "(u8*)p"
        body = " ".join(f"emu::update_{m[2]}({where} + {size * i}, x{i}, emu::As_{m[3]}());" for i in range(n))
        check = "" if m[1] == "shared" else f"emu_global(p, {size * n}); "
        return [f"static void {name}({'u32' if m[1] == 'shared' else 'void*'} p, {params}) {{ {check}{body} }}"]
    if name.startswith("policy_"):
        return [f"static u64 {name}() {{ return 0; }}"]
    return []
