"""What passed in schedules of somebody who knew the language page only, and is told now; beside it what is right and near to it."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text


def codes(name: str, *changes: tuple[str, str]) -> list[str]:
    text = CASES[name].text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return [d.code for d in verdict_of(text, name)[0].diagnostics if d.severity == "error"]


@pytest.mark.parametrize("name, old, new, code", [
    # the window holds the loop at four rounds, one more than there are slots
    ("swa_sink_paged", "lm.wait(empty, stage=s)", "if j % 2 == 0: lm.wait(empty, stage=s)", "S003"),
    # what the first part reads nobody has written; two parts come where tiles share out the rounds
    ("serial_splitk_sm120", "if t.p > 0:", "if t.p >= 0:", "S042"),
    # an access behind a condition that small arguments do not let run
    ("serial_splitk_sm120", "form=\"acc\", like=acc, clip=True)", "form=\"acc\", like=acc)", "S033"),
    # a sequence that only branches ask about ends inside a tile
    ("cross_varlen_sm120", ", mask=rows < q1", "", "S013"),
    ("cross_varlen_sm120", ", mask=lm.in_bounds(o, q1 - q0, 64)", "", "S013"),
    # a tile of a group's rows
    ("fp8_grouped_rowwise", "form=\"rowvec\", like=x, clip=True)", "form=\"rowvec\", like=x)", "S033"),
    # memory decides about rows, not about columns
    ("beam_gather_kv", "form=\"vec\", clip=True)", "form=\"vec\")", "S033"),
    ("beam_gather_kv", "left > 0", "left > 1", "S013"),
    # the number stands in front of `lm.iota`
    ("ring_attention_step", "lm.iota(acc, 1) < L", "lm.iota(acc, 1) < L + 1", "D010"),
    ("knn_topk_ring", "lm.iota(acc, 1) < N", "lm.iota(acc, 1) <= N", "D010"),
    # another member's rows beside numbers that are read
    ("swa_sink_paged", "rows(64 * math.index, 64), smem_k", "rows(64 * (1 - math.index), 64), smem_k", "Q018"),
    ("swa_sink_paged", "pos = first + 64 * math.index", "pos = first + 64 * (1 - math.index)", "Q018"),
    ("swa_sink_paged", "KC, coords=(0, t.h // group, 0, page)", "KC, coords=(t.h // group, 0, 0, page)", "H024"),
    # one row again and again, under a condition on the round
    ("embedding_bwd_reduce", "buf[s].rows(i, 1)", "buf[s].rows(0, 1)", "S028"),
    ("knn_topk_ring", "smem_q[q].rows(64 * math.index, 64)", "smem_q[q].rows(64 * (1 - math.index), 64)", "Q018"),
    # a number of a table along an axis that it is none of; an argument's worth of elements along a whole axis
    ("csr_spmm", "coords=(t.d * 128, lm.ld(COL, i))", "coords=(lm.ld(COL, i), t.d * 128)", "D035"),
    ("paged16_decode", "lm.load(Q, coords=(0, t.h * group, t.b)", "lm.load(Q, coords=(t.h * group, 0, t.b)", "D035"),
    # tiles that an equation counts; columns beside rows that memory masks
    ("chained_scan", "coords=(t.c * CHUNK, t.r), clip=True)", "coords=(t.c * CHUNK, t.r))", "S033"),
    ("causal_conv_varlen", "row < T and d + lm.iota(like, 1) < D", "row < T and d + lm.iota(like, 1) < D + 1", "S033"),
    # a window's columns
    ("swa_sink_paged", "lm.where(key <= pos and key > pos - WINDOW, acc * (scale * 1.44269504), -lm.inf)", "acc * (scale * 1.44269504)", "D036"),
    ("swa_sink_paged", "key <= pos and", "key <= pos + 1 and", "D045"),
    # weights under a scale a column
    ("int8_kv_decode", "                o = o * fix\n", "", "D041"),
    # a mask or a minimum for a round that the count leaves out
    ("radix_select_keys", "for c in lm.range(lm.cdiv(N, chunk)):\n                    keys", "for c in lm.range(N // chunk):\n                    keys", "Q012"),
    ("splitk_reduce_add", "lm.cdiv(kt, KPART)", "kt // KPART", "Q012"),
])  # fmt: skip
def test_what_passed_is_told(name: str, old: str, new: str, code: str) -> None:
    assert codes(name) == []
    assert set(codes(name, (old, new))) == {code}


@pytest.mark.parametrize("name, changes", [
    ("splitk_reduce_add", (("lm.cdiv(kt, KPART)", "kt // KPART"), ("lm.assume(K > 0)", "lm.assume(K > 0 and lm.cdiv(K, BK) % KPART == 0)"))),
    ("int8_kv_decode", (("shape=(16, 128), dtype=lm.f32, form=\"acc\", init=0.0", "shape=(16, 128), dtype=lm.f32, form=\"acc\", init=1.0"),)),  # cleared by what is less minus infinity
    ("router_topk_fused", (("form=\"acc\", init=0.0", "form=\"acc\", init=1.0"),)),  # all logits are larger by one
])  # fmt: skip
def test_what_does_not_matter_passes(name: str, changes: tuple[tuple[str, str], ...]) -> None:
    assert codes(name, *changes) == []


ROUNDS = '''
@cake.schedule(target="sm_80")
def rows(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(COUNT):
                x = lm.load(X, coords=(i * 128, t.r), shape=(128,), form="vec", mask=i * 128 + lm.iota(total, 0) < N)
                total = total + xTAIL
            lm.store(Y, lm.reduce(total, "add", axis=0), coords=(t.r,))
'''
TAIL = '''
            rest = lm.load(X, coords=(N // 128 * 128, t.r), shape=(128,), form="vec", mask=lm.iota(total, 0) < N % 128)
            total = total + rest'''


def test_a_tail_that_is_looked_after_elsewhere_is_no_end_that_never_comes() -> None:
    assert verify_text(ROUNDS.replace("COUNT", "lm.cdiv(N, 128)").replace("TAIL", "")).verdict == "pass"
    assert verify_text(ROUNDS.replace("COUNT", "N // 128").replace("TAIL", TAIL)).verdict == "pass"
    rounds = ROUNDS[ROUNDS.index("            for i") : ROUNDS.index("            lm.store(Y")].replace("xTAIL", "x")
    twice = rounds.replace("COUNT", "N // 128") + rounds.replace("COUNT", "N // 128, lm.cdiv(N, 128)")
    assert verify_text(ROUNDS.replace(rounds.replace("+ x", "+ xTAIL"), twice)).verdict == "pass"
    assert [d.code for d in verify_text(ROUNDS.replace("COUNT", "N // 128").replace("TAIL", "")).diagnostics] == ["Q012"]


def test_a_row_that_stands_alone_may_be_looked_after_in_the_other_arm() -> None:
    text = CASES["beam_gather_kv"].text().replace("left > 0", "left > 1")
    copied = text[text.index("                source =") :]
    assert "S013" not in [d.code for d in verify_text(text + "            else:\n" + copied).diagnostics]


@pytest.mark.parametrize("name, old, new, code", [
    ("ring_attention_step", "                total = total * fix + lm.reduce(p, \"add\", axis=1)\n", "", "D040"),
    ("lse_merge_parts", "                total = total * old + now\n", "", "D040"),
    ("layernorm_bwd_ring", "db = lm.frag(shape=(D,), dtype=lm.f32, form=\"vec\", like=gamma, init=0.0)", "db = lm.frag(shape=(D,), dtype=lm.f32, form=\"vec\", like=gamma, init=1.0)", "D069"),
])  # fmt: skip
def test_numbers_that_stay_and_numbers_that_every_block_adds_are_told(name: str, old: str, new: str, code: str) -> None:
    assert set(codes(name, (old, new))) == {code}
