"""What a text says does not depend on how it says it: assumptions with numbers on the left or denied, lists that are walked with an eye on what comes next."""

import pytest

from bench.verify.cases import CASES
from cake_ir import parse, specialise
from cake_ir.derive.structure import stated
from cake_verify import verify_text
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.rules.examples import edit

BLOCKS = """
@cake.schedule(target="sm_80")
def rows_of_blocks(lm, q: LM.gmem2d[LM.bf16, "S", "D"], k: LM.gmem2d[LM.bf16, "S", "D"], ptr: LM.gmem1d[LM.i32, "NP"], cols: LM.gmem1d[LM.i32, "NNZ"], top: LM.gmem1d[LM.f32, "S"],
                   S: LM.i32, NP: LM.i32, NNZ: LM.i32, *, D=64, B=64):
    lm.launch(grid="tiles")
    lm.assume(NP == lm.cdiv(S, B) + 1)
    lm.assume_values(ptr, 0, NNZ + 1, sorted=True)
    lm.assume_values(cols, 0, lm.cdiv(S, B))
    pool = lm.smem(2 * B * D * 2)
    kb = pool.view(offset=0, shape=(B, D), dtype=lm.bf16, stage=2, swizzle="128b")
    cta = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    meet = lm.named_barrier(cta)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, B),), names=("m",))
    with cta:
        for t in lm.tiles(sched):
            beg = lm.ld(ptr, t.m)
            end = lm.ld(ptr, t.m + 1)
            s = lm.step(ring)
            if beg < end:
                kb.cp_async(k, coords=(0, lm.ld(cols, beg) * B), stage=s)
            lm.cp_commit()
            w = lm.frag(shape=(B, B), dtype=lm.f32, form="acc")
            qf = lm.load(q, coords=(0, t.m * B), shape=(B, D), form="a", like=w, clip=True)
            best = lm.rowvec(w, init=-lm.inf)
            for i in lm.range(beg, end):
                n = lm.step(ring)
                if i + 1 < end:
                    kb.cp_async(k, coords=(0, lm.ld(cols, i + 1) * B), stage=n)
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(meet)
                lm.mma(w, qf, kb[n.prev()].ldmatrix(form="b"), init=True)
                at = lm.iota(w, 1, base=lm.ld(cols, i) * B)
                w = lm.where(at <= lm.iota(w, 0, base=t.m * B), lm.where(at < S, w, -lm.inf), -lm.inf)
                best = lm.max(best, lm.reduce(w, "max", axis=1))
                lm.sync(meet)
            lm.cp_wait(pending=0)
            lm.store(top, best, coords=(t.m * B,), clip=True)
"""


def test_a_list_whose_next_entry_is_looked_up_divides_no_axis() -> None:
    program = specialise(parse(BLOCKS, "test").schedules[0], {}, None).program
    assert program is not None and prefix_tensors(program) == {"ptr"}
    assert not verify_text(BLOCKS).errors


def test_offsets_are_offsets_wherever_their_difference_is_made() -> None:
    for name, tensor in (("attention_varlen", "CU"), ("segment_mean", "OFFS"), ("gemm_blocksparse", "PTR"), ("attention_token_table", "PTR")):
        case = CASES[name]
        program = specialise(parse(case.text(), name).schedules[0], case.params, case.target).program
        assert program is not None and tensor in prefix_tensors(program)


@pytest.mark.parametrize(("name", "old", "new"), [
    ("attention_varlen", "lm.assume(NS1 == NS + 1)", "lm.assume(not NS1 != NS + 1)"),
    ("attention_varlen", "lm.assume(NS1 == NS + 1)", "lm.assume(NS + 1 == NS1)"),
    ("gemm_deep", "lm.assume(K > 0)", "lm.assume(0 < K)"),
    ("gemm_deep", "lm.assume(K > 0)", "lm.assume(not (K <= 0 or M < 0))"),
])  # fmt: skip
def test_an_assumption_may_be_written_either_way(name: str, old: str, new: str) -> None:
    case = CASES[name]
    assert verify_text(edit(case.text(), (old, new)), params=case.params, target=case.target, outputs=case.outputs()).verdict == "pass"


def test_a_multiple_may_have_its_number_in_front() -> None:
    text = """
@cake.schedule(target="sm_90a")
def scaled(lm, X: LM.gmem2d[LM.f32, "R", "QW"], Y: LM.gmem2d[LM.f32, "R", "KW"], R: LM.i32, QW: LM.i32, KW: LM.i32, HEADS: LM.i32, *, D=64):
    lm.launch(grid="tiles")
    lm.assume(QW == D * HEADS)
    lm.assume(HEADS % 2 == 0 and HEADS > 0)
    lm.assume(2 * KW == QW)
    w = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with w:
        for t in lm.tiles(sched):
            for h in lm.range(HEADS // 2):
                x = lm.load(X, coords=(h * 128, t.r), shape=(64,), form="vec")
                lm.store(Y, x, coords=(h * 64, t.r))
"""
    assert verify_text(text).verdict == "pass"


@pytest.mark.parametrize(("written", "op"), [("not K <= 0", "gt"), ("0 < K", "gt"), ("not (not (K >= 1))", "ge"), ("8 == K", "eq"), ("not K == 0", "ne")])
def test_what_is_stated_are_comparisons_with_their_numbers_on_the_right(written: str, op: str) -> None:
    text = BLOCKS.replace("lm.assume(NP == lm.cdiv(S, B) + 1)", f"lm.assume({written.replace('K', 'S')})")
    program = specialise(parse(text, "test").schedules[0], {}, None).program
    assert program is not None
    (c,) = stated(program.assumes[0].cond)
    assert (c.op, c.args[0].op, c.args[1].op) == (op, "param", "const")


def test_a_running_sum_that_starts_as_an_integer_is_told_how_to_start() -> None:
    wrong = BLOCKS.replace("init=-lm.inf", "init=0")
    found = verify_text(wrong).errors[0]
    assert found.code == "D003" and "`best`" in found.help and "init=0.0" in found.help


ROUNDED = """
@cake.schedule(target="sm_90a")
def total(lm, X: LM.gmem2d[LM.f32, "R", "C"], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32, C: LM.i32, G: LM.i32, *, B=128):
    lm.launch(grid="tiles")
    {assume}
    blocks = C // B
    w = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with w:
        for t in lm.tiles(sched):
            x = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            for b in lm.range(blocks):
                x = x + lm.load(X, coords=(b * B, t.r), shape=(128,), form="vec", like=x)
            {tail}
            lm.store(Y, lm.reduce(x, "add"), coords=(t.r,))
"""
TAIL = "x = x + lm.load(X, coords=(blocks * B, t.r), shape=(128,), form=\"vec\", like=x, clip=True)"


@pytest.mark.parametrize(("assume", "tail", "codes"), [
    ("lm.assume(C > 0)", "pass", ["Q012"]),
    ("lm.assume(C % 128 == 0)", "pass", []),
    ("lm.assume(G * 128 == C)", "pass", []),
    ("lm.assume(128 * G == C)", "pass", []),
    ("lm.assume(C > 0)", TAIL, []),
])  # fmt: skip
def test_what_is_left_behind_the_last_whole_tile_is_read_or_there_is_nothing(assume: str, tail: str, codes: list[str]) -> None:
    assert [d.code for d in verify_text(ROUNDED.format(assume=assume, tail=tail)).errors] == codes
