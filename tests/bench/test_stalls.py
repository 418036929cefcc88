"""The reader of a profiler's source listing."""

from __future__ import annotations

from pathlib import Path

from bench.stalls import hot_loop, read, report

HEADER = '"Address","Source","# Samples","Instructions Executed","stall_barrier","stall_wait","stall_wait (Not Issued)"\n'
LISTING = (
    '"Kernel Name","first",\n' + HEADER
    + '"0x0","  MOV R1, R2","10","8","0","10","9"\n'
    + '"0x1","  @P0   UMOV UR4, 0x1","5","1,000","1","4","4"\n'
    + '"0x2","  HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24","20","1,000","2","18","18"\n'
    + '"0x3","  FMUL R1, R1, R2","30","1,000","0","30","30"\n'
    + '"0x4","  WARPGROUP.DEPBAR.LE gsb0, 0x0","40","1,000","39","1","1"\n'
    + '"0x5","  EXIT","3","8","0","3","3"\n'
    + '"Kernel Name","second",\n"Address","Source","# Samples","Instructions Executed","stall_wait"\n'
    + '"0x0","  FADD R1, R1, R2","7","5","7"\n'
)  # fmt: skip


def test_each_kernel_is_read_by_its_own_header(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(LISTING)
    (first, code), (second, other) = read(tmp_path / "s.csv")
    assert (first, len(code), second, len(other)) == ("first", 6, "second", 1)
    assert code[1].executed == 1000 and code[1].opcode == "UMOV" and code[4].reasons == {"barrier": 39, "wait": 1}
    assert other[0].reasons == {"wait": 7}


def test_the_loop_is_what_runs_as_often_as_its_mma(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(LISTING)
    (_, code), (second, other) = read(tmp_path / "s.csv")
    assert [i.opcode.split(".")[0] for i in hot_loop(code)] == ["UMOV", "HGMMA", "FMUL", "WARPGROUP"]
    lines = report("first", code, least=50.0)
    assert "95 samples" not in lines[0] and lines[0].startswith("first: 108 samples, 88 % in a loop of 4 instructions")
    assert any("WARPGROUP.DEPBAR" in line and "barrier 41.1" in line for line in lines), lines
    assert report(second, other, 1.0) == ["second: no samples in a loop with HGMMA"]


def test_products_of_8_bit_floats_make_a_hot_loop(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(LISTING.replace("HGMMA.64x128x16.F32.BF16", "QGMMA.64x128x32.F32.E4M3.E4M3"))
    (_, code), _ = read(tmp_path / "s.csv")
    assert [i.opcode.split(".")[0] for i in hot_loop(code)] == ["UMOV", "QGMMA", "FMUL", "WARPGROUP"]
