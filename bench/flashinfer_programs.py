"""FlashInfer's Cake-generated small-batch GEMM programs for Hopper, compiled from its wheel to be timed as a peer.

    python -m bench.flashinfer_programs FLASHINFER.whl --tvm-ffi APACHE_TVM_FFI.whl --out FOLDER

FlashInfer compiles them on the user's machine and picks one by a table of shape windows; neither needs the rest of the package, which is
100 MB. This reads both tables out of the wheel as data, picks for every shape of the `tiny_gemm` benchmark the program that FlashInfer would
run with a bias (most windows without one fall back to TensorRT-LLM's kernel) in its form without bias, and compiles it with nvcc. Written are
the shared libraries and `shapes.json`, which names program, tile, grid and arguments of each shape; `bench.peers` loads them.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cake_kernels

DISPATCH, PROGRAMS, SOURCES = "flashinfer/gemm/routergemm.py", "flashinfer/jit/cake_tinygemm2_wgmma.py", "flashinfer/data/csrc/cake_tinygemm2_wgmma"
BOXED = ("PACKED_U4", "PACKED_S8", "PACKED_U4_IL", "PACKED_S8_IL", "ACCUMULATORS_CN32")  # one 3D copy of four chains where K % 1024 == 0


@dataclass(frozen=True, slots=True)
class Tables:
    """What the wheel says: windows of shapes with their tile, each tile's (rows, features) a CTA, and the programs' launch records."""

    windows: list[list[Any]]
    tiles: dict[str, tuple[int, int]]
    programs: dict[str, dict[str, Any]]

    def tile(self, m: int, n: int, k: int) -> str | None:
        """The tile of the first window with a bias that admits the shape."""
        for name, m0, m1, bias, n0, n1, k0, k1 in self.windows:
            if bias and m0 <= m <= m1 and n0 <= n <= n1 and k0 <= k <= k1:
                return name
        return None

    def program(self, tile: str, k: int) -> tuple[str, int]:
        """(Identifier without bias, CTAs of a cluster) for inputs of K columns."""
        cluster = min(4, -(-k // 256)) if tile.startswith("CLUSTER") else 1
        boxed = "_BOX3D" if tile in BOXED and k % 1024 == 0 else ""
        return f"{tile}{boxed}{f'_C{cluster}' if tile.startswith('CLUSTER') else ''}_NOBIAS", cluster


def read_tables(wheel: zipfile.ZipFile) -> Tables:
    """The literal tables of the dispatch and of the programs, without importing the package."""
    windows: list[list[Any]] = []
    tiles: dict[str, tuple[int, int]] = {}
    for node in ast.parse(wheel.read(DISPATCH)).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        if not isinstance(target, ast.Name) or not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        if target.id == "_TINYGEMM2_WGMMA_TILES":
            tiles = ast.literal_eval(node.value)
        elif target.id == "_TINYGEMM2_WGMMA_WINDOWS" and isinstance(node.value, ast.Tuple):
            windows = [[ast.literal_eval(a) for a in e.args] for e in node.value.elts if isinstance(e, ast.Call)]
    programs = {}
    for node in ast.parse(wheel.read(PROGRAMS)).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            programs[node.targets[0].id] = {k.arg: ast.literal_eval(k.value) for k in node.value.keywords}
    if not (windows and tiles and programs):
        raise SystemExit(f"{wheel.filename}: the tables are not where flashinfer-python 0.7.4 has them")
    return Tables(windows, tiles, programs)


def plan(tables: Tables) -> dict[str, dict[str, Any]]:
    """For each benchmark shape that FlashInfer serves: program, tile, grid."""
    found = {}
    for shape in cake_kernels.tasks()["tiny_gemm"].shapes:
        m, n, k = (shape.axes[a] for a in "MNK")
        tile = tables.tile(m, n, k) if shape.kind == "bench" else None
        if tile is None or (tile.startswith("PACKED") and k % 64):
            continue
        program, cluster = tables.program(tile, k)
        rows, features = tables.tiles[tile]
        grid = [cluster * -(-m // rows), -(-n // features), 1]
        found[shape.name] = {"program": program, "tile": tile, "grid": grid, "args": tables.programs[program]["args"]}
    return found


def compile_program(record: dict[str, Any], sources: Path, ffi: Path, out: Path) -> None:
    """One shared library by nvcc, with the options that the wheel records for sm_90a."""
    options = dict(record["compile_options"]).get("sm_90a", ())
    command = [
        "nvcc", "-shared", "-std=c++17", "-O3", "-w", "-Xcompiler", "-fPIC", "-gencode=arch=compute_90a,code=sm_90a", "--expt-relaxed-constexpr",
        *options, f"-I{sources}", f"-I{ffi / 'include'}", f"-I{ffi / '3rdparty/dlpack/include'}",
        *(str(sources / s) for s in record["sources"]), f"-L{ffi / 'lib'}", "-ltvm_ffi", "-o", str(out),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{record['name']}: nvcc said {done.stderr[-800:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--tvm-ffi", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(arguments.wheel) as wheel, zipfile.ZipFile(arguments.tvm_ffi) as ffi:
        tables = read_tables(wheel)
        shapes = plan(tables)
        wheel.extractall(scratch, [n for n in wheel.namelist() if n.startswith(SOURCES)])
        ffi.extractall(scratch)
        wanted = sorted({s["program"] + end for s in shapes.values() for end in ("", "_PDL")})
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for _ in pool.map(
                lambda p: compile_program(tables.programs[p], Path(scratch, SOURCES), Path(scratch, "tvm_ffi"), arguments.out / f"{p}.so"), wanted
            ):
                pass
    record = {"wheel": arguments.wheel.name, "shapes": shapes}
    (arguments.out / "shapes.json").write_text(json.dumps(record, indent=1))
    print(f"{len(wanted)} programs for {len(shapes)} shapes in {arguments.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
