"""Which mutants go to silicon: spread over classes and sm_90a schedules, harmful and harmless, with every unmutated schedule as a control."""

from __future__ import annotations

import difflib
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from bench.verify.cases import CASES
from bench.verify.cases.packaged import packaged
from bench.verify.measure import TruthStore, digest
from bench.verify.mutate import VALUES, Mutant, Subject, mutants
from bench.verify.sight import verdict_of
from bench.verify.truth import program_of
from cake_backend.cuda.lower import lower
from cake_ir.fault import FaultError

CONTROL = "control"
UNJUDGED = "unjudged"
"""No simulation has looked at a mutant yet: until one does the verdict is taken for what it will find (`silicon_report` asks one)."""
SHIPPED = ("gemm.hopper_share", "gemm_nn.hopper", "gemm_nn.hopper_share", "tiny_gemm.hopper_send", "tiny_gemm.hopper_few_send")
"""Schedules of the package that the corpus has no like of; with their default tunables."""
MOST_VALUES, MOST_UNKNOWN, MOST_DISAGREEMENTS = 3, 2, 3
STRESSED = frozenset({
    "drop-fence", "drop-async-wait", "weaken-async-wait", "early-release", "drop-sync", "drop-wait", "duplicate", "arrive-kind", "swap-adjacent", "rows-tail",
})  # fmt: skip
"""Classes whose harm depends on timing: silicon shows it only now and then, so more of them are tried."""


@dataclass(frozen=True)
class Pick:
    """A text that goes to silicon: what the simulator found, what the verifier said (`verdict` and its `codes`), and why it was chosen."""

    key: str
    cls: str
    subject: str
    title: str
    text: str
    lines: tuple[int, ...]
    truth: dict[str, Any]
    verdict: str
    codes: tuple[str, ...]
    contract: bool
    why: str

    @property
    def name(self) -> str:
        return self.key.replace("/", ".")

    @property
    def expected(self) -> str:
        """What it is, as far as is known."""
        state = str(self.truth["state"])
        return state if state != UNJUDGED else "harmless" if self.verdict == "pass" else "harmful"

    @property
    def disagrees(self) -> bool:
        return disagreement(self.verdict, self.truth["state"], self.contract)

    def record(self) -> dict[str, Any]:
        """What the report needs of it, the change as a diff."""
        original = CASES[self.subject].text().splitlines()
        diff = [x for x in difflib.unified_diff(original, self.text.splitlines(), n=0, lineterm="") if not x.startswith(("---", "+++"))]
        return {
            "key": self.key, "cls": self.cls, "subject": self.subject, "title": self.title, "lines": list(self.lines), "truth": self.truth,
            "verdict": self.verdict, "codes": list(self.codes), "contract": self.contract, "why": self.why, "diff": diff,
        }  # fmt: skip


def disagreement(verdict: str, state: str, contract: bool) -> bool:
    """Whether the verifier and the simulator say different things about a mutant that a simulation can judge."""
    return not contract and state in ("harmful", "harmless") and (state == "harmless") != (verdict == "pass")


def add_shipped(names: Iterable[str]) -> None:
    """Make those of `names` that are schedules of the package cases of the benchmark; one that the package no longer ships is none."""
    if missing := [n for n in names if n not in CASES]:
        made = packaged()
        CASES.update({n: made[n] for n in missing if n in made})


def hopper_subjects() -> list[str]:
    """Schedules of the corpus for sm_90a."""
    found = []
    for name, case in CASES.items():
        program = program_of(case.text(), case)
        if program is not None and program.target == "sm_90a":
            found.append(name)
    return found


def controls(subjects: Iterable[str]) -> list[Pick]:
    """The unmutated schedules."""
    out = []
    for name in subjects:
        verdict, _ = verdict_of(CASES[name].text(), name)
        codes = tuple(d.code for d in verdict.shown() if d.severity == "error")
        out.append(Pick(f"{name}/{CONTROL}/0", CONTROL, name, "unmutated", CASES[name].text(), (), {"state": "harmless"}, verdict.verdict, codes, False, CONTROL))
    return out


def candidates(subjects: Iterable[str], store: TruthStore, without: frozenset[tuple[str, str]] = frozenset(), only: frozenset[str] | None = None, each: tuple[int, int] = (0, 0)) -> list[Pick]:
    """Every mutant whose ground truth is known and from whose text a program comes; all of a schedule of which no ground truth is known.

    `without` are keys and titles of mutants that are not wanted again, `only` keys of those that are;
    with `each` no more than so many of a class and schedule are looked at, drawn by a seed.
    """
    out = []
    most, seed = each
    rng = random.Random(seed)
    for name in subjects:
        made = list(mutants(Subject(CASES[name])))
        new = not any(digest(m) in store.known for m in made)
        if most:
            rng.shuffle(made)
        seen: Counter[str] = Counter()
        for m in made:
            if (m.key, m.title) in without or (only is not None and m.key not in only):
                continue
            truth = store.known.get(digest(m))
            if truth is None and new and m.truth != "contract":
                truth = {"state": UNJUDGED}
            if truth is None and m.truth == "contract":
                truth = {"state": "unknown", "kind": "contract"}
            if truth is None or truth["state"] == "refused" or program_of(m.text, CASES[name]) is None:
                continue
            seen[m.cls] += 1
            if most and seen[m.cls] > most:
                continue
            verdict, _ = verdict_of(m.text, name)
            codes = tuple(d.code for d in verdict.shown() if d.severity == "error")
            out.append(_pick(m, truth, verdict.verdict, codes))
    return out


def _pick(m: Mutant, truth: dict[str, Any], verdict: str, codes: tuple[str, ...]) -> Pick:
    return Pick(m.key, m.cls, m.subject, m.title, m.text, tuple(sorted(m.lines)), truth, verdict, codes, m.truth == "contract", "sample")


def lowers(p: Pick) -> str:
    """Why the lowering makes nothing of a mutant; empty where it does. What it refuses never reaches silicon."""
    program = program_of(p.text, CASES[p.subject])
    try:
        if program is None:
            return "no program"
        lower(program)
    except FaultError as error:
        return error.fault.message
    except Exception as error:  # it may trust what the verifier refuses
        return f"{type(error).__name__}: {error}"
    return ""


def sample(found: list[Pick], count: int, seed: int = 0, again: frozenset[str] = frozenset(), refused: Callable[[Pick], str] = lambda p: "") -> list[Pick]:
    """Mutants that disagreed before (`again`), disagreements (a few a class), then classes in turn, harmful and harmless in turn.

    Within a class the least used schedule comes first; classes of `STRESSED` have two in a turn. What `refused` gives a reason for is
    left out, and another of its class taken.
    """
    rng = random.Random(seed)
    pool = list(found)
    rng.shuffle(pool)
    chosen: list[Pick] = []
    used: Counter[str] = Counter()
    classes: Counter[str] = Counter()

    def take(p: Pick, why: str) -> bool:
        pool.remove(p)
        if refused(p):
            return False
        used[p.subject] += 1
        classes[p.cls] += 1
        chosen.append(replace(p, why=why))
        return True

    for p in [p for p in pool if p.key in again]:
        if len(chosen) < count:
            take(p, "again")
    for p in [p for p in pool if p.disagrees and p.truth.get("kind") != "numbers"]:  # other numbers alone are no verifier's business
        if classes[p.cls] < MOST_DISAGREEMENTS and len(chosen) < count // 4:
            take(p, "disagreement")
    names, turn = sorted({p.cls for p in pool}), 0
    while len(chosen) < count:
        before = len(chosen)
        rng.shuffle(names)
        for cls in [c for c in names for _ in range(2 if c in STRESSED else 1)]:
            while len(chosen) < count and (p := _next(pool, chosen, cls, turn, used)) is not None and not take(p, "sample"):
                continue
        turn += 1
        if len(chosen) == before:
            break
    return chosen


def _next(pool: list[Pick], chosen: list[Pick], cls: str, turn: int, used: Counter[str]) -> Pick | None:
    """The class's next mutant: every third turn a harmless one where there is one."""
    mine = [p for p in chosen if p.cls == cls]
    if cls in VALUES and len(mine) >= MOST_VALUES:
        return None
    unknown = sum(p.truth["state"] == "unknown" for p in mine)
    free = [p for p in pool if p.cls == cls and (p.truth["state"] != "unknown" or unknown < MOST_UNKNOWN)]
    wanted = "harmless" if turn % 3 == 1 else "harmful"
    ours = Counter(p.subject for p in mine)
    return min(free, key=lambda p: (p.expected != wanted, ours[p.subject], used[p.subject]), default=None)
