"""Slices of shared memory that are written and never read: those left out by mistake, and those that are a choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

LEFT_OUT = [
    ("column_sums", "part.rows(j, 1)", "part.rows(0, 1)", "rows 1..4 of `part`, which members 1, 2, 3 of `add` write", "j"),
    ("column_sums", "sx[s].rows(16 * add.index, 16)", "sx[s].rows(0, 16)", "rows 16..64 of `sx`, which `sx[s].tma_load` brings", "16 * add.index"),
    ("segment_mean", "sx[s].rows(r, 1)", "sx[s].rows(0, 1)", "rows 1..32 of `sx`", "r"),
    ("row_cumsum", "chunk[s].rows(work.index, 1).load", "chunk[s].rows(0, 1).load", "rows 1..4 of `chunk`", "work.index"),
    ("attention_token_table", "now.cols(D, D)", "now.cols(0, D)", "columns 64..128 of `kv`", "64"),
    ("attention_paged_decode", "for w in lm.static_range(4):", "for w in lm.static_range(4 - 1):", "rows 48..64 of `so`, which member 3 of `work` writes", "4"),
    ("layernorm_cluster", "for c in lm.static_range(1, PARTS):", "for c in lm.static_range(1, PARTS - 1):", "rows 3..4 of `inbox`, which CTA 3 of `work` writes", "4"),
]


@pytest.mark.parametrize(("name", "old", "new", "message", "text"), LEFT_OUT, ids=[f"{n}: {new}" for n, _, new, _, _ in LEFT_OUT])
def test_slices_that_nobody_takes_are_told_where_they_are_left_out(name: str, old: str, new: str, message: str, text: str) -> None:
    good = (CORPUS / f"{name}.py").read_text("utf-8")
    assert good.count(old) == 1
    bad = good.replace(old, new)
    (error,) = verify_text(bad, suggest=False).errors
    assert error.code == "S028" and message in error.message and "never read" in error.message
    assert error.span.line == good[: good.index(old)].count("\n") + 1
    assert [e.text for f in error.fixes for e in f.edits] == [text]


def test_the_first_fix_gives_every_member_its_own_rows_back() -> None:
    bad = (CORPUS / "column_sums.py").read_text("utf-8").replace("sx[s].rows(16 * add.index, 16)", "sx[s].rows(0, 16)")
    (error,) = verify_text(bad).errors
    assert verify_text(applied(bad, error.fixes[0].edits)).verdict == "pass"


# ------------------------------------------------------------------ what is a choice

PARTIAL = '''
@cake.schedule(target="sm_90a")
def partial(lm, X: LM.tma2d[LM.f32, "R", "C"], Y: LM.gmem2d[LM.f32, "Q", 128], Q: LM.i32, R: LM.i32, C: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(2 * 4096 + 2048)
    tile = pool.view(offset=0, shape=(8, 128), dtype=lm.f32, stage=2)
    part = pool.view(offset=8192, shape=(4, 128), dtype=lm.f32)
    work = lm.role(warps=range(0, 4), members=4)
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(R, 8),), names=("r",))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            tile.tma_load(X, coords=(0, t.r * 8), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = tile[s].rows(work.index, 1).load(form="vec")
            y = tile[s].rows(work.index + 4, 1).load(form="vec", like=x)
            lm.arrive(empty, stage=s)
            part.rows(work.index, 1).store(x + y)
            lm.sync(meet)
            BODY
            lm.sync(meet)
'''

LEADER = """if work.index == 0:
                total = x + y
                for j in lm.static_range(1, 4):
                    total = total + part.rows(j, 1).load(form="vec", like=x)
                lm.store(Y, total, coords=(0, t.r), clip=True)"""
BEFORE = """base = (x + y) * 0.0
            for j in lm.static_range(3):
                if j < work.index:
                    base = base + part.rows(j, 1).load(form="vec", like=x)
            lm.store(Y, base, coords=(0, t.r * 4 + work.index), clip=True)"""
OF_ONE = """z = part.rows(0, 1).load(form="vec", like=x)
            lm.store(Y, z + x, coords=(0, t.r * 4 + work.index), clip=True)"""


@pytest.mark.parametrize("body", [LEADER, BEFORE, OF_ONE], ids=["the leader has its own part in registers", "sums of the members before", "all take one member's"])
def test_parts_that_their_writer_alone_could_need_may_stay_unread(body: str) -> None:
    verdict = verify_text(PARTIAL.replace("BODY", body))
    assert verdict.verdict == "pass", [d.to_json() for d in verdict.diagnostics]


def test_one_slice_of_a_copy_taken_once_is_a_choice() -> None:
    text = PARTIAL.replace("BODY", LEADER).replace("work.index + 4, 1", "4, 1").replace("tile[s].rows(work.index, 1)", "tile[s].rows(4, 1)")
    once = text.replace("members=4", "members=1").replace("range(0, 4)", "range(0, 1)").replace("range(4, 5)", "range(1, 2)").replace(
        "            part.rows(work.index, 1).store(x + y)\n            lm.sync(meet)\n", "").replace(LEADER, "lm.store(Y, x, coords=(0, t.r), clip=True)").replace(
        "            y = tile[s].rows(4, 1).load(form=\"vec\", like=x)\n", "").replace("            lm.sync(meet)\n", "").replace(
        "    meet = lm.named_barrier(work)\n", "").replace("    part = pool.view(offset=8192, shape=(4, 128), dtype=lm.f32)\n", "")  # fmt: skip
    verdict = verify_text(once)
    assert verdict.verdict == "pass", [d.to_json() for d in verdict.diagnostics]


@pytest.mark.parametrize(("extent", "refused"), [(64, False), (128, True)])
def test_columns_beyond_the_tensor_are_no_loss(extent: int, refused: bool) -> None:
    text = PARTIAL.replace("BODY", LEADER).replace('X: LM.tma2d[LM.f32, "R", "C"]', f'X: LM.tma2d[LM.f32, "R", {extent}]').replace(", C: LM.i32", "")
    text = text.replace('Y: LM.gmem2d[LM.f32, "Q", 128]', 'Y: LM.gmem2d[LM.f32, "Q", 64]').replace("1).load(form", "1).cols(0, 64).load(form")
    text = text.replace("part.rows(j, 1).cols(0, 64)", "part.rows(j, 1)").replace("shape=(4, 128)", "shape=(4, 64)")
    assert [d.code for d in verify_text(text).errors] == (["S028"] if refused else [])
