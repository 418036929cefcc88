"""Where the CTAs of a cluster meet: roles that send wait for their peers, others start at once, and who has waited for all that was sent may leave."""

from __future__ import annotations

import pytest
from corpus import program
from corpus_runs import TEXTS

from cake_backend.cuda.lower import lower
from cake_ir.derive.cluster_meetings import senders

SHARE = TEXTS["gemm_fp8", "hopper_share"]
ROLE = "  } else {"  # the last role: the one that sends
SYNC = "cluster_sync();"


def test_only_the_role_that_sends_waits_for_the_cluster_at_its_start() -> None:
    one = program(SHARE, {"STAGES": 3})
    assert senders(one) == {"math"}
    text = lower(one, source=SHARE).text
    body = text[text.index('extern "C"') :]
    assert body.index("fence_mbarrier_init();") < body.index("cluster_arrive();") < body.index("__syncthreads();") < body.index("tma_load_2d(")
    loads, math = body.split(ROLE, 1)
    assert loads.count("cluster_wait();") == 2 and loads.rindex("__syncwarp();") < loads.rindex("cluster_wait();")  # at the end of both load roles
    assert math.count("cluster_wait();") == 1 and math.index("cluster_wait();") < math.index("mbarrier_wait(") < math.index("send_64(")
    assert SYNC not in body  # and nobody meets at the end


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            lm.fence_proxy()\n            lm.sync(own)\n", "            lm.fence_proxy()\n            lm.cluster_sync()\n"),
        ('cons=[load_b, load_a], arrive="warp", primed=True)', 'cons=[load_b, load_a], arrive="warp", primed=True, scope="cluster")'),
    ],
    ids=["a meeting of the author's", "arrivals at peers"],
)
def test_all_threads_meet_at_both_ends_where_a_peer_is_reached_otherwise(old: str, new: str) -> None:
    assert old in SHARE
    text = SHARE.replace(old, new)
    one = program(text, {"STAGES": 3})
    assert not senders(one)
    body = lower(one, source=text).text.partition('extern "C"')[2]
    assert body.index("fence_mbarrier_init();") < body.index(SYNC) < body.index("tma_load_2d(") and body.rstrip().endswith(SYNC + "\n}")


def test_a_multicast_keeps_the_meetings() -> None:
    assert not senders(program(TEXTS["gemm_fp8", "hopper_turns"], {"CLUSTER": 2}))


@pytest.mark.parametrize(("axis", "rank"), [("k", "% 2"), ("m", "/ 2"), ("x", "% 2"), ("y", "/ 2")])
def test_ranks_along_an_axis_are_those_of_the_scheduler_s_axis_of_that_name(axis: str, rank: str) -> None:
    """The scheduler's first axis is the cluster's, whatever it is called: here `m` is the second one."""
    text = TEXTS["gemm", "hopper_share"].replace("cluster=(2, 1)", "cluster=(2, 2)").replace("lm.cta_rank() == 0", f'lm.cta_rank("{axis}") == 0')
    assert f"if ((int)cluster_rank() {rank} == 0) {{" in lower(program(text), source=text).text
