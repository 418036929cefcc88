"""Mutants are what they say: one change, at the lines named, each text once; and ground truth tells wrong ones from equivalent ones."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.generate_copies import Copies
from bench.verify.generate_copies import case as copies_case
from bench.verify.mutate import IMPOSSIBLE, VALUES, Mutant, Subject, mutants
from bench.verify.truth import judge, program_of
from cake_backend.simulate import simulate
from cake_verify import verify_text

SAMPLE = ("gemm_multicast_m", "gated_linear_attention", "cp_async_single_sync", "tcgen05_gemm", "add_rmsnorm", "attention_varlen", "kmeans_resident_norms",
          "gemm_resident_b", "softmax_two_pass", "gemm_pingpong")  # fmt: skip


def all_of(name: str) -> list[Mutant]:
    return mutants(Subject(CASES[name]))


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_differs_from_its_subject_only_at_the_lines_it_names(name: str) -> None:
    original = CASES[name].text().split("\n")
    for m in all_of(name):
        changed = m.text.split("\n")
        grown = len(changed) - len(original)
        assert 0 <= grown <= 4, m.key
        first = min(m.lines)
        assert changed[: first - 1] == original[: first - 1], m.key
        last = max(m.lines)
        assert changed[last + grown :] == original[last:], m.key
        assert m.lines <= m.near, m.key


@pytest.mark.parametrize("name", SAMPLE)
def test_no_two_mutants_of_a_schedule_are_one_text(name: str) -> None:
    texts = [m.text for m in all_of(name)] + [CASES[name].text()]
    assert len(set(texts)) == len(texts)


def test_the_sample_alone_populates_forty_classes() -> None:
    classes = {m.cls for name in SAMPLE for m in all_of(name)}
    assert len(classes) >= 40
    assert len(classes - VALUES) >= 35


def test_what_the_language_cannot_say_is_listed_with_its_reason() -> None:
    assert len(IMPOSSIBLE) >= 15
    assert all(reason for reason in IMPOSSIBLE.values())


def mutant(name: str, cls: str, title: str) -> Mutant:
    return next(m for m in all_of(name) if m.cls == cls and title in m.title)


@pytest.mark.parametrize(
    ("name", "cls", "title", "kind"),
    [
        ("cp_async_single_sync", "drop-sync", "lm.sync(cta)", "X004"),
        ("gemm_resident_b", "drop-arrive", "lm.arrive(empty, stage=s)", "X001"),
        ("add_rmsnorm", "drop-output", "lm.store(R2", "numbers"),
        ("fa4_two_tiles", "trip-mismatch", "D // 32 + 1 rounds", "X006"),  # columns behind those of a region are another's
    ],
)
def test_a_wrong_mutant_is_harmful_and_says_how(name: str, cls: str, title: str, kind: str) -> None:
    truth = judge(mutant(name, cls, title).text, name)
    assert truth.state == "harmful"
    assert truth.kind == kind or (kind == "X004" and truth.kind == "numbers")  # a race shows as a fault of the machine or as wrong numbers


def test_an_equivalent_mutant_is_harmless() -> None:
    truth = judge(mutant("add_rmsnorm", "swap-adjacent", "hf = lm.cast(h, lm.f32) before").text, "add_rmsnorm", most=4)
    assert truth.state == "harmless"
    assert truth.runs >= 4


def test_copies_of_a_whole_view_and_of_half_of_it_are_told_apart() -> None:
    shape = Copies(order="single", stages=3, ahead=1, spread=(4, 1))
    c = copies_case(shape)
    half = c.text().replace("                    sa.cp_async(A, coords=((k + 1) * 32, t.m * 64), stage=w)", "                    sa[w].rows(0, 32).cp_async(A, coords=((k + 1) * 32, t.m * 64), stage=w)\n"
                            "                    sa[w].rows(32, 32).cp_async(A, coords=((k + 1) * 32, t.m * 64 + 32), stage=w)")  # fmt: skip
    assert half != c.text()
    program = program_of(half, c)
    assert program is not None
    filled = c.arguments(0)
    run = simulate(program, filled.tensors, filled.scalars)
    assert run.ok and c.wrong(run.outputs, filled) == ""


def test_the_same_product_once_more_is_no_error() -> None:
    m = mutant("kmeans_resident_norms", "duplicate-product", "lm.mma(acc, mine, sc[s], init=True) twice")
    case = CASES[m.subject]
    assert verify_text(m.text, params=case.params, target=case.target).verdict == "pass"


def test_a_meeting_between_a_store_and_ldmatrix_is_one_of_lanes_too() -> None:
    lines = [n for n, line in enumerate(CASES["awq_split_k"].text().split("\n"), 1) if "lm.sync(meet)" in line]
    by_line = {n: {m.truth for m in all_of("awq_split_k") if m.cls in ("drop-sync", "outside-loop") and n in m.lines and "sync(meet)" in m.title} for n in lines}
    assert [by_line[n] for n in lines] == [{"simulation"}, {"lanes"}]  # in front of the first stands a wait for copies, of the second a store of registers
