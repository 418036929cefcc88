"""Proposed checks: their trial, their review, and their application once a person has approved them.

Approved rules are files in the workspace's `rules/`: they are reviewed, versioned and shared like code. The store keeps proposals, reports
and decisions.
"""

import json
import re
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cake_verify import distilled
from cake_verify.distilled import Check, CheckError
from cake_verify.sandbox import RuleError

from ..store import Candidate, Rule
from ..workspace import Workspace
from . import corpus, programs
from .misuse import Misuse, unknown

MEDIAN_BUDGET_MS = 5.0
MAX_EVIDENCE = 20


def check_from(data: Mapping[str, Any]) -> Check:
    """A proposed check. Raises `Misuse` where it is not well formed."""
    try:
        return distilled.from_json({**data, "code": ""})
    except CheckError as error:
        raise Misuse(f"the proposal is not well formed: {error}") from error


def propose(workspace: Workspace, check: Check, evidence: list[str], near_misses: list[str]) -> tuple[Rule | None, dict[str, Any]]:
    """Try the check on everything that is known; stored as pending if it stood the trial. The rule (or None) and the report."""
    if not evidence:
        raise Misuse("a proposal needs `evidence`: ids of candidates, runs or failures that the check must reject")
    if len(evidence) > MAX_EVIDENCE or len(near_misses) > MAX_EVIDENCE:
        raise Misuse(f"at most {MAX_EVIDENCE} ids of evidence and of near misses are taken")
    failing = [_failing(workspace, identifier) for identifier in evidence]
    passing = [_candidate(workspace, identifier) for identifier in near_misses]
    report = trial(workspace, check, failing, passing)
    if not report["accepted"]:
        return None, report
    proposal = {**check.to_json(), "evidence": sorted(set(evidence)), "near_misses": sorted(set(near_misses))}
    return workspace.store.rules.propose("check", check.title, proposal, report)[0], report


def trial(workspace: Workspace, check: Check, failing: list[Candidate], near_misses: list[Candidate]) -> dict[str, Any]:
    """Run the check on its evidence, its near misses, the corpus and every stored candidate; what it did, and whether it may be reviewed."""
    store, problems, times = workspace.store, [], []
    evidence_ids = {candidate.id for candidate in failing}
    good = (store.verdicts.passed() | store.runs.passed()) - evidence_ids

    def hits(candidate: Candidate) -> int | None:
        made = programs.programs_of(
            candidate.text, params=candidate.params, target=candidate.target, default_target=workspace.settings.target
        )
        if not made:
            return None
        findings = [finding for program in made for finding in distilled.run([check], program)]
        times.extend(finding.elapsed_ms for finding in findings)
        return sum(len(finding.hits) for finding in findings)

    report: dict[str, Any] = {"evidence": {}, "near_misses": {}, "corpus": 0, "candidates": 0, "also_rejects": [], "wrongly_rejects": []}
    try:
        for candidate in failing:
            count = report["evidence"][candidate.id] = hits(candidate)
            if count is None:
                problems.append(f"evidence {candidate.id} has no program to look at: its text fails at construction")
            elif count == 0:
                problems.append(f"evidence {candidate.id} is not rejected by the check")
        for candidate in near_misses or [c for c in _kin(workspace, failing) if c.id in good]:
            count = report["near_misses"][candidate.id] = hits(candidate)
            if count:
                problems.append(f"near miss {candidate.id} is rejected, and must not be")
        for entry in corpus.schedules():
            report["corpus"] += 1
            found = distilled.run([check], entry.program)
            times.extend(finding.elapsed_ms for finding in found)
            if any(finding.hits for finding in found):
                report["wrongly_rejects"].append(entry.name)
        for candidate in store.candidates.all():
            if candidate.id in evidence_ids:
                continue
            report["candidates"] += 1
            if hits(candidate):
                report["wrongly_rejects" if candidate.id in good else "also_rejects"].append(candidate.id)
    except RuleError as error:
        problems.append(str(error))
    if report["wrongly_rejects"]:
        problems.append(f"{len(report['wrongly_rejects'])} schedules that passed are rejected: {', '.join(report['wrongly_rejects'][:5])}")
    report["median_ms"] = round(statistics.median(times), 3) if times else 0.0
    if report["median_ms"] > MEDIAN_BUDGET_MS:
        problems.append(f"the check takes {report['median_ms']:.1f} ms on the median program; at most {MEDIAN_BUDGET_MS:g} ms are given")
    report["remarks"] = _remarks(workspace, failing, report)
    report["problems"] = problems
    report["accepted"] = not problems
    return report


def approve(workspace: Workspace, identifier: str, *, reviewer: str, reason: str) -> Rule:
    """Try the rule once more, give it a code, write its file, and record the decision. For people: no tool calls this.

    Raises `Misuse` if it is unknown, decided already, or no longer stands its trial.
    """
    rule = pending(workspace, identifier)
    check = distilled.from_json(rule.proposal)
    store = workspace.store
    failing = [_failing(workspace, evidence) for evidence in rule.proposal.get("evidence", ())]
    near = [_candidate(workspace, miss) for miss in rule.proposal.get("near_misses", ())]
    report = trial(workspace, check, failing, near)
    if not report["accepted"]:
        raise Misuse(f"{identifier} no longer stands its trial: {'; '.join(report['problems'])}")
    taken = {existing.code for existing in approved(workspace)}
    code = store.rules.next_code()
    while code in taken:  # a file that came from elsewhere has it
        code = f"R{int(code[1:]) + 1:03d}"
    slug = re.sub(r"[^a-z0-9]+", "-", check.title.lower()).strip("-")[:40] or "rule"
    path = workspace.folder("rules") / f"{code}-{slug}.json"
    body = {**check.to_json(), "code": code, "proposal": rule.id, "evidence": rule.proposal.get("evidence", []), "approved_by": reviewer}
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", "utf-8")
    try:
        return store.rules.decide(
            rule.id, "approved", reviewer=reviewer, reason=reason, code=code, path=str(path.relative_to(workspace.root))
        )
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def reject(workspace: Workspace, identifier: str, *, reviewer: str, reason: str) -> Rule:
    """Record that a person does not want the rule. Raises `Misuse` if it is unknown or decided already."""
    return workspace.store.rules.decide(pending(workspace, identifier).id, "rejected", reviewer=reviewer, reason=reason)


def pending(workspace: Workspace, identifier: str) -> Rule:
    """The pending rule of that id. Raises `Misuse` otherwise."""
    rule = workspace.store.rules.get(identifier)
    if rule is None:
        raise unknown("proposal", identifier, [r.id for r in workspace.store.rules.in_state("pending")])
    if rule.state != "pending":
        raise Misuse(f"{identifier} has been {rule.state} already")
    return rule


def approved(workspace: Workspace) -> tuple[Check, ...]:
    """The rules in force, by code: every well-formed file of the workspace's `rules/` that has a code."""
    return tuple(check for check, _ in _files(workspace).values() if isinstance(check, Check))


def broken(workspace: Workspace) -> dict[str, str]:
    """Rule files that are not in force, and why."""
    return {name: check for name, (check, _) in _files(workspace).items() if isinstance(check, str)}


def apply(
    checks: tuple[Check, ...], text: str, *, params: Mapping[str, Any] | None, target: str | None, default_target: str | None
) -> list[dict[str, Any]]:
    """What the approved rules find in a text, as objects of the verdict contract. A rule that does not run is a note, never silence."""
    found: list[dict[str, Any]] = []
    for program in programs.programs_of(text, params=dict(params or {}), target=target, default_target=default_target):
        for check in checks:
            try:
                found += [d for finding in distilled.run([check], program) for d in distilled.diagnostics(finding)]
            except RuleError as error:
                start = {"line": 1, "column": 1, "end_line": 1, "end_column": 2}
                found.append(
                    {
                        "code": check.code, "gate": distilled.GATE, "severity": "note", "message": f"not decided: the rule does not run: {error}",
                        "span": start, "related": [], "trace": [], "help": "", "fixes": [], "schedule": program.name,
                    }
                )  # fmt: skip
    return found


def for_command(
    workspace: Workspace, target: str | None
) -> Callable[[dict[str, Any], str, Mapping[str, Any], str], tuple[dict[str, Any], str]]:
    """How `cake verify` adds the distilled gate: from a verdict to the verdict with it, and its findings as lines of text."""

    def add(body: dict[str, Any], text: str, params: Mapping[str, Any], path: str) -> tuple[dict[str, Any], str]:
        found = apply(approved(workspace), text, params=params, target=target, default_target=workspace.settings.target)
        if any(d["severity"] == "error" for d in found):
            body = {**body, "verdict": "fail"}
        lines = [f"{d['severity']}[{d['code']}]: {d['message']}\n  --> {path}:{d['span']['line']}:{d['span']['column']}" for d in found]
        return {**body, "diagnostics": [*body["diagnostics"], *found]}, "\n".join(lines)

    return add


def page(workspace: Workspace, code: str) -> str | None:
    """The page of an approved rule."""
    check = next((check for check in approved(workspace) if check.code == code), None)
    if check is None:
        return None
    parts = [f"# {check.code}: {check.title}", check.statement, f"Gate: distilled ({check.severity}), approved in this workspace."]
    return "\n\n".join([*filter(None, [*parts, check.help]), f"```sql\n{check.sql.strip()}\n```"]) + "\n"


def _files(workspace: Workspace) -> dict[str, tuple[Check | str, Path]]:
    found: dict[str, tuple[Check | str, Path]] = {}
    codes: dict[str, str] = {}
    for path in sorted((workspace.root / "rules").glob("*.json")):
        try:
            check: Check | str = distilled.parse(path.read_text("utf-8"))
        except (CheckError, UnicodeDecodeError) as error:
            check = str(error)
        if isinstance(check, Check) and not check.code:
            check = "it has no code: it was not approved"
        elif isinstance(check, Check) and check.code in codes:
            check = f"its code {check.code} is that of {codes[check.code]}"
        elif isinstance(check, Check):
            codes[check.code] = path.name
        found[path.name] = (check, path)
    return found


def _candidate(workspace: Workspace, identifier: str) -> Candidate:
    store = workspace.store
    run = store.runs.get(identifier)
    failure = store.failures.get(identifier)
    found = store.candidates.get(run.candidate if run else failure.candidate if failure else identifier)
    if found is None:
        raise unknown("candidate, run or failure", identifier, [c.id for c in store.candidates.recent(200)])
    return found


def _failing(workspace: Workspace, identifier: str) -> Candidate:
    candidate = _candidate(workspace, identifier)
    if not workspace.store.failures.of(candidate.id):
        raise Misuse(f"{identifier} is no evidence: candidate {candidate.id} has not failed anywhere")
    return candidate


def _kin(workspace: Workspace, failing: list[Candidate]) -> list[Candidate]:
    """Parents and children of the evidence: the nearest texts there are."""
    store = workspace.store
    ids = [kin for c in failing for kin in [*(d.parent for d in store.candidates.descent(c.id)), *store.candidates.children(c.id)]]
    return [found for kin in dict.fromkeys(ids) if kin is not None and (found := store.candidates.get(kin)) is not None]


def _remarks(workspace: Workspace, failing: list[Candidate], report: Mapping[str, Any]) -> list[str]:
    remarks = []
    if not report["near_misses"]:
        remarks.append("no near miss was given or found: nothing shows that the check is not too broad but the corpus")
    for candidate in failing:
        failures = workspace.store.failures.of(candidate.id)
        if all(failure.run is not None and failure.seen < 2 for failure in failures):
            remarks.append(f"evidence {candidate.id} rests on a single run: it may be flaky")
    return remarks
