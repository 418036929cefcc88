"""The part of a search that needs a GPU: right numbers first, then races, then a full evaluation of the fastest."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..store.identity import fresh
from ..workspace import Workspace
from .variants import Tell, Variant

if TYPE_CHECKING:
    from cake_backend.judge.plan import Case
    from cake_backend.judge.race import Track
    from cake_backend.task import Shape, Task

    from .tune import Tuned

FULL_GPU_S = 5.0  # what a full evaluation may cost at least; less than that left, none is begun
BEHIND = 1.05  # a variant that an earlier race saw further behind its winner than this is not timed again


def known(workspace: Workspace, out: "Tuned") -> None:
    """Let those leave of whom an earlier search with the same code, shape and GPU has found that they are wrong, or well behind one that is here.

    Times of two searches are never compared: what might still win is timed again, beside the others.
    """
    from cake_backend.judge.status import Status

    alive = {v.candidate.id: v for v in out.variants if not v.dropped and v.built is not None}
    for v in alive.values():
        for run in workspace.store.runs.of(v.candidate.id):
            told = run.body.get("tune") or {}
            if run.evidence != "measured" or told.get("shape") != out.shape or told.get("code") != _code(v) or run.device != (out.gpu or {}).get("name"):
                continue
            if Status(run.status).blames_candidate:
                v.drop("check", f"{run.body.get('summary')} (run {run.id} of an earlier search)", run.status)
            elif float(told.get("behind") or 0) > BEHIND and told.get("best") in alive:
                v.drop("time", f"{told['behind']:.2f} times as slow as {alive[told['best']].label} (run {run.id} of an earlier search)")
            v.known = v.dropped
            break


def _code(v: Variant) -> str:
    """A digest of what was compiled: another build of Cake may lower the same program to other code."""
    assert v.built is not None
    return hashlib.sha256("".join(text for text, _ in v.built.files).encode()).hexdigest()[:16]


def time_variants(out: "Tuned", task: "Task", shape: "Shape", ordinal: int, keep: int, tell: Tell) -> None:
    """Try every variant that is left, then race those with right numbers; gives each a record."""
    from cake_backend.judge.evaluation import candidate_of
    from cake_backend.judge.halving import halve
    from cake_backend.judge.race import Entry, Track
    from cake_backend.judge.status import Status

    alive = [v for v in out.variants if not v.dropped and v.built is not None and v.routine is not None]
    if not alive:
        return
    for v in alive:
        assert v.built is not None and v.routine is not None
        v.entry = Entry(v.candidate.id, candidate_of(v.built, v.routine))
    entries = {v.candidate.id: v.entry for v in alive if v.entry is not None}
    checks, timed = _cases(task, shape, alive)
    with Track(task, checks, timed, secrets.randbits(12), device=ordinal) as track:
        remaining = lambda: out.budget_gpu_s - track.spent  # noqa: E731 - one line, asked again and again

        def race(names: Sequence[str], rounds: int) -> None:
            tell("time", int(track.spent), int(out.budget_gpu_s), f"{len(names)} variants, {rounds} rounds")
            track.race([entries[n] for n in names], rounds, remaining(), seed=secrets.randbits(31))

        def times(name: str) -> Sequence[float]:
            entry = entries[name]
            return entry.seconds if entry.status is Status.PASSED_UNTIMED else ()

        try:
            tell("check", 0, len(alive), f"{len(checks) + 1} cases each")
            track.check(list(entries.values()), remaining)
            right = [name for name, entry in entries.items() if entry.status is Status.PASSED_UNTIMED]
            tell("check", len(alive), len(alive), f"{len(right)} are right, {track.spent:.1f} of {out.budget_gpu_s:.0f} GPU-s")
            outcome = halve(right, race, times, remaining, keep=keep)
            out.rungs = [{**rung.to_json(), "dropped": [_label(alive, n) for n in rung.dropped]} for rung in outcome.rungs]
            out.ended = {"settled": "", "budget": "the GPU budget was spent", "nobody": "no variant gave right numbers"}[outcome.why]
        except KeyboardInterrupt:
            out.interrupted = True
        out.gpu_s, out.faults = track.spent, list(track.faults)
        for v in alive:
            v.record = _record(v, out, task, shape, track)
    if out.interrupted:
        raise KeyboardInterrupt
    tell("time", int(out.budget_gpu_s), int(out.budget_gpu_s), f"{out.gpu_s:.1f} GPU-s spent")


def _behind(v: Variant, out: "Tuned") -> dict[str, Any]:
    """How much slower than the fastest of this race a variant was, and which that was."""
    from statistics import median

    raced = {o.candidate.id: median(o.entry.seconds) for o in out.variants if o.entry is not None and o.entry.seconds}
    if v.candidate.id not in raced:
        return {}
    best = min(raced, key=lambda name: raced[name])
    return {"behind": raced[v.candidate.id] / raced[best], "best": best}


def _label(variants: Sequence[Variant], name: str) -> str:
    return next(v.label for v in variants if v.candidate.id == name)


def _cases(task: "Task", shape: "Shape", alive: Sequence[Variant]) -> "tuple[list[Case], Case]":
    """Small cases that every variant takes, and the timed one; each with a seed of its own."""
    from cake_backend.judge.domain import Domain
    from cake_backend.judge.plan import SEED_BITS, Case

    def taken_by_all(small: "Shape") -> bool:
        return all(
            v.routine is not None and v.built is not None and small in task.specialised(v.routine.tunables)
            and Domain(task, v.built.manifest).covers(small)
            for v in alive
        )  # fmt: skip

    names = [d.name for d in task.distributions]
    small = [s for s in task.shapes if s.kind == "sim" and taken_by_all(s)]
    wanted = [(s, d) for i, s in enumerate(small) for d in (names if i == 0 else names[:1])]
    cases = [Case(f"d{i}", s, d, secrets.randbits(SEED_BITS), repeats=1) for i, (s, d) in enumerate(wanted)]
    return cases, Case(f"d{len(cases)}", shape, names[0], secrets.randbits(SEED_BITS), timed=True, repeats=1)


def _record(v: Variant, out: "Tuned", task: "Task", shape: "Shape", track: "Track") -> dict[str, Any]:
    """The run record of a variant that was tried; its status is lowered by whatever its times show."""
    from cake_backend.judge.floors import below_floor, floor
    from cake_backend.judge.statistics import untrusted
    from cake_backend.judge.status import Status

    from .tune import head

    entry = v.entry
    assert entry is not None and v.built is not None and v.routine is not None
    missed = "the search was interrupted before its turn" if out.interrupted else "the GPU budget was spent before its turn"
    status, summary = entry.status or Status.SKIPPED, entry.summary or missed
    record: dict[str, Any] = {
        "evidence": "measured" if entry.status is not None else "predicted", "task": task.name, "target": v.routine.target,
        "device": track.info.get("name"), "gpu": track.info, "driver": track.info.get("driver"), "params": v.candidate.params, "findings": [],
        "compile": v.built.report, "prediction": head(v, out.board), "tune": {"rounds": len(entry.seconds), "gpu_s_of_all": round(track.spent, 3), "shape": shape.name, "code": _code(v), **_behind(v, out)},
        "numerics": {"label": "measured", "ok": status.good, "cases": entry.cases, "wrong": sum(c["status"] != "PASSED" for c in entry.cases)},
    }  # fmt: skip
    if status is Status.PASSED_UNTIMED and entry.seconds and track.info:
        limit = floor(task.work(shape.axes), task.unit, track.info)
        times = entry.timing()
        best = times["graph"] if entry.graph else times["eager"]
        row = {"shape": shape.name, "axes": dict(shape.axes), **times, "floor": limit.to_json(), "seconds": best["median_s"],
               "floor_over_time": limit.seconds / best["median_s"], "untrusted": untrusted(best)}  # fmt: skip
        work = task.work(shape.axes)
        row |= {"tflops": work["flops"] / row["seconds"] / 1e12, "gbytes_per_s": (work["bytes_read"] + work["bytes_written"]) / row["seconds"] / 1e9}
        kept = ("shape", "seconds", "tflops", "gbytes_per_s", "floor_over_time")
        record["timing"] = {"label": "measured", **{k: row[k] for k in kept}, "shapes": [row]}
        cases = f"right on the {len(entry.cases)} cases of a search"
        status, summary = Status.PASSED, f"{cases}; {row['seconds'] * 1e6:.2f} us for `{shape.name}`"
        if below_floor(row["seconds"], limit):
            status, summary = Status.PHYSICS_FLOOR, f"`{shape.name}` is faster than the chip can be ({limit.bound} bound)"
        elif row["untrusted"]:
            status, summary = Status.TIMING_UNTRUSTED, f"{cases}; {row['untrusted']}"
    record |= {"status": status.value, "summary": summary}
    if not status.good and status is not Status.TIMING_UNTRUSTED and status is not Status.SKIPPED:
        v.drop("check" if not entry.seconds else "time", summary, status.value)
    return record


def confirm(workspace: Workspace, out: "Tuned", task: "Task", ordinal: int, keep: int, tell: Tell) -> None:
    """Judge the fastest on every small, edge and held-out shape and the one searched for; one that does not pass leaves, and the next is judged.

    The task's other large shapes are left out: their data alone can take longer than the budget, and the search says nothing about them.
    """
    from cake_backend.judge import Status
    from cake_backend.judge import evaluate as judge

    from . import evaluate

    for v in [v for v in out.standing() if v.entry is not None and v.entry.seconds][:keep]:
        if out.budget_gpu_s - out.gpu_s < FULL_GPU_S:
            out.ended = out.ended or "the GPU budget left no full evaluation"
            return
        tell("confirm", 0, 1, v.label)
        identifier = fresh("r")
        folder = workspace.folder("runs") / identifier
        record = judge(
            v.candidate.text, params=dict(v.candidate.params), task=task, target=v.candidate.target or (v.routine.target if v.routine else None),
            device=f"gpu:{ordinal}", options={"bench": (out.shape,), "run_timeout": max(30.0, out.budget_gpu_s - out.gpu_s)}, workdir=folder,
        )  # fmt: skip
        out.gpu_s += float(record["cost"].get("gpu_s", 0.0))
        evaluate.keep(workspace, v.candidate, record, identifier=identifier, task=out.task, folder=folder)
        tell("confirm", 1, 1, f"{v.label}: {record['status']}")
        if record["status"].startswith("PASSED") or record["status"] == "TIMING_UNTRUSTED":
            (v.record or {}).setdefault("tune", {})["confirmed"] = identifier
            return
        if not Status(record["status"]).blames_candidate:  # nothing is known about the variant: it stays, unconfirmed
            out.faults.append(f"{v.label}: {record['status']}, {record['summary']}")
            return
        v.drop("confirm", record["summary"], record["status"])
