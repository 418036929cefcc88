"""Copies from shared to tensor memory: in order with their thread's products, complete for everybody else when a commit has arrived."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower
from cake_backend.simulate import adversaries, simulate
from cake_ir.frontend import parse, specialise
from cake_ir.program import Program
from cake_verify.gates import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

OPERAND = '''
@cake.schedule(target="sm_100a")
def f(lm, A: LM.tma2d[LM.bf16, 128, 128], B: LM.tma2d[LM.bf16, 64, 128], O: LM.gmem2d[LM.f32, 128, 64]):
    pool = lm.smem(24576)
    sa = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    sb = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=64, shape=(128, 64), dtype=lm.f32)
    ta = lm.tmem(cols=64, width=32, shape=(128, 64), dtype=lm.bf16)
    out = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=1)
    one = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    free = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    done = lm.barrier(pipeline=one, prod=[mma], cons=[out], arrive="mma")
    with load:
        for k in lm.range(2):
            s = lm.step(ring)
            lm.wait(free, stage=s)
            sa.tma_load(A, coords=(64 * k, 0), stage=s, barrier=full)
            sb.tma_load(B, coords=(64 * k, 0), stage=s, barrier=full)
    with mma:
        for k in lm.range(2):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.tmem_copy(ta, sa)
            lm.mma(acc, ta, sb, init=k == 0)
            lm.commit(free, stage=s)
        d = lm.step(one)
        lm.commit(done, stage=d)
    with out:
        d = lm.step(one)
        lm.wait(done, stage=d)
        o = lm.tmem_load(acc)
        lm.tmem_wait("ld")
        lm.store(O, o, coords=(0, 0))
'''
"""A goes through tensor memory: each tile is copied over the one that the product before read."""

BACK = '''
@cake.schedule(target="sm_100a")
def f(lm, A: LM.gmem2d[LM.f32, 128, 32], O: LM.gmem2d[LM.f32, 128, 32]):
    pool = lm.smem(16384)
    sa = pool.view(offset=0, shape=(128, 32), dtype=lm.f32, swizzle="128b")
    ta = lm.tmem(cols=0, width=32, shape=(128, 32), dtype=lm.f32)
    rows = lm.role(warps=range(0, 4))
    copy = lm.role(warps=[4])
    one = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=one, prod=[rows], cons=[copy], arrive="warp")
    done = lm.barrier(pipeline=one, prod=[copy], cons=[rows], arrive="mma")
    with rows:
        s = lm.step(one)
        x = lm.load(A, coords=(0, 0), shape=(128, 32), form="rows")
        sa.store(x)
        lm.fence_proxy()
        lm.arrive(full, stage=s)
        lm.wait(done, stage=s)
        o = lm.tmem_load(ta)
        lm.tmem_wait("ld")
        lm.store(O, o, coords=(0, 0))
    with copy:
        s = lm.step(one)
        lm.wait(full, stage=s)
        lm.tmem_copy(ta, sa)
        lm.commit(done, stage=s)
'''
"""Ordinary stores, a copy, and what it brought read back."""

HANDED = OPERAND.replace("    ring = lm.pipeline", "    copy = lm.role(warps=[6])\n    ring = lm.pipeline")
for _old, _new in [
    ('full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")', 'full = lm.barrier(pipeline=ring, prod=[load], cons=[mma, copy], arrive="tx")\n'
     '    have = lm.barrier(pipeline=ring, prod=[copy], cons=[mma], arrive="mma")'),
    ("cons=[load], arrive=", "cons=[load, copy], arrive="),
    ("            lm.tmem_copy(ta, sa)\n", "            lm.wait(have, stage=s)\n"),
    ("    with out:\n", "    with copy:\n        for k in lm.range(2):\n            s = lm.step(ring)\n            lm.wait(free, stage=s)\n            lm.wait(full, stage=s)\n"
     "            lm.tmem_copy(ta, sa)\n            lm.commit(have, stage=s)\n    with out:\n"),
]:  # fmt: skip
    assert HANDED.count(_old) == 1
    HANDED = HANDED.replace(_old, _new)
"""One thread copies, another multiplies: what it copied is committed, and so are the products that read it."""

TWO_SLOTS = HANDED.replace("smem(24576)", "smem(49152)").replace("offset=16384", "offset=32768").replace('swizzle="128b"', 'stage=2, swizzle="128b"')
TWO_SLOTS = TWO_SLOTS.replace("ring = lm.pipeline(stages=1)", "ring = lm.pipeline(stages=2)").replace("(ta, sa)", "(ta, sa[s])").replace("(acc, ta, sb,", "(acc, ta, sb[s],")
"""The ring has two slots, the operand in tensor memory one place."""

QUARTERS = BACK.replace("A: LM.gmem2d[LM.f32, 128, 32], O: LM.gmem2d[LM.f32, 128, 32]", "A: LM.tma2d[LM.f32, 32, 32], O: LM.gmem2d[LM.f32, 128, 32]")
QUARTERS = QUARTERS.replace("shape=(128, 32), dtype=lm.f32, swizzle", "shape=(32, 32), dtype=lm.f32, swizzle")
QUARTERS = QUARTERS.replace('''        x = lm.load(A, coords=(0, 0), shape=(128, 32), form="rows")
        sa.store(x)
        lm.fence_proxy()
        lm.arrive(full, stage=s)
''', "").replace('prod=[rows], cons=[copy], arrive="warp"', 'prod=[copy], cons=[copy], arrive="tx"').replace(
    "        lm.wait(full, stage=s)\n", "        sa.tma_load(A, coords=(0, 0), stage=s, barrier=full)\n        lm.wait(full, stage=s)\n")  # fmt: skip
"""32 rows, to each quarter of the lanes."""

BROKEN = [
    ("the source is filled again before the copy has read it", OPERAND, (("            lm.wait(free, stage=s)\n", ""),), "S003"),
    ("the source is handed back without a commit", OPERAND, (('cons=[load], arrive="mma"', 'cons=[load], arrive="warp"'), ("lm.commit(free, stage=s)", "lm.arrive(free, stage=s)")), "S003"),
    ("the source is not waited for", OPERAND, (("            lm.wait(full, stage=s)\n", ""),), "S004"),
    ("the columns are a product's result in flight", OPERAND, (("            lm.mma(acc, ta, sb, init=k == 0)\n", "            lm.mma(acc, ta, sb, init=k == 0)\n            lm.tmem_copy(aside, sa)\n"), ("    out = lm.role", "    aside = lm.tmem(cols=0, width=32, shape=(128, 64), dtype=lm.bf16)\n    out = lm.role")), "S007"),
    ("another thread's copy is not waited for", HANDED, (("            lm.wait(have, stage=s)\n", ""),), "S027"),
    ("another thread copies over an operand that is being read", TWO_SLOTS, (), "S004"),
    ("ordinary writes are not fenced", BACK, (("        lm.fence_proxy()\n", ""),), "S006"),
    ("the source is written again before the commit has arrived", BACK, (("        lm.wait(done, stage=s)\n", "        sa.store(x * 2.0)\n        lm.wait(done, stage=s)\n"),), "S004"),
    ("what was copied is read without waiting", BACK, (("        lm.wait(done, stage=s)\n", ""),), "S027"),
    ("the copy is never committed", BACK, (("        lm.commit(done, stage=s)\n", ""),), "S008"),
    ("the commit comes before the copy", BACK, (("        lm.tmem_copy(ta, sa)\n        lm.commit(done, stage=s)\n", "        lm.commit(done, stage=s)\n        lm.tmem_copy(ta, sa)\n"),), "S004"),
]  # fmt: skip


def program(text: str) -> Program:
    found = specialise(parse(text, "t").schedules[0], {}, "sm_100a").program
    assert found is not None
    return found


def edited(text: str, edits: tuple[tuple[str, str], ...]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def wrong(text: str) -> bool:
    """Whether some interleaving gives a fault or other numbers."""
    rng = np.random.default_rng(0)
    if "B:" in text:
        a, b = (rng.integers(-3, 4, shape).astype(ml_dtypes.bfloat16) for shape in ((128, 128), (64, 128)))
        given, want = {"A": a, "B": b}, a.astype(np.float64) @ b.astype(np.float64).T
    else:
        a = rng.integers(-3, 4, (32 if "32, 32], O" in text else 128, 32)).astype(np.float32)
        given, want = {"A": a}, np.tile(a, (128 // len(a), 1))
    p = program(text)
    for policy in adversaries(p):
        for seed in (0, 1):
            r = simulate(p, {**given, "O": np.zeros(want.shape, np.float32)}, {}, policy=policy, seed=seed)
            if not r.ok or not np.array_equal(r.outputs["O"], want):
                return True
    return False


@pytest.mark.parametrize("text", [OPERAND, HANDED, BACK, QUARTERS], ids=["operand", "handed over", "read back", "to each quarter"])
def test_what_is_copied_and_committed_in_order_passes_both(text: str) -> None:
    assert verify_text(text).verdict == "pass"
    assert not wrong(text)


@pytest.mark.parametrize(("text", "edits", "code"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_what_is_not_is_refused_and_shown(text: str, edits: tuple[tuple[str, str], ...], code: str) -> None:
    text = edited(text, edits)
    assert [d.code for d in verify_text(text, suggest=False).errors] == [code]
    assert wrong(text)


def test_a_copy_behind_the_last_commit_is_named_as_one() -> None:
    text = edited(OPERAND, (("        lm.commit(done, stage=d)\n", "        lm.commit(done, stage=d)\n        lm.tmem_copy(ta, sa)\n"),))
    (error,) = verify_text(text, suggest=False).errors
    assert error.code == "S025" and "issues copies to tensor memory whose result is never committed" in error.message


@pytest.mark.parametrize(("text", "edits", "code", "said"), [
    (OPERAND, (("lm.tmem_copy(ta, sa)", "lm.tmem_copy(ta.cols(0, 32), sa)"),), "D001", "fills 32 columns of `ta` with 64 of `sa`"),
    (OPERAND, (("lm.tmem_copy(ta, sa)", "lm.tmem_copy(ta, sb)"),), "D001", "this part of `sb` has 64"),
    (BACK, (("ta = lm.tmem(cols=0, width=32, shape=(128, 32), dtype=lm.f32)", "ta = lm.tmem(cols=0, width=32, shape=(128, 32), dtype=lm.i32)"), ("O: LM.gmem2d[LM.f32", "O: LM.gmem2d[LM.i32")), "D003",
     "`ta` is i32, `sa` is f32"),
    (BACK, (('dtype=lm.f32, swizzle="128b"', "dtype=lm.f32"),), "D016", "`sa` cannot be copied to tensor memory"),
])  # fmt: skip
def test_what_the_copy_cannot_take_is_refused(text: str, edits: tuple[tuple[str, str], ...], code: str, said: str) -> None:
    (error,) = verify_text(edited(text, edits), suggest=False).errors
    assert error.code == code and said in error.message


PAIR = (CORPUS / "tcgen05_nvf4_pair_gemm.py").read_text("utf-8")


def test_beside_products_of_a_pair_one_copy_is_of_both_blocks() -> None:
    assert verify_text(PAIR).verdict == "pass"
    for old, code, said in (
        ("                lm.wait(full, stage=s)\n", "S004", ""),
        ("                lm.commit(empty, stage=s)\n", "S008", ""),
        ("                    lm.tmem_copy(tb.cols(16 * j, 16), ssb[s].rows(32 * j, 32))\n", "S027", "reads columns of `tb` that nothing has written"),
    ):
        (error,) = verify_text(edited(PAIR, ((old, ""),)), suggest=False).errors
        assert error.code == code and said in error.message


def test_beside_products_of_a_pair_another_role_copies_nothing() -> None:
    errors = verify_text(edited(PAIR, (("            c = lm.tmem_load(", "            lm.tmem_copy(ta.cols(0, 16), ssa[0].rows(0, 32))\n            c = lm.tmem_load("),)), suggest=False).errors
    error = errors[0]
    assert error.code == "H023" and "issued for both CTAs, by the leading one; `epi` runs in each of them" in error.message


def test_a_copy_runs_ahead_of_earlier_products_that_do_not_read_what_it_fills() -> None:
    """Copies are in order with later products, and with the reads of earlier ones; the results of these are written in no order with them."""
    ahead = edited(OPERAND, (("            lm.mma(acc, ta, sb, init=k == 0)\n", "            lm.mma(acc, ta, sb, init=k == 0)\n            lm.tmem_copy(aside, sa)\n"),
                             ("    out = lm.role", "    aside = lm.tmem(cols=32, width=32, shape=(128, 64), dtype=lm.bf16)\n    out = lm.role")))  # fmt: skip
    assert [d.code for d in verify_text(ahead, suggest=False).errors] == ["S007"]
    assert wrong(ahead)


def test_the_lowering_says_that_it_does_not_have_it() -> None:
    with pytest.raises(NotLowered) as refused:
        lower(program(BACK))
    assert refused.value.fault.code == "H091"
