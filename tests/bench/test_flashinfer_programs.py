"""FlashInfer's dispatch tables are read out of its wheel as data, and choose a program for each shape."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from bench.flashinfer_programs import DISPATCH, PROGRAMS, plan, read_tables

WINDOWS = """
_TINYGEMM2_WGMMA_TILES = {"CLUSTER_S8U8": (8, 16), "PACKED_U4": (8, 16)}
_TINYGEMM2_WGMMA_WINDOWS: Tuple[_WgmmaWindow, ...] = (
    _WgmmaWindow("PACKED_U4", 1, 16, False, 1, 8192, 1, 20480),
    _WgmmaWindow("CLUSTER_S8U8", 1, 8, True, 16, 128, 769, 2880),
    _WgmmaWindow("PACKED_U4", 9, 16, True, 2048, 2048, 14336, 14336),
)
"""
RECORDS = """
CLUSTER_S8U8_C4_NOBIAS = cake_program.CakeProgram(name="one", args=("W", "X"))
PACKED_U4_BOX3D_NOBIAS = cake_program.CakeProgram(name="two", args=("W", "X"))
"""


def wheel(path: Path, dispatch: str = WINDOWS) -> zipfile.ZipFile:
    with zipfile.ZipFile(path / "flashinfer.whl", "w") as made:
        made.writestr(DISPATCH, dispatch)
        made.writestr(PROGRAMS, RECORDS)
    return zipfile.ZipFile(path / "flashinfer.whl")


def test_the_first_window_with_a_bias_that_admits_a_shape_gives_its_program_and_grid(tmp_path: Path) -> None:
    with wheel(tmp_path) as made:
        chosen = plan(read_tables(made))
    assert set(chosen) == {"m1_n128_k2880", "m4_n128_k2880", "m8_n128_k2880", "m16_n2048_k14336"}
    assert chosen["m1_n128_k2880"] == {"program": "CLUSTER_S8U8_C4_NOBIAS", "tile": "CLUSTER_S8U8", "grid": [4, 8, 1], "args": ("W", "X")}
    assert chosen["m16_n2048_k14336"]["program"] == "PACKED_U4_BOX3D_NOBIAS"
    assert chosen["m16_n2048_k14336"]["grid"] == [2, 128, 1]


def test_a_wheel_without_the_tables_is_refused(tmp_path: Path) -> None:
    with wheel(tmp_path, "x = 1") as made, pytest.raises(SystemExit, match="0\\.7\\.4"):
        read_tables(made)
