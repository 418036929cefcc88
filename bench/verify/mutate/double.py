"""Two mistakes in one schedule: mutants of mutants, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from bench.verify.cases import Case
from bench.verify.mutate import VALUES, mutants
from bench.verify.mutate.subject import Mutant, Subject
from bench.verify.truth import program_of


def doubles(case: Case, count: int, rng: random.Random) -> Iterator[Mutant]:
    """`count` mutants with two changes at different lines; both are of classes that the verifier is to decide."""
    firsts = [m for m in mutants(Subject(case)) if m.cls not in VALUES and m.truth == "simulation"]
    made = 0
    for _ in range(8 * count):
        first = rng.choice(firsts)
        if made == count or program_of(first.text, case) is None:
            continue
        seconds = [m for m in mutants(Subject(case, first.text)) if m.cls not in VALUES and m.truth == "simulation" and not m.lines & first.near]
        if not seconds:
            continue
        second = rng.choice(seconds)
        if second.text == case.text():
            continue
        yield replace(
            second, cls="double", number=made, title=f"{first.title}; {second.title}", lines=second.lines | first.lines, near=second.near | first.near,
            roles=second.roles | first.roles,
        )  # fmt: skip
        made += 1
