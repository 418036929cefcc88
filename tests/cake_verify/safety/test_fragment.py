"""The twelve-line fragment, on a target with tensor memory, gets a useful answer."""

import safety_schedules as schedules

FRAGMENT = """
@cake.schedule()
def fmha_fwd(lm, Q: LM.tma3d, O: LM.tma2d, seqlen_q: LM.i32):
    pool = lm.smem(98304)
    smem_q = pool.view(offset=0, shape=(128, 128), dtype=lm.bf16, stage=3)
    tmem_acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    load = lm.role(warps=[0])
    mma = lm.role(warps=[1])
    pipe = lm.pipeline(stages=3)
    q_full = lm.barrier(count=3, prod=[load], cons=[mma], init_count=1, pipeline=pipe)
    with load:
        for stage in lm.range(0, 3):
            smem_q.tma_load(Q, coords=(0, 0, stage), stage=stage, barrier=q_full)
    with mma:
        for stage in lm.range(0, 3):
            lm.wait(q_full, stage=stage)
            lm.fence_proxy()
            lm.mma(tmem_acc, smem_q[stage], smem_q[stage], init=(stage == 0))
"""


def test_result_that_nobody_can_wait_for_is_the_only_safety_fault() -> None:
    result = schedules.verdict(FRAGMENT, target="sm_100a")
    assert [f.code for f in result.faults] == ["S025"]
    fault = result.faults[0]
    assert fault.span.line == schedules.line_of(FRAGMENT, "lm.mma(tmem_acc")
    assert "never committed" in fault.message
    assert not result.undecided


def test_integer_stages_are_counted_and_their_bytes_derived() -> None:
    wrong = FRAGMENT.replace("init_count=1", "init_count=2")
    fault = schedules.first(schedules.verdict(wrong, target="sm_100a"))
    assert fault.code == "S002" and fault.facts["expected"] == 1 and fault.facts["found"] == 2


def test_unfilled_stage_is_seen() -> None:
    wrong = FRAGMENT.replace("for stage in lm.range(0, 3):\n            smem_q", "for stage in lm.range(0, 2):\n            smem_q")
    fault = schedules.first(schedules.verdict(wrong, target="sm_100a"))
    assert fault.code == "S008" and fault.span.line == schedules.line_of(wrong, "lm.wait(q_full")
