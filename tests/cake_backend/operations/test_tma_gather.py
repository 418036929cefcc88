"""Rows gathered by the copy engine: a product of gathered rows is proved and simulated, and what is wrong with one is found by both."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, codes, passes, program, simulated

from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower
from cake_backend.simulate import adversaries, simulate
from cake_ir.boxes import gather_boxes
from cake_ir.layout import LayoutError, ViewLayout

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"
GEMM = (CORPUS / "tcgen05_gemm.py").read_text("utf-8")
HEAD = "    with load:\n        for t in lm.tiles(sched):\n"
LOAD = "sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)"
HELD = "            rows = lm.load(TOKEN, coords=(t.m * 128,), shape=(128,), clip=True, fill=-1)\n"
LIST_ROLE = """    with number:
        for t in lm.tiles(sched):
            i = lm.step(lists)
            lm.wait(list_free, stage=i)
            listed[i].store(lm.load(TOKEN, coords=(t.m * 128,), shape=(128,), clip=True, fill=-1))
            lm.arrive(list_full, stage=i)

    with load:
        for t in lm.tiles(sched):
            i = lm.step(lists)
            lm.wait(list_full, stage=i)
"""
LIST_BARRIERS = """    number = lm.role(warps=range(6, 7))
    lists = lm.pipeline(stages=2)
    list_full = lm.barrier(pipeline=lists, prod=[number], cons=[load], arrive="warp")
    list_free = lm.barrier(pipeline=lists, prod=[load], cons=[number], arrive="member", primed=True)
"""


def text_of(numbers: str) -> str:
    """The datacentre Blackwell product with the rows of A by number, held in registers or listed in shared memory."""
    out = GEMM
    edits = [
        ('A: LM.tma2d[LM.bf16, "M", "K"]', 'A: LM.tma2d[LM.bf16, "V", "K"], TOKEN: LM.gmem1d[LM.i32, "M"].const'), ("M: LM.i32, N", "V: LM.i32, M: LM.i32, N"),
    ]  # fmt: skip
    mma_role = "\n    with mma:"
    if numbers == "held":
        edits += [(LOAD, "sa.tma_gather(A, rows=rows, col=k * BK, stage=s, barrier=full)"), (HEAD, HEAD + HELD)]
    else:
        edits += [
            (LOAD, "sa.tma_gather(A, rows=listed[i], col=k * BK, stage=s, barrier=full)"), (HEAD, LIST_ROLE), (mma_role, "            lm.arrive(list_free, stage=i)\n" + mma_role),
            ("+ 128 * BN * 2)\n", "+ 128 * BN * 2 + 1024)\n    listed = pool.view(offset=a_bytes + b_bytes + 128 * BN * 2, shape=(128,), dtype=lm.i32, stage=2)\n"),
            ("    cta = lm.named_barrier(epi)\n", LIST_BARRIERS + "    cta = lm.named_barrier(epi)\n"),
        ]  # fmt: skip
    for old, new in edits:
        assert out.count(old) == 1, old
        out = out.replace(old, new)
    return out


def arrays(v: int, m: int, n: int, k: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Operands with row numbers on both sides of the table's ends, and the product that they ask for."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(BF16) for s in ((v, k), (n, k)))
    token = rng.integers(-3, v + 4, m).astype(np.int32)
    rows = np.zeros((m, k), np.float32)
    ok = (token >= 0) & (token < v)
    assert not ok.all()
    rows[ok] = a[token[ok]].astype(np.float32)
    return {"A": a, "TOKEN": token, "B": b, "C": np.full((m, n), 7, BF16)}, (rows @ b.astype(np.float32).T).astype(BF16)


SIZES = {"V": 50, "M": 200, "N": 136, "K": 328}


@pytest.mark.parametrize("numbers", ["held", "listed"])
def test_a_product_of_gathered_rows_is_proved_and_right_with_zeros_for_rows_outside(numbers: str) -> None:
    text = text_of(numbers)
    passes(text)
    tensors, want = arrays(50, 200, 136, 328)
    got = simulated(text, tensors, SIZES, ctas=3)
    assert got["C"].tobytes() == want.tobytes()


MUTANTS = {
    "no wait for the data": ("held", "                lm.wait(full, stage=s)\n", "", "S004"),
    "no wait for the slot": ("held", "                lm.wait(empty, stage=s)\n", "", "S003"),
    "no arrival that frees the slot": ("held", "                lm.commit(empty, stage=s)\n", "", "S008"),
    "another slot is filled": ("held", "col=k * BK, stage=s,", "col=k * BK, stage=s.prev(1),", None),
    "no wait for the numbers": ("listed", "            lm.wait(list_full, stage=i)\n", "", "S004"),
    "no arrival that frees the numbers": ("listed", "            lm.arrive(list_free, stage=i)\n", "", "S008"),
    "numbers of another slot": ("listed", "rows=listed[i]", "rows=listed[i.prev(1)]", None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_gather_is_refused_and_shown_by_the_simulator(name: str) -> None:
    numbers, old, new, code = MUTANTS[name]
    text = text_of(numbers)
    assert text.count(old) == 1
    text = text.replace(old, new)
    found = codes(text)
    assert found and (code is None or code in found), found
    tensors, want = arrays(50, 200, 136, 328)
    p, shown = program(text), []
    for policy in adversaries(p):
        r = simulate(p, {n: a.copy() for n, a in tensors.items()}, dict(SIZES), ctas=1, policy=policy)
        shown.append(not r.ok or r.outputs["C"].tobytes() != want.tobytes())
    assert any(shown)


def warp_level() -> str:
    """The consumer Blackwell product with the rows of A by number."""
    out = (CORPUS / "gemm_tma_mma_sync.py").read_text("utf-8")
    for old, new in (
        ('A: LM.tma2d[LM.bf16, "M", "K"]', 'A: LM.tma2d[LM.bf16, "V", "K"], TOKEN: LM.gmem1d[LM.i32, "M"].const'), ("M: LM.i32, N", "V: LM.i32, M: LM.i32, N"),
        (LOAD.replace("128", "BM"), "sa.tma_gather(A, rows=rows, col=k * BK, stage=s, barrier=full)"), (HEAD, HEAD + HELD),
    ):  # fmt: skip
        assert out.count(old) == 1, old
        out = out.replace(old, new)
    return out


def test_a_list_that_the_role_writes_itself_does_not_ride_on_the_ring_of_the_rows() -> None:
    text = warp_level()
    for old, new in (
        ("+ BM * BN * 2)\n", "+ BM * BN * 2 + 512)\n    listed = pool.view(offset=a_bytes + b_bytes + BM * BN * 2, shape=(128,), dtype=lm.i32)\n"),
        ("    cta = lm.named_barrier(math)\n", "    cta = lm.named_barrier(math)\n    alone = lm.named_barrier(load)\n"),
        (HELD, "            lm.sync(alone)\n            listed.store(" + HELD.strip().removeprefix("rows = ") + ")\n            lm.sync(alone)\n"),
        ("rows=rows", "rows=listed"), ("                lm.wait(empty, stage=s)\n", "                lm.wait(empty, stage=s)\n                lm.sync(alone)\n"),
    ):  # fmt: skip
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    passes(text)
    tensors, want = arrays(50, 144, 136, 144)
    assert simulated(text, tensors, {"V": 50, "M": 144, "N": 136, "K": 144}, ctas=1)["C"].tobytes() == want.tobytes()
    passes(text.replace("                lm.wait(empty, stage=s)\n                lm.sync(alone)\n", "                lm.wait(empty, stage=s)\n"))  # the lanes of its one warp meet before they start a phase
    unread = codes(text.replace(")\n            lm.sync(alone)\n            for k", ")\n            for k").replace("                lm.sync(alone)\n", ""))
    assert unread == {"S004"}


def test_fragments_loaded_from_gathered_rows_are_right_in_any_order() -> None:
    text = warp_level()
    passes(text)
    tensors, want = arrays(50, 144, 136, 144)
    assert simulated(text, tensors, {"V": 50, "M": 144, "N": 136, "K": 144}, ctas=1, every=True)["C"].tobytes() == want.tobytes()


def test_a_gather_is_not_lowered_and_says_where_and_what_to_write_instead() -> None:
    text = warp_level()
    with pytest.raises(NotLowered) as refused:
        lower(program(text, "sm_120a"))
    fault = refused.value.fault
    assert fault.code == "H091" and fault.message == "`view.tma_gather` is known, not lowered in this build"
    assert text.split("\n")[fault.span.line - 1][fault.span.column - 1 :].startswith("sa.tma_gather(")
    assert "verified and simulated" in fault.help and "cp_async_rows" in fault.help


@pytest.mark.parametrize(("old", "new", "code"), [
    ('target=("sm_120a", "sm_121a")', 'target="sm_90a"', "H001"),
    ('LM.tma2d[LM.bf16, "V", "K"]', 'LM.tma3d[LM.bf16, 1, "V", "K"]', "D011"),
    ('LM.tma2d[LM.bf16, "V", "K"]', 'LM.tma2d[LM.f16, "V", "K"]', "D012"),
    ("LM.gmem1d[LM.i32, ", "LM.gmem1d[LM.u32, ", "D003"),
    ("shape=(128,), clip", "shape=(64,), clip", "D001"),
    ("load = lm.role(warps=range(8, 9))", "load = lm.role(warps=range(8, 10))", "D002"),
    ("sa.tma_gather(A, rows=rows", "sa.rows(2, 126).tma_gather(A, rows=lm.load(TOKEN, coords=(0,), shape=(126,))", "H003"),
    ("col=k * BK", "col=k * BK + 4", "H024"),
])  # fmt: skip
def test_a_gather_that_the_copy_engine_cannot_make_is_refused(old: str, new: str, code: str) -> None:
    text = warp_level()
    assert text.count(old) == 1
    assert code in codes(text.replace(old, new))


def test_boxes_of_a_gather_are_four_rows_of_a_panel() -> None:
    boxes = gather_boxes(ViewLayout(1024, 16, 128, 16, swizzle="128b"), row=4, rows=8)
    assert [(b.extents, b.coords, b.smem, b.bytes) for b in boxes] == [
        ((64, 1), (0, 0), 512, 512), ((64, 1), (0, 4), 1024, 512), ((64, 1), (64, 0), 2560, 512), ((64, 1), (64, 4), 3072, 512)]  # fmt: skip
    for layout, part, why in (
        (ViewLayout(0, 16, 64, 16), {"rows": 6}, "multiple of 4"), (ViewLayout(0, 16, 128, 16, swizzle="128b"), {"cols": 32}, "whole panels"),
        (ViewLayout(0, 16, 64, 16), {"cols": 32}, "not contiguous"), (ViewLayout(0, 16, 264, 16), {}, "wider than a box"), (ViewLayout(64, 16, 64, 16), {}, "multiple of 128"),
        (ViewLayout(0, 16, 4, 16), {}, "multiple of 16"),
    ):  # fmt: skip
        with pytest.raises(LayoutError, match=why):
            gather_boxes(layout, **part)
