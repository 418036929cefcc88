"""A ring without barriers has no phases: the slot before its first is its last one, for the gates, the simulator and the lowering."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_verify import verify_text

TEXT = """
@cake.schedule(target="sm_80")
def copy(lm, X: LM.gmem2d[LM.f32, "R", 128], Y: LM.gmem2d[LM.f32, "R", 128], R: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(R > 0)
    pool = lm.smem(3 * 8 * 512)
    x = pool.view(offset=0, shape=(8, 128), dtype=lm.f32, stage=3)
    work = lm.role(warps=range(0, 2))
    ring = lm.pipeline(stages=3)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            for i in lm.static_range(2):
                x.cp_async(X, coords=(0, i * 8), stage=i)
                lm.cp_commit()
            for k in lm.range(lm.cdiv(R, 8)):
                s = lm.step(ring)
                lm.cp_wait(pending=1)
                lm.sync(meet)
                x.cp_async(X, coords=(0, (k + 2) * 8), stage=s.prev())
                lm.cp_commit()
                lm.store(Y, x[s].load(form="vec"), coords=(0, k * 8), clip=True)
            lm.cp_wait(pending=0)
"""
UNROLLED = TEXT.replace("for k in lm.range(lm.cdiv(R, 8)):", "for k in lm.static_range(5):").replace('"R"', "40")


def errors(text: str) -> list[Any]:
    return [d for d in verify_text(text).shown() if d.severity == "error"]


@pytest.mark.parametrize("text", [TEXT, UNROLLED])
def test_the_refill_of_the_slot_read_last_is_taken_and_right(text: str, tmp_path: Path) -> None:
    assert verify_text(text).verdict == "pass"
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    x = np.random.default_rng(0).standard_normal((40, 128)).astype(np.float32)
    tensors = {"X": x, "Y": np.full_like(x, np.nan)}
    for policy in ("canonical", "late"):
        run = simulate(program, tensors, {"R": 40}, policy=policy)
        assert run.ok and np.array_equal(run.outputs["Y"], x)
    assert "4294967295" not in (cuda := lower(program).text) and "- 1u) % 3u" not in cuda


def test_a_copy_into_the_slot_that_is_read_next_is_seen_where_it_is_made() -> None:
    (found,) = errors(TEXT.replace("stage=s.prev())", "stage=s)"))
    assert found.code == "S004" and "behind the last `lm.cp_wait`" in found.message
    assert TEXT.splitlines()[found.span.line - 1].strip().startswith("x.cp_async(X, coords=(0, (k + 2)")
    assert [e.text for e in found.fixes[0].edits] == ["s.prev()"]


def test_a_ring_with_phases_still_has_nothing_before_its_first_slot() -> None:
    text = TEXT.replace("    meet =", '    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="cp_async")\n    meet =')
    assert "Q006" in [d.code for d in errors(text)]


def test_a_number_in_front_of_the_first_slot_is_none() -> None:
    assert errors(TEXT.replace("stage=s.prev())", "stage=-1)"))
