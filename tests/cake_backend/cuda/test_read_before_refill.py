"""Slots that threads read and the copy engine, or a peer, refills are released behind a proxy fence; slots that only the tensor core reads are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_backend.cuda.lower import lower
from cake_ir import parse, specialise
from cake_verify import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"
FENCE = "fence_proxy_async();"


def lines(name: str, *change: str) -> list[str]:
    text = (CORPUS / f"{name}.py").read_text("utf-8")
    if change:
        assert change[0] in text
        text = text.replace(change[0], change[1])
    template = parse(text, name).schedule()
    assert template is not None
    program = specialise(template, {}, "sm_90a").program
    assert program is not None
    body = lower(program).text.partition('extern "C" __global__')[2]
    return [x.partition("//")[0].strip() for x in body.split("\n") if x.partition("//")[0].strip()]


def fences_before_releases(code: list[str]) -> list[bool]:
    """For every arrival on `empty`, whether a fence comes between the last shared load and it."""
    found = []
    for at, line in enumerate(code):
        if "mbarrier_arrive(" in line and "empty" in line:
            load = max((i for i in range(at) if "ldmatrix" in code[i] or "load_shared" in code[i]), default=-1)
            found.append(any(FENCE in x for x in code[load + 1 : at]))
    return found


@pytest.mark.parametrize("name", ["transpose_tiles", "decode_gemm", "segment_mean", "attention_mma_sync"])
def test_loads_are_fenced_before_the_slot_is_released(name: str) -> None:
    found = fences_before_releases(lines(name))
    assert found and all(found)


@pytest.mark.parametrize("name", ["allgather_ring", "gemm_split_send"])
def test_loads_are_fenced_before_a_peer_may_send_again(name: str) -> None:
    code = lines(name)
    (at,) = [i for i, x in enumerate(code) if "mbarrier_arrive_remote(" in x and ("(empty" in x if name == "allgather_ring" else "(read" in x)]
    load = max(i for i in range(at) if "load_shared" in code[i])
    assert FENCE in code[load + 1 : at]


@pytest.mark.parametrize("name", ["gemm_deep", "gemm_split_k", "gemm_pingpong"])
def test_a_slot_that_only_products_read_needs_none(name: str) -> None:
    code = lines(name)
    arrivals = [i for i, x in enumerate(code) if "mbarrier_arrive(" in x]
    assert arrivals and not any(FENCE in x for i in arrivals for x in code[i - 2 : i])


def test_the_authors_own_fence_is_enough() -> None:
    code = lines("transpose_tiles", "            lm.arrive(empty, stage=s)\n", "            lm.fence_proxy()\n            lm.arrive(empty, stage=s)\n")
    (at,) = [i for i, x in enumerate(code) if "mbarrier_arrive(" in x and "empty" in x]
    assert sum(FENCE in x for x in code[at - 4 : at]) == 1


def test_all_threads_fence_before_the_one_that_arrives_is_chosen() -> None:
    code = lines("transpose_tiles")
    (at,) = [i for i, x in enumerate(code) if "mbarrier_arrive(" in x and "empty" in x]
    assert code[at - 2 : at] == [FENCE, "__syncwarp();"] and code[at].startswith("if (lane == 0)")


OWN = '''
@cake.schedule(target="sm_90a")
def doubled(lm, X: LM.tma2d[LM.f32, "M", 32], Y: LM.gmem2d[LM.f32, "M", 32], M: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(32 * 32 * 4)
    tile = pool.view(offset=0, shape=(32, 32), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 32),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.sync(cta)
            tile.tma_load(X, coords=(0, t.m * 32), stage=s, barrier=full)
            lm.wait(full, stage=s)
            x = tile.load(form="vec")
            lm.store(Y, x + x, coords=(0, t.m * 32), clip=True)
'''


def test_a_meeting_releases_to_a_role_that_fetches_for_itself() -> None:
    template = parse(OWN).schedule()
    assert template is not None
    program = specialise(template, {}, "sm_90a").program
    assert program is not None and verify_text(OWN).verdict == "pass"
    code = lower(program).text.partition('extern "C" __global__')[2]
    assert code.count(FENCE) == 1 and code.index(FENCE) < code.index("named_sync<") < code.index("tma_load_2d(")
