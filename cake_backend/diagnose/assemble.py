"""`diagnose`: one run record to ordered findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cake_backend.cost.calibration import calibrations
from cake_backend.cost.predict import Setting, predict, setting
from cake_backend.cost.prediction import Prediction
from cake_backend.diagnose.compiler import compile_findings, fence_by_text
from cake_backend.diagnose.finding import Finding
from cake_backend.diagnose.numbers import number_findings
from cake_backend.diagnose.outcome import outcome_findings
from cake_backend.diagnose.schedule import schedule_findings
from cake_backend.diagnose.stalls import stall_findings
from cake_backend.diagnose.timing import timing_findings
from cake_backend.diagnose.what_if import WhatIf
from cake_ir.program import Program

Scalars = Callable[[Mapping[str, int]], Mapping[str, Any]]
_BOARD = "H200-SXM"
_ENDED = frozenset({"STATIC_REJECT", "UNDECIDED", "COMPILE_ERROR", "WORKLOAD_REJECTED", "INVALID_REFERENCE", "CANCELLED", "INFRA_ERROR", "SKIPPED"})


def diagnose(record: Mapping[str, Any], program: Program | None = None, text: str | None = None, *, scalars: Scalars | None = None) -> list[Finding]:
    """What a run record says about its candidate: correctness first, then time, the largest gain bound first.

    program: the specialised schedule; without it, it is made from `text` and the record's `params` and `target`, and without both the
    findings name no lines. scalars: from a shape's axes to scalar arguments (`Task.scalar_values`); by default scalars are looked up among
    the axes by name. Never raises for what the record holds; evidence that is absent is named in the findings.
    """
    if program is None and text is not None:
        program = _program(text, record)
    out = outcome_findings(record, program) + number_findings(record, program)
    status = str(record.get("status", ""))
    if status in _ENDED:
        return out
    prediction, what_if, shape = _prediction(record, program, scalars)
    out += compile_findings(record, program, what_if)
    if program is not None and not any(f.id == "B13" for f in out):
        out += fence_by_text(program, what_if)
    wrong = bool(out) and any(f.id[0] in "WE" for f in out)
    if not wrong and prediction is not None:
        speed = timing_findings(prediction, what_if, shape)
        if what_if is not None:
            speed += schedule_findings(what_if)
        if isinstance(record.get("stalls"), Mapping):
            speed += stall_findings(record["stalls"], prediction)
        out += [_with_absent(f, record, shape) for f in speed]
    return sorted(out, key=_rank)


def _rank(f: Finding) -> tuple[int, float]:
    """Numbers and failures first, then by gain bound; findings without a bound after those with one."""
    first = {"E": 0, "W": 1}.get(f.id[0], 2)
    return first, -(f.gain.bound if f.gain else 0.0)


def _program(text: str, record: Mapping[str, Any]) -> Program | None:
    from cake_ir import parse, specialise

    template = parse(text).schedule(None)
    if template is None:
        return None
    params = {k: v for k, v in dict(record.get("params") or {}).items() if k in template.tunables}
    return specialise(template, params, record.get("target") or None).program


def _prediction(record: Mapping[str, Any], program: Program | None, scalars: Scalars | None) -> tuple[Prediction | None, WhatIf | None, dict[str, Any] | None]:
    """The prediction for the largest timed or predicted shape, its what-if readings, and its measured entry."""
    timed = [s for s in (record.get("timing") or {}).get("shapes") or () if isinstance(s, dict)]
    predicted = [s for s in (record.get("prediction") or {}).get("shapes") or () if isinstance(s, dict)]
    shape = max(timed, key=lambda s: s.get("seconds") or 0.0, default=None)
    named = shape or max(predicted, key=lambda s: (s.get("cycles") or {}).get("mid") or 0.0, default=None)
    if program is None or named is None:
        return None, None, shape
    axes = dict(named.get("axes") or {})
    args = dict(scalars(axes)) if scalars is not None else axes
    board = str((record.get("prediction") or {}).get("device") or record.get("device") or "")
    board = board if board in calibrations() else _BOARD
    report = record.get("compile")
    prediction = predict(program, args, device=board, build=report)
    found = setting(program, args, device=board, build=report)
    return prediction, WhatIf.of(found) if isinstance(found, Setting) else None, shape


def _with_absent(f: Finding, record: Mapping[str, Any], shape: Mapping[str, Any] | None) -> Finding:
    """The finding with the evidence that a run of another kind would have added."""
    from dataclasses import replace

    missing = list(f.absent)
    if shape is None:
        missing.append("a measured time")
    if not isinstance(record.get("stalls"), Mapping):
        missing.append("a stall profile")
    return replace(f, absent=tuple(dict.fromkeys(missing)))
