"""Verifier, simulator and silicon side by side: `python -m bench.verify.silicon_report --mutants .carry/mutants --silicon silicon.json`.

Prints the confusion table by class and every disagreement with the change that made the mutant; writes `bench/results/verify-silicon.json`.
Silicon that shows nothing in 20 runs proves nothing (a race may need a rarer order), but silicon that fails decides. The verdicts are today's
verifier's, unless `--recorded` asks for those from when the mutants were built.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.verify.cases import CASES
from bench.verify.measure import TruthStore, digest_of
from bench.verify.run import STORE
from bench.verify.sight import verdict_of
from bench.verify.silicon_explained import explained
from bench.verify.silicon_sample import UNJUDGED, add_shipped
from bench.verify.truth import judge

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results" / "verify-silicon.json"
BAD = ("mismatch", "hang", "fault", "damage")
CONTROL = "control"
KINDS = {
    "control fails": "an unmutated schedule is wrong on silicon",
    "verifier missed": "the verifier passes what fails on silicon, by more than other numbers",
    "values only": "the verifier passes a schedule that computes something else; only an oracle can tell",
    "simulator missed": "the simulator finds nothing in what fails on silicon",
    "not shown": "harmful in simulation, nothing seen on silicon",
    "alarm unconfirmed": "the verifier objects, simulator and silicon find nothing",
}
"""What disagreements there are, the gravest first."""


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m bench.verify.silicon_report", description=__doc__)
    p.add_argument("--mutants", type=Path, nargs="+", required=True, help="folders of mutants; of one in several the first counts")
    p.add_argument("--silicon", type=Path, nargs="+", required=True, help="results; those of a later file replace an earlier one's of the same mutants")
    p.add_argument("--tries", action="store_true", help="the results are tries of the same mutants: one that went wrong in any of them is bad")
    p.add_argument("--output", type=Path, default=RESULTS)
    p.add_argument("--recorded", action="store_true", help="verdicts from when the mutants were built")
    p.add_argument("--store", type=Path, default=STORE, help="ground truth that was found before; what this finds of mutants that nobody had simulated is added")
    a = p.parse_args(argv)
    known: dict[str, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for folder in a.mutants:
        known = {m["key"]: m for m in json.loads((folder / "index.json").read_text())["mutants"]} | known
        texts = json.loads((folder / "texts.json").read_text()) | texts
    silicon = together([json.loads(f.read_text()) for f in a.silicon], a.tries)
    mutants = [known[r["key"]] for r in silicon["results"]] if a.tries else list(known.values())
    if not a.recorded:
        add_shipped({m["subject"] for m in mutants})
        store = TruthStore(a.store)
        mutants = [judged(m, texts[m["key"]], store) for m in mutants]
    report = summary(joined(mutants, silicon["results"]), silicon)
    print(table(report))
    print(listing(report))
    a.output.parent.mkdir(parents=True, exist_ok=True)
    a.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def together(found: Sequence[dict[str, Any]], tries: bool) -> dict[str, Any]:
    """Results of several runs as one: those of a later one replace an earlier one's of the same mutants, or, of `tries`, count where the earlier one showed nothing."""
    first = found[0]
    by = {r["key"]: r for r in first["results"]}
    for r in (r for x in found[1:] for r in x["results"]):
        before = by.get(r["key"])
        if tries and before is not None and _shown(before["outcome"]) == "bad":
            continue
        if tries or before is not None:
            by[r["key"]] = r
    whole = {"seconds": sum(x["seconds"] for x in found), "runs": max(x["runs"] for x in found), "stopped": next((x["stopped"] for x in found if x["stopped"]), "")}
    return {**first, **(whole if tries else {}), "results": list(by.values())}


def judged(mutant: Mapping[str, Any], text: str, store: TruthStore | None = None) -> dict[str, Any]:
    """The mutant with the verdict of the verifier as it is now; a simulation looks at it if none has, and again where the verifier objects to
    what an earlier simulator found harmless."""
    if mutant["subject"] not in CASES:  # of a schedule that is gone what was recorded stays
        return dict(mutant)
    verdict, _ = verdict_of(text, mutant["subject"])
    state, alarm = mutant["truth"]["state"], verdict.verdict == "fail" and not mutant["contract"]
    if store is not None and (state == UNJUDGED or (state == "harmless" and alarm)):
        key = digest_of(mutant["subject"], text)
        if key not in store.known or (alarm and store.known[key]["state"] == "harmless"):
            store.add(key, judge(text, mutant["subject"], seeds=(0, 1, 2, 3) if alarm else (0,)).to_json())  # alarms as hard as in the mutation benchmark
        mutant = {**mutant, "truth": store.known[key]}
    return {**mutant, "verdict": verdict.verdict, "codes": [d.code for d in verdict.shown() if d.severity == "error"]}


def joined(mutants: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every mutant with what silicon did: `outcome` is the run's, or `not built` or `not run`; `shown` is `bad`, `clean` or `none`."""
    by = {r["key"]: r for r in results}
    out = []
    for m in mutants:
        r = by.get(m["key"], {"outcome": "not run" if m["built"] == "ok" else "not built", "detail": m["detail"]})
        kept = {k: r[k] for k in ("outcome", "detail", "run", "setting", "seed", "mode", "killed", "varied", "stage", "seconds") if k in r}
        out.append({**m, **kept, "shown": _shown(r["outcome"]), "kind": ""})
        out[-1]["kind"] = kind(out[-1])
        out[-1]["cause"] = explained(out[-1])
    return out


def kind(m: Mapping[str, Any]) -> str:
    """Which disagreement a mutant is; empty where all agree or silicon did not run it."""
    state, passes = m["truth"]["state"], m["verdict"] == "pass"
    if m["cls"] == CONTROL:
        return "control fails" if m["shown"] == "bad" else ""
    if m["shown"] == "bad":
        if state == "harmless":
            return "simulator missed"
        if passes:
            return "values only" if m["outcome"] == "mismatch" and m["truth"].get("kind") == "numbers" else "verifier missed"
        return ""
    if m["shown"] == "clean":
        if state == "harmful":
            return "not shown"
        if state == "harmless" and m["verdict"] == "fail" and not m["contract"]:
            return "alarm unconfirmed"
    return ""


def summary(rows: Sequence[dict[str, Any]], silicon: Mapping[str, Any]) -> dict[str, Any]:
    """The report as a JSON value."""
    return {
        "command": "python3 -m bench.verify.silicon_run",
        "gpu": next((r["gpu"] for r in silicon["results"] if r.get("gpu")), ""),
        "seconds": silicon["seconds"],
        "runs_each": silicon["runs"],
        "stopped": silicon["stopped"],
        **counted(rows),
        "disagreement_kinds": KINDS,
        "unexplained": sorted(m["key"] for m in rows if m["kind"] and not m["cause"]),
        "mutants": [{k: v for k, v in _short(m).items() if k != "diff"} for m in rows],
    }


def counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a report counts, and its disagreements."""
    mutants = [m for m in rows if m["cls"] != CONTROL]
    confusion = Counter((m["verdict"], m["truth"]["state"], m["shown"]) for m in mutants)
    return {
        "controls": _figures([m for m in rows if m["cls"] == CONTROL]),
        "all": _figures(mutants),
        "confusion": [{"verifier": v, "simulator": s, "silicon": x, "mutants": n} for (v, s, x), n in sorted(confusion.items())],
        "classes": {cls: _figures([m for m in mutants if m["cls"] == cls]) for cls in sorted({m["cls"] for m in mutants})},
        "disagreements": sorted((_short(m) for m in rows if m["kind"]), key=lambda m: (list(KINDS).index(m["kind"]), m["key"])),
    }


def retried(report: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    """A report with what silicon showed at a second try, `again`, of mutants that it had not shown."""
    bad = {m["key"]: m for m in again["mutants"] if m["outcome"] in BAD}
    rows = []
    for m in report["mutants"]:
        row = {**m, "truth": {"state": m["truth"], "kind": m["truth_kind"]}, "shown": _shown(m["outcome"])}
        if m["kind"] == "not shown" and m["key"] in bad:
            row |= {k: v for k, v in bad[m["key"]].items() if k in ("outcome", "detail", "run", "setting", "seed", "mode")} | {"shown": "bad", "kind": "", "cause": ""}
        rows.append(row)
    return {**report, **counted(rows)}


def _shown(outcome: str) -> str:
    return "bad" if outcome in BAD else "clean" if outcome == "clean" else "none"


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of one group, and how often silicon confirms the other two."""
    ran = [m for m in rows if m["shown"] != "none"]
    bad = [m for m in ran if m["shown"] == "bad"]
    harmful = [m for m in ran if m["truth"]["state"] == "harmful"]
    return {
        "mutants": len(rows),
        "built": sum(m["built"] == "ok" for m in rows),
        "ran": len(ran),
        "outcomes": dict(Counter(m["outcome"] for m in rows)),
        "bad_on_silicon": len(bad),
        "bad_and_flagged": sum(m["verdict"] == "fail" for m in bad),
        "bad_and_harmful": sum(m["truth"]["state"] == "harmful" for m in bad),
        "harmful": len(harmful),
        "harmful_shown": sum(m["shown"] == "bad" for m in harmful),
        "harmless": sum(m["truth"]["state"] == "harmless" for m in ran),
        "flagged": sum(m["verdict"] == "fail" for m in ran),
        "disagreements": dict(Counter(m["kind"] for m in rows if m["kind"])),
    }


def _short(m: Mapping[str, Any]) -> dict[str, Any]:
    names = ("key", "cls", "title", "lines", "verdict", "codes", "built", "outcome", "detail", "run", "setting", "seed", "mode", "killed", "varied", "kind", "serialised", "why", "cause", "diff")
    return {**{k: m[k] for k in names if k in m}, "truth": m["truth"]["state"], "truth_kind": m["truth"].get("kind", "")}


def table(report: Mapping[str, Any]) -> str:
    """By class: mutants, run, harmful in simulation and shown on silicon, bad on silicon and flagged, outcomes."""
    head = f"{'class':<22}{'n':>4}{'ran':>5}{'harmful':>9}{'shown':>7}{'bad':>5}{'flagged':>9}{'harmless':>10}  outcomes"
    lines = [head]
    for name, f in [*report["classes"].items(), ("all", report["all"]), ("controls", report["controls"])]:
        outcomes = ", ".join(f"{k} {v}" for k, v in sorted(f["outcomes"].items()))
        lines.append(
            f"{name:<22}{f['mutants']:>4}{f['ran']:>5}{f['harmful']:>9}{f['harmful_shown']:>7}{f['bad_on_silicon']:>5}"
            f"{f['bad_and_flagged']:>9}{f['harmless']:>10}  {outcomes}"
        )
    lines += ["", f"{'verifier':<12}{'simulator':<12}{'silicon':<9}{'mutants':>7}"]
    lines += [f"{c['verifier']:<12}{c['simulator']:<12}{c['silicon']:<9}{c['mutants']:>7}" for c in report["confusion"]]
    return "\n".join(lines)


def listing(report: Mapping[str, Any]) -> str:
    """Every disagreement with its change."""
    out: list[str] = []
    for d in report["disagreements"]:
        codes = " ".join(d["codes"])
        out.append(f"\n[{d['kind']}] {d['key']}: {d['title']}")
        out.append(f"    verifier {d['verdict']} {codes}; simulator {d['truth']} {d['truth_kind']}; silicon {d['outcome']} {d['detail'][:160]}")
        out += [f"    {d.get('cause') or 'UNEXPLAINED'}", *(f"    {line}" for line in d["diff"])]
    return "\n".join(out)


if __name__ == "__main__":
    sys.exit(main())
