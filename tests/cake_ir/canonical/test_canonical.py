"""The content hash sees meaning and nothing else."""

from pathlib import Path

import pytest

from cake_ir import parse, specialise
from cake_ir.canonical import content_hash, distance, fingerprint, operation_count

EXAMPLES = {p.stem: p.read_text("utf-8") for p in sorted((Path(__file__).parents[2] / "examples").glob("*.py"))}
GEMM = EXAMPLES["gemm_ws"]


def program(text, **params):
    (template,) = parse(text).schedules
    made = specialise(template, params)
    assert made.program is not None, made.faults
    return made.program


def renamed(text, *pairs):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    "pairs",
    [
        (("smem_a", "tile_of_a"),),
        (("math", "consumers"), ("load = ", "producer = "), ("[load]", "[producer]"), ("with load", "with producer")),
        (("for k in", "for step in"), ("k * BK", "step * BK"), ("k == 0", "step == 0"), ("if k > 0", "if step > 0")),
        (("ab_full", "filled"), ("acc = ", "total = "), ("mma(acc,", "mma(total,"), ("acc.cols", "total.cols")),
        (("gemm_ws", "another_name"),),
        (("t.m", "t.row"), ("t.n", "t.column"), ('raster="m"', 'raster="row"'), ('multicast="m"', 'multicast="row"'),
         ("swizzle=8,", 'swizzle=8, names=("row", "column"),')),
    ],
    ids=["view", "roles", "loop variable", "barrier and place", "schedule", "axes"],
)  # fmt: skip
def test_local_names_do_not_count(pairs):
    assert content_hash(program(renamed(GEMM, *pairs))) == content_hash(program(GEMM))


def test_comments_layout_and_docstrings_do_not_count():
    other = renamed(GEMM, ('"""C[M,N]', '"""Something else about C[M,N]'), ("    with load:", "\n    # a comment\n    with load:"), ("BM=128, BN=256", "BM = 128,  BN = 256"))
    assert content_hash(program(other)) == content_hash(program(GEMM))


def test_a_tunable_counts_by_what_it_makes_of_the_program():
    assert content_hash(program(GEMM, STAGES=3)) != content_hash(program(GEMM))
    written = renamed(GEMM, ("*, BM=128, BN=256, BK=64, STAGES=4", "*, BM=128, BN=256, BK=64, STAGES=3"))
    assert content_hash(program(GEMM, STAGES=3)) == content_hash(program(written))


@pytest.mark.parametrize(
    "pairs",
    [
        (("M: LM.i32", "ROWS: LM.i32"), ("(M, BM)", "(ROWS, BM)")),
        (("pending=1", "pending=0"),),
        (('swizzle="128b")\n    smem_b', 'swizzle="64b")\n    smem_b'),),
        (('target="sm_90a"', 'target="sm_100a"'),),
        (("t.m * BM", "t.n * BM"),),
        (('raster="m", ', ""),),
    ],
    ids=["argument name", "wait", "swizzle", "target", "coordinate", "raster"],
)
def test_what_changes_the_kernel_changes_the_hash(pairs):
    assert content_hash(program(renamed(GEMM, *pairs))) != content_hash(program(GEMM))


def test_every_example_has_a_hash_of_its_own_and_keeps_it():
    hashes = {name: content_hash(program(text)) for name, text in EXAMPLES.items()}
    assert len(set(hashes.values())) == len(hashes)
    assert all(len(h) == 64 for h in hashes.values())
    assert hashes == {name: content_hash(program(text)) for name, text in EXAMPLES.items()}


def test_distance_is_small_between_variants_and_large_between_families():
    prints = {name: fingerprint(program(text)) for name, text in EXAMPLES.items()}
    gemm = prints["gemm_ws"]
    variant = fingerprint(program(GEMM, STAGES=3))
    assert distance(gemm, gemm) == 0
    assert 0 < distance(gemm, variant) < 0.2
    assert all(distance(gemm, variant) < distance(gemm, other) <= 1 for name, other in prints.items() if name != "gemm_ws")
    assert distance(gemm, variant) == distance(variant, gemm)


def test_operations_are_counted_as_the_text_has_them():
    p = program(GEMM)
    assert operation_count(p) == len(p.ops) == 17
