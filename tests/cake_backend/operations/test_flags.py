"""`lm.signal` and `lm.spin`: blocks of one launch that follow each other."""

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, codes, compiles, generated, program, simulated

from cake_backend.simulate import adversaries, simulate
from cake_ir.derive.named_ids import named_ids
from cake_verify.gates import verify_text

CHAIN = """
@cake.schedule(target=("sm_80", "sm_90a"))
def chain(lm, X: LM.gmem2d[LM.f32, "G", 512], Y: LM.gmem2d[LM.f32, "G", 512], FLAGS: LM.gmem1d[LM.i32, "G"].zeroed, G: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.g), shape=(512,))
            if t.g > 0:
                lm.spin(FLAGS, t.g - 1, 1)
                x = x + lm.load(Y, coords=(0, t.g - 1), shape=(512,))
            lm.store(Y, x, coords=(0, t.g))
            lm.signal(FLAGS, t.g, 1)
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_block_sees_what_the_one_before_it_wrote(tmp_path: Path, target: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (6, 512)).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros_like(x), "FLAGS": np.zeros(6, np.int32)}
    text = compiles(CHAIN, target)
    assert "st.release.gpu" in text and "ld.acquire.gpu" in text
    got = simulated(CHAIN, tensors, {"G": 6}, target=target, ctas=3, every=True)
    agree(got, generated(CHAIN, tensors, {"G": 6}, tmp_path, target=target))
    assert (got["Y"] == x.cumsum(0)).all() and (got["FLAGS"] == 1).all()


def test_the_gates_follow_flags() -> None:
    assert verify_text(CHAIN).verdict == "pass"
    assert codes(CHAIN.replace("                lm.spin(FLAGS, t.g - 1, 1)\n", "")) == {"S039"}


def test_without_the_wait_some_order_gives_another_answer() -> None:
    text = CHAIN.replace("                lm.spin(FLAGS, t.g - 1, 1)\n", "")
    x = np.ones((6, 512), np.float32)
    p = program(text)
    found = set()
    for policy in adversaries(p):
        r = simulate(p, {"X": x, "Y": np.zeros_like(x), "FLAGS": np.zeros(6, np.int32)}, {"G": 6}, ctas=3, policy=policy)
        found.add(r.outputs["Y"].tobytes())
    assert len(found) > 1


def test_a_flag_that_nobody_raises_is_a_deadlock() -> None:
    p = program(CHAIN.replace("lm.signal(FLAGS, t.g, 1)", "lm.signal(FLAGS, t.g, 0)"))
    x = np.ones((6, 512), np.float32)
    r = simulate(p, {"X": x, "Y": np.zeros_like(x), "FLAGS": np.zeros(6, np.int32)}, {"G": 6}, ctas=3)
    assert not r.ok and "FLAGS" in r.faults[0].message + " ".join(r.faults[0].trace)


def test_the_meeting_in_front_of_a_signal_has_a_hardware_id() -> None:
    (only,) = named_ids(program(CHAIN))
    assert (only.kind, only.first, only.threads) == ("member", 1, 128)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('FLAGS: LM.gmem1d[LM.i32, "G"].zeroed', 'FLAGS: LM.gmem1d[LM.f32, "G"].zeroed', "D003"),
        ('.zeroed', "", "Q010"),
        ("lm.signal(FLAGS, t.g, 1)", "lm.signal(FLAGS, t.g, 1.5)", "D003"),
    ],
)
def test_wrong_flags_are_refused(old: str, new: str, code: str) -> None:
    assert code in codes(CHAIN.replace(old, new))
