"""Search parameter variants: drop what the gates reject, rank, compile in parallel, time the survivors with successive halving.

Everything is stored like other proposals: each variant is a candidate with its verdict, prediction, compile report and run. Without a GPU
the search ends after the compiler, and its order is a prediction and is called one.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..cleaning import clip
from ..store.identity import fresh
from ..workspace import Workspace
from . import rank, tasks
from .misuse import Misuse
from .timed_variants import confirm, known, time_variants
from .variants import Family, Tell, Variant, enumerate_variants

if TYPE_CHECKING:
    from cake_backend.task import Shape, Task

MOST = 48
BUDGET_S = 120.0


@dataclass(frozen=True, slots=True)
class Choice:
    """How to search. `device` is `auto`, `gpu`, `gpu:N` or `none`; `board` names what to predict for."""

    shape: str | None = None
    device: str = "auto"
    board: str | None = None
    budget_gpu_s: float = BUDGET_S
    most: int = MOST
    keep: int = 3
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    confirmed: bool = True
    fresh: bool = False


INTERRUPTED = "interrupted; what was measured until then is kept"


@dataclass(slots=True)
class Tuned:
    """What a search found; `variants` holds every combination with where and why it left."""

    task: str
    shape: str
    axes: dict[str, int]
    board: str
    gpu: dict[str, Any] | None
    why_untimed: str
    variants: list[Variant]
    budget_gpu_s: float
    gpu_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    rungs: list[dict[str, Any]] = field(default_factory=list)
    ended: str = ""
    faults: list[str] = field(default_factory=list)
    interrupted: bool = False

    def counts(self) -> dict[str, Any]:
        """How many were tried, how far they came and where they left; the gates' rejections by code."""
        left = Counter(v.stage for v in self.variants if v.dropped)
        codes = Counter(v.code for v in self.variants if v.dropped and v.stage == "verify")
        return {
            "combinations": len(self.variants), "left": dict(left), "rejected": sum(codes.values()), "rejected_by_code": dict(codes.most_common()),
            "compiled": sum(v.built is not None and v.built.status is None for v in self.variants),
            "timed": sum(v.entry is not None and bool(v.entry.seconds) for v in self.variants), "known": sum(v.known for v in self.variants),
        }  # fmt: skip

    def standing(self) -> list[Variant]:
        """Those that were not dropped: the timed ones, fastest first, then by predicted group and seconds, what is not ranked last."""
        return sorted((v for v in self.variants if not v.dropped), key=_place)

    def to_json(self) -> dict[str, Any]:
        """A JSON value; every figure in it says whether it was measured or predicted."""
        return {
            "task": self.task, "shape": self.shape, "axes": self.axes, "board": self.board, "gpu": (self.gpu or {}).get("name"),
            "evidence": "measured" if any(_seconds(v) for v in self.variants) else "predicted", "why_untimed": self.why_untimed,
            "budget_gpu_s": self.budget_gpu_s, "gpu_s": round(self.gpu_s, 3), "seconds": self.seconds, "ended": self.ended,
            "counts": self.counts(), "rungs": self.rungs, "faults": self.faults, "interrupted": self.interrupted,
            "table": [row(v, place) for place, v in enumerate(self.standing(), 1)],
            "dropped": [
                {"params": v.params, "candidate_id": v.candidate.id, "stage": v.stage, "code": v.code, "reason": v.reason}
                for v in self.variants if v.dropped
            ],
        }  # fmt: skip


def tune(workspace: Workspace, family: Family, choice: Choice, tell: Tell) -> Tuned:
    """Search. Raises `Misuse` for what the caller named wrongly; what the variants do wrong is in the answer."""
    from cake_backend.judge.devices import target_of

    task = tasks.get(workspace, family.task)
    shape = rank.shape_of(task, choice.shape)
    gpu, ordinal, untimed = _gpu(choice.device)
    clock = time.monotonic()
    variants = enumerate_variants(workspace, family, tell)
    out = Tuned(task.name, shape.name, dict(shape.axes), "", gpu, untimed, variants, choice.budget_gpu_s)
    _specialise(variants, task, shape, target_of(gpu) if gpu is not None else workspace.settings.target)
    out.board = _board(workspace, choice.board, variants, gpu)
    out.seconds["verify"] = _lap(clock)
    try:
        _search(workspace, out, choice, task, shape, ordinal, tell)
    except KeyboardInterrupt:
        out.interrupted, out.ended = True, INTERRUPTED
    _keep_runs(workspace, out, family.task)
    if gpu is not None and choice.confirmed and not out.interrupted:
        try:
            confirm(workspace, out, task, ordinal, choice.keep, tell)
        except KeyboardInterrupt:
            out.interrupted, out.ended = True, INTERRUPTED
    out.seconds["all"] = _lap(clock)
    return out


def _search(workspace: Workspace, out: Tuned, choice: Choice, task: "Task", shape: "Shape", ordinal: int, tell: Tell) -> None:
    """Rank, compile, and time on the GPU if there is one."""
    variants, clock = out.variants, time.monotonic()
    tell("rank", 0, 1, f"{sum(not v.dropped for v in variants)} variants")
    _rank(workspace, variants, task, shape, out.board, choice.most)
    tell("rank", 1, 1, f"{sum(not v.dropped for v in variants)} to compile")
    out.seconds["rank"] = _lap(clock)
    clock = time.monotonic()
    _compile(workspace, variants, choice.workers, tell)
    _rank(workspace, variants, task, shape, out.board, choice.most)
    out.seconds["compile"] = _lap(clock)
    clock = time.monotonic()
    if out.gpu is not None:
        _only_for(variants, out.gpu)
        if not choice.fresh:
            known(workspace, out)
        time_variants(out, task, shape, ordinal, choice.keep, tell)
    out.seconds["time"] = _lap(clock)


def _lap(since: float) -> float:
    return round(time.monotonic() - since, 3)


def _gpu(device: str) -> tuple[dict[str, Any] | None, int, str]:
    """The GPU to time on, its number, and why there is none."""
    if device == "none":
        return None, 0, "no GPU was wanted"
    from cake_backend.judge.devices import find_devices

    name, _, number = device.partition(":")
    if name not in ("auto", "gpu") or (number and not number.isdecimal()):
        raise Misuse(f"device `{device[:40]}` is none of auto, gpu, gpu:N, none")
    found = find_devices()
    ordinal = int(number or 0)
    if ordinal < len(found.devices):
        return found.devices[ordinal], ordinal, ""
    if device != "auto":
        raise Misuse(f"there is no GPU {ordinal} here: {found.reason or f'{len(found.devices)} found'}")
    return None, 0, f"no GPU here: {clip(found.reason.partition('. ')[0], 120)}"


def _board(workspace: Workspace, name: str | None, variants: Sequence[Variant], gpu: Mapping[str, Any] | None) -> str:
    from cake_backend.judge.prediction import board_for

    target = next((v.routine.target for v in variants if v.routine is not None), "sm_90a")
    here = board_for(target, str(gpu["name"])) if gpu is not None and name is None else None
    return rank.board_of(workspace, name or here, target)


def _specialise(variants: Sequence[Variant], task: "Task", shape: "Shape", prefer: str | None) -> None:
    """Give every variant its routine; those that do not take the shape leave."""
    from cake_backend.judge.domain import Domain, assumptions
    from cake_backend.judge.source import read_source

    for v in variants:
        if v.dropped:
            continue
        source = read_source(
            v.candidate.text, v.candidate.params, target=v.candidate.target, task=task, prefer=prefer, verified=v.verdict
        )
        if source.routine is None or source.status is not None:
            v.drop("verify", source.summary, source.status.value if source.status else "")
            continue
        v.routine = source.routine
        if shape not in task.specialised(source.routine.tunables):
            v.drop("domain", f"its parameters do not fit shape `{shape.name}`")
        elif (outside := Domain(task, guards=assumptions(source.routine)).outside(shape)) is not None:
            v.drop("domain", outside.sentence())


def _rank(workspace: Workspace, variants: Sequence[Variant], task: "Task", shape: "Shape", board: str, most: int) -> None:
    """Predicted groups; what is certainly much slower than another leaves, and what exceeds `most` before anything is compiled."""
    from cake_backend.cost.rank import rank as rank_programs

    alive = {v.candidate.id: v for v in variants if not v.dropped}
    compiled = any(v.built is not None for v in alive.values())
    plain = [(i, v.routine.program, v.built.report if v.built else None) for i, v in alive.items() if v.routine and v.routine.program]
    for v in alive.values():
        v.group, v.note = None, "" if v.routine and v.routine.program else "a plan is not ranked in this build"
    if not plain:
        if not compiled and len(alive) > most:  # nothing says which are better: a sample
            _beyond(list(alive.values()), random.Random(0).sample(sorted(alive), most), most)
        return
    layouts = task.layouts(shape.axes)
    extents = {(name, dim): extent for name, layout in layouts.items() for dim, extent in enumerate(layout.shape)}
    ranking = rank_programs(plain, task.scalar_values(shape.axes), device=board, extents=extents)  # type: ignore[arg-type]  # programs are there
    for i, prediction in ranking.predictions.items():
        alive[i].prediction = {"shape": shape.name, **prediction.to_json()}
        if not compiled:  # a compiled one is stored with its run
            workspace.store.predictions.record(i, board, alive[i].prediction or {})
    for number, group in enumerate(ranking.groups, 1):
        for i in group:
            alive[i].group = number
    for i, (_, text) in ranking.withheld.items():
        alive[i].note = text
    for i, text in ranking.last.items():
        alive[i].note = text or ""
        if len(ranking.last) < len(plain):
            alive[i].drop("rank", f"sorts last: {text}")
    for gone in ranking.dropped:
        alive[gone.id].drop("rank", gone.reason.replace(f"`{gone.against}`", alive[gone.against].label))
    left = [v for v in alive.values() if not v.dropped]
    if not compiled and len(left) > most:
        _beyond(left, {pick.id for pick in ranking.choose(most)}, most)


def _beyond(left: Sequence[Variant], chosen: Container[str], most: int) -> None:
    for v in left:
        if v.candidate.id not in chosen:
            v.drop("rank", f"beyond the {most} that are compiled (see --most)")


def _compile(workspace: Workspace, variants: Sequence[Variant], workers: int, tell: Tell) -> None:
    """Compile what is left, several at a time; what the compiler refuses, or serialises where others are not, leaves."""
    from cake_backend.judge.building import Built, build_routine

    alive = [v for v in variants if not v.dropped and v.routine is not None]
    done = 0

    def build(v: Variant) -> Built:
        assert v.routine is not None
        return build_routine(v.routine, v.candidate.text, timeout=120.0)

    tell("compile", 0, len(alive), f"{workers} at a time")
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for v, built in zip(alive, pool.map(build, alive), strict=True):
            done += 1
            tell("compile", done, len(alive), v.label)
            v.built = built
            if built.status is not None:
                v.drop("compile", built.summary, built.status.value)
                if built.status.blames_candidate:
                    workspace.store.failures.record(v.candidate.id, stage="compile", code=built.status.value, message=built.summary)
    if any(not v.dropped and not (v.built and v.built.report.get("serialised")) for v in alive):
        for v in alive:
            if not v.dropped and v.built and v.built.report.get("serialised"):
                v.drop("compile", "the assembler serialises its matrix products", "serialised")


def _only_for(variants: Sequence[Variant], gpu: Mapping[str, Any]) -> None:
    from cake_backend.judge.devices import runs_on, target_of

    for v in variants:
        if not v.dropped and v.routine is not None and not runs_on(v.routine.target, dict(gpu)):
            v.drop("time", f"{gpu['name']} ({target_of(dict(gpu))}) cannot run {v.routine.target}", "SKIPPED")


def _keep_runs(workspace: Workspace, out: Tuned, task: str) -> None:
    """One run record for every variant that was compiled, whatever became of it, with its files."""
    from cake_backend.judge.evaluation import keep_files

    from . import evaluate

    for v in out.variants:
        if v.built is None or v.built.build is None:
            continue
        identifier = fresh("r")
        folder = workspace.folder("runs") / identifier
        v.record = v.record or _record(v, out)
        keep_files(folder, v.record, v.built)
        evaluate.keep(workspace, v.candidate, v.record, identifier=identifier, task=task, folder=folder)


def _record(v: Variant, out: Tuned) -> dict[str, Any]:
    """The record of a variant that was compiled and not run."""
    status = v.code if v.code in ("COMPILE_ERROR", "INFRA_ERROR") else "SKIPPED"
    summary = v.reason if v.dropped else f"compiled by a search and not run: {out.why_untimed or out.ended or 'no time was left'}"
    assert v.built is not None
    return {
        "status": status, "summary": summary, "evidence": "predicted", "task": out.task, "target": v.routine.target if v.routine else None,
        "device": out.board, "params": v.candidate.params, "findings": [], "compile": v.built.report, "prediction": head(v, out.board),
        "tune": {"stage": v.stage, "reason": v.reason},
    }  # fmt: skip


def head(v: Variant, board: str) -> dict[str, Any] | None:
    """A variant's prediction in the form of a run record's section."""
    if v.prediction is None:
        return None
    seconds = v.prediction.get("seconds") or {}
    return {
        "label": "predicted", "device": board, "shape": v.prediction["shape"], "seconds": seconds.get("mid"), "seconds_low": seconds.get("low"),
        "seconds_high": seconds.get("high"), "binding": v.prediction.get("binding"), "covered": v.prediction.get("covered"),
        "shapes": [v.prediction],
    }  # fmt: skip


def _seconds(v: Variant) -> float | None:
    return (v.record or {}).get("timing", {}).get("seconds")


def _place(v: Variant) -> tuple[int, float, float, str]:
    seconds = _seconds(v)
    if seconds is not None:
        rounds = len(v.entry.seconds) if v.entry is not None else 0
        return 0, -min(rounds, 20), seconds, v.label
    predicted = ((v.prediction or {}).get("seconds") or {}).get("mid")  # a tie in a group, but nobody expects the slower one on top
    return 1, v.group if v.group is not None else 1e9, predicted if predicted is not None else 1e9, v.label


def row(v: Variant, place: int) -> dict[str, Any]:
    """One line of the answer."""
    predicted = ((v.prediction or {}).get("seconds") or {}).get("mid")
    cycles = ((v.prediction or {}).get("cycles") or {}).get("mid")
    timing = (v.record or {}).get("timing") or {}
    shapes = timing.get("shapes") or [{}]
    best = shapes[0].get("graph") if (shapes[0].get("graph") or {}).get("rounds") else shapes[0].get("eager") or {}
    resources = (v.built.report.get("resources") or {}) if v.built else {}
    return {
        "place": place, "params": v.params, "label": v.label, "candidate_id": v.candidate.id, "status": (v.record or {}).get("status"),
        "measured_s": timing.get("seconds"), "ci95_s": (best or {}).get("ci95_s"), "rounds": (best or {}).get("rounds", 0),
        "floor_over_time": timing.get("floor_over_time"), "predicted_group": v.group, "predicted_s": predicted, "predicted_cycles": cycles,
        "unranked": v.note or None, "registers": resources.get("registers"), "spill_bytes": resources.get("spill_stores"),
        "smem": v.built.report.get("smem") if v.built else None, "confirmed": (v.record or {}).get("tune", {}).get("confirmed"),
    }  # fmt: skip
