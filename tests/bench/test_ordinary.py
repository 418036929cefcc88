"""An ordinary pass of a hot loop: forward branches are taken, stall cycles come from the encodings."""

from bench.ordinary import listing, ordinary_pass


def text(*lines: str | tuple[str, int]) -> str:
    """A listing as `nvdisasm -c -hex` prints it, from labels and (instruction, stall cycles)."""
    out, at = [], 0
    for line in lines:
        if isinstance(line, str):
            out.append(f"{line}:")
            continue
        out += [f"        /*{at:04x}*/                   {line[0]} ;  /* 0x000000000000794d */", f"                                      /* 0x{line[1] << 41 | 7:016x} */"]
        at += 16
    return "\n".join(out) + "\n"


LOOP = text(
    ("MOV R1, R2", 9), ".L_x_1", ("FFMA R1, R1, R1, R1", 2), ("VOTE.ANY P0, P0", 1), ("@!P0 BRA `(.L_x_2)", 5), ("FMNMX R1, R1, R2, !PT", 7), ".L_x_2",
    ("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24", 3), ("@P1 BRA `(.L_x_1)", 6), ("EXIT", 5),
)  # fmt: skip


def test_what_stands_behind_a_vote_is_left_out() -> None:
    done = ordinary_pass(*listing(LOOP))
    assert [i.text.split()[0] for i in done] == ["FFMA", "VOTE.ANY", "@!P0", "HGMMA.64x128x16.F32.BF16", "@P1"]
    assert sum(i.stall for i in done) == 2 + 1 + 5 + 3 + 6


def test_the_inner_loop_with_products_is_the_hot_one() -> None:
    nested = text(
        ".L_x_0", ("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24", 1), ".L_x_1", ("HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4], R24", 2), ("@P0 BRA `(.L_x_1)", 4),
        ("@P1 BRA `(.L_x_0)", 8), ("EXIT", 5),
    )  # fmt: skip
    assert sum(i.stall for i in ordinary_pass(*listing(nested))) == 6


def test_without_a_product_there_is_no_hot_loop() -> None:
    assert not ordinary_pass(*listing(text(".L_x_0", ("FFMA R1, R1, R1, R1", 1), ("@P0 BRA `(.L_x_0)", 5), ("EXIT", 5))))
