"""Verifier against simulator on generated pipelines: `python -m bench.verify.agree --minutes 10 --seed 5` from the repository's root.

Draws pipelines that are correct by construction (`generate*.py`), good ones and ones with one or two mistakes. A good one must verify and
simulate clean and right; a mistake that some interleaving shows must be an error, and an error of the safety gate must show in some
interleaving when one looks harder. What disagrees is written down with its text.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench.verify import generate, generate_branches, generate_copies, generate_lengths, generate_scales, generate_tensor_memory
from bench.verify.cases import Case
from bench.verify.mutate import MAKERS, VALUES, Mutant, Subject
from bench.verify.truth import program_of
from cake_backend.simulate import adversaries, simulate
from cake_ir.program import Program
from cake_verify import Verdict, verify_text

CLAIMS = ("N", "H", "D", "Q", "S010", "S018", "S028", "S031", "S035", "S036")
"""Codes, or their first letters, that object to what a text states whether or not a run suffers (S010: who meets at a barrier)."""

CRASH = "the simulator ended with"


def _pipeline(r: random.Random) -> Case | None:
    s = generate.Shape(
        r.choice(["wgmma", "wgmma", "mma_sync"]), r.randint(1, 4), r.randint(0, 2), r.randint(1, 2), r.choice(["warp", "member", "thread"]), r.random() < 0.5,
        r.choice(["direct", "staged", "aliased"]), r.randint(1, 3), r.random() < 0.5, r.random() < 0.3, r.random() < 0.3, r.choice([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)]),
    )  # fmt: skip
    return generate.case(s) if s.sound else None


def _copies(r: random.Random) -> Case | None:
    s = generate_copies.Copies(
        r.choice(["single", "double", "barriers"]), r.randint(1, 4), r.randint(1, 4), r.choice([32, 64]), r.choice([(2, 2), (4, 1), (1, 4)]), r.randint(1, 4),
        r.choice(["warp", "member", "thread"]), r.random() < 0.5, r.random() < 0.5,
    )  # fmt: skip
    return generate_copies.case(s) if s.sound else None


def _accumulators(r: random.Random) -> Case | None:
    s = generate_tensor_memory.Accumulators(
        r.randint(1, 4), r.randint(1, 3), r.randint(1, 2), r.randint(0, 2), r.choice(["warp", "member", "thread"]), r.random() < 0.6, r.random() < 0.5, r.choice(["sm_100a", "sm_103a"]),
        r.choice([0, 0, 1, 1, 2]),
    )  # fmt: skip
    return generate_tensor_memory.case(s) if s.sound else None


def _lengths(r: random.Random) -> Case | None:
    s = generate_lengths.Lengths(r.randint(1, 4), r.randint(0, 2), r.randint(1, 2), r.choice(["warp", "member", "thread"]), r.randint(1, 3), r.random() < 0.5, r.random() < 0.5)
    return generate_lengths.case(s) if s.sound else None


def _branches(r: random.Random) -> Case | None:
    s = generate_branches.Branches(
        r.randint(1, 4), r.randint(1, 2), r.choice(["warp", "member", "thread"]), r.random() < 0.6, r.random() < 0.5, r.choice([0, 0, 1, 2, 3]), r.random() < 0.5, r.random() < 0.7,
    )  # fmt: skip
    return generate_branches.case(s) if s.sound else None


def _scales(r: random.Random) -> Case | None:
    s = generate_scales.Scaled(
        r.choice(["mxf8", "mxf8", "mxf4", "nvf4"]), r.randint(1, 3), r.randint(1, 2), r.choice(["slot", "word", "instruction"]), r.random() < 0.3, r.randint(1, 2), r.random() < 0.3, r.random() < 0.3,
        r.random() < 0.3, r.choice(["sm_100a", "sm_103a"]),
    )  # fmt: skip
    return generate_scales.case(s) if s.sound else None


FAMILIES: dict[str, Callable[[random.Random], Case | None]] = {"pipelines": _pipeline, "copies": _copies, "accumulators": _accumulators, "lengths": _lengths, "branches": _branches,
                                                                    "scales": _scales}  # fmt: skip


def drawn(family: str, r: random.Random) -> Case:
    """A case of a family whose choices fit together."""
    while True:
        c = FAMILIES[family](r)
        if c is not None:
            return c


def broken(c: Case, r: random.Random) -> Mutant | None:
    """The case's text with one mistake, or with two; None where no mistake can be made."""
    subject = Subject(c)
    r.choice(MAKERS).make(subject)
    found = [m for m in subject.made if m.cls not in VALUES and m.truth == "simulation"]
    if not found:
        return None
    first = r.choice(found)
    if r.random() < 0.8 or program_of(first.text, c) is None:
        return first
    again = Subject(c, first.text)
    r.choice(MAKERS).make(again)
    seconds = [m for m in again.made if m.cls not in VALUES and m.truth == "simulation" and m.text != c.text()]
    return r.choice(seconds) if seconds else first


def verdict_on(text: str, c: Case) -> Verdict:
    return verify_text(text, filename="generated.py", target=c.target)


def objections(c: Case, program: Program, names: list[str], seeds: tuple[int, ...] = (0,)) -> str:
    """What goes wrong in simulations of a program under the given policies; empty if nothing does."""
    for setting in range(len(c.settings)):
        filled = c.arguments(setting)
        for policy in names:
            for seed in seeds:
                try:
                    run = simulate(program, filled.tensors, filled.scalars, ctas=c.grid(setting), policy=policy, seed=seed, limit=40_000)
                except Exception as error:  # a simulator that cannot go on has found something too, or is at fault itself
                    return f"{policy}, setting {setting}: {CRASH} {type(error).__name__}: {error}"
                if run.faults:
                    return f"{policy}, setting {setting}: {run.faults[0].code} {run.faults[0].message}"
                wrong = c.wrong(run.outputs, filled)
                if wrong:
                    return f"{policy}, setting {setting}: {wrong}"
    return ""


def good_disagrees(c: Case) -> str:
    """Why a pipeline that is right is not accepted, or not right; empty if all is well."""
    verdict = verdict_on(c.text(), c)
    if verdict.verdict != "pass":
        return f"a good pipeline: {verdict.verdict}: {verdict.to_text()}"
    program = program_of(c.text(), c)
    return objections(c, program, ["canonical", "late", "uniform"]) if program is not None else "no program"


def broken_disagrees(c: Case, m: Mutant) -> str:
    """Where verifier and simulator disagree about a text with a mistake; empty if they do not."""
    program = program_of(m.text, c)
    if program is None:
        return ""
    verdict = verdict_on(m.text, c)
    names = [p.name for p in adversaries(program)]
    wrong = objections(c, program, names)
    if wrong:
        return "" if verdict.verdict == "fail" and CRASH not in wrong else f"missed ({verdict.verdict}): {m.key} {m.title}: {wrong}"
    if verdict.errors and not all(e.code.startswith(CLAIMS) for e in verdict.errors) and not objections(c, program, names, seeds=(1, 2, 3)):
        return f"flagged, nothing found: {m.key} {m.title}: {verdict.to_text()}"
    return ""


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m bench.verify.agree", description=__doc__)
    p.add_argument("--minutes", type=float, default=5)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    p.add_argument("--good", type=float, default=0.3, help="share of texts without a mistake")
    p.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()) / "cake-verify-agree", help="where texts that they disagree on go")
    a = p.parse_args(sys.argv[1:] if argv is None else argv)
    a.found.mkdir(parents=True, exist_ok=True)
    end, n, counts, bad = time.monotonic() + 60 * a.minutes, 0, Counter[str](), 0
    while time.monotonic() < end:
        r = random.Random(f"{a.seed}/{n}")
        family = r.choice(a.families)
        c = drawn(family, r)
        mutant = None if r.random() < a.good else broken(c, r)
        counts[f"{family}, {'good' if mutant is None else 'broken'}"] += 1
        why = good_disagrees(c) if mutant is None else broken_disagrees(c, mutant)
        if why:
            bad += 1
            path = a.found / f"{a.seed}-{n}.py"
            path.write_text(c.text() if mutant is None else mutant.text, "utf-8")
            print(f"{path}: {getattr(c, 'shape', '')}: {why}", flush=True)
        n += 1
    print(f"{n} texts, {bad} disagreements (seed {a.seed}): {dict(sorted(counts.items()))}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
