"""Findings from how a run ended: what stopped it, and whose fault that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cake_backend.diagnose.finding import Finding
from cake_ir.derive.arrivals import arrivals
from cake_ir.program import Program


def outcome_findings(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    """Findings for a status that is not about numbers or time; empty for a run that went through."""
    status = str(record.get("status", ""))
    seen = _simulator(record, status)
    if seen:
        return seen
    make = _MAKERS.get(status)
    return make(record, program) if make else []


def _simulator(record: Mapping[str, Any], status: str) -> list[Finding]:
    """What the simulated machine met: it knows the line and the story, so nothing has to be inferred."""
    faults = [f for f in record.get("findings") or () if isinstance(f, Mapping) and f.get("kind") == "simulator"]
    out = []
    for f in faults[:3]:
        code = str(f.get("code"))
        id_ = _SIMULATED.get(code)
        if id_ is None:
            continue
        case = next((c for c in _cases(record) if c.get("status") == status), {})
        out.append(Finding(id_, f"[{code}] {f.get('text')}", "candidate" if code in ("X006", "X013") else "verifier",
                           f.get("help") or "mend the place that is named; the gates passed it, so a check that catches it is worth proposing",
                           "the simulator runs the same case, order and seed without the fault", line=f.get("line"),
                           numbers={"trace": list(f.get("trace") or ()), "shape": case.get("shape"), "order": case.get("policy"), "seed": case.get("seed")},
                           basis=("simulated",), certain=True))  # fmt: skip
    return out


def _static(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    diagnostics = [d for d in (record.get("verify") or {}).get("diagnostics", []) if d.get("severity") == "error"]
    out = []
    for d in diagnostics[:3]:
        fix = next(iter(d.get("fixes") or ()), None)
        edit = d.get("help") or ("apply the fix that the diagnostic carries" if fix else "edit the place that the diagnostic names")
        out.append(Finding("E02", f"[{d.get('code')}] {d.get('message')}", "candidate", edit, "the gates pass the schedule after the edit",
                           line=(d.get("span") or {}).get("line"), numbers={k: v for k, v in (d.get("facts") or {}).items()},
                           basis=("verified",), certain=True))  # fmt: skip
    return out or [Finding("E02", str(record.get("summary", "rejected")), "candidate", "see the summary", "the gates pass the schedule", basis=("verified",))]


def _undecided(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    return [Finding("E09", str(record.get("summary", "the gates could not decide")), "candidate", "declare what the note asks for: a target, extents, an assumption",
                    "the gates decide without the declaration", basis=("verified",), certain=True)]  # fmt: skip


def _compile(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    remarks = [r for r in (record.get("compile") or {}).get("remarks", []) if r.get("severity") == "error"]
    first = remarks[0] if remarks else {}
    starved = str(first.get("code", "")).startswith("C76")
    if starved and program is not None:
        return [Finding("B16", f"the assembler cannot allocate registers for `{program.name}`: {first.get('text')}", "candidate",
                        "use a narrower accumulator or fewer threads, so that the launch value is at least 26 registers more than the accumulator takes",
                        "the same text compiles with a narrower accumulator", line=first.get("line"), numbers={"code": first.get("code"), "threads": program.threads},
                        basis=("compiled",), certain=True)]  # fmt: skip
    return [Finding("E03", f"the gates accept it and the compiler refuses it: {first.get('text') or record.get('summary')}", "lowering",
                    "report the schedule: what is printed for it, or what the gates allow, is wrong", "the generated text compiles elsewhere with the same compiler",
                    line=first.get("line"), numbers={"code": first.get("code")}, basis=("compiled",), certain=True)]  # fmt: skip


def _not_lowered(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    fault = (record.get("compile") or {}).get("fault") or {}
    return [Finding("E04", f"this build does not lower it yet: {fault.get('message') or record.get('summary')}", "lowering",
                    fault.get("help") or "use a form that is lowered, or stay with the simulator", "a later build lowers the same text",
                    line=(fault.get("span") or {}).get("line"), basis=("compiled",), certain=True)]  # fmt: skip


def _hang(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    """The barrier at the source of the wait graph: the one whose arrivals come from a role that does not wait itself, or waits for it."""
    waits = list((record.get("hang") or {}).get("waits", []))
    if not waits:
        return [Finding("E01", "a wait does not end, and no wait was reported", "verifier", "run the simulator on the failing shape", "the run ends",
                        basis=("measured",), absent=("hang records",))]  # fmt: skip
    first = _source(waits, program)
    name, line, givers = str(first.get("barrier")), None, ""
    if program is not None and name in program.barriers:
        line = program.barriers[name].span.line
        shares = arrivals(program)[name].shares
        givers = ", ".join(f"`{s.role}` ({s.count} a phase, line {s.sites[0].op.span.line})" if s.sites else f"`{s.role}`, which never arrives" for s in shares)
    claim = f"`{first.get('role')}` waits for `{name}[{first.get('stage')}]` at position {first.get('iteration')} and nobody completes that phase"
    return [Finding("E01", claim, "verifier", f"look at the arrivals of {givers or 'its producers'}: one is missing, guarded, or on another slot",
                    "the simulator completes the same shape under every interleaving", line=line, role=str(first.get("role")),
                    numbers={"stage": first.get("stage"), "parity": first.get("parity"), "position": first.get("iteration"), "warps": first.get("warps"),
                             "blocks": (record.get("hang") or {}).get("blocks")},
                    basis=("measured",), certain=True)]  # fmt: skip


def _source(waits: list[dict[str, Any]], program: Program | None) -> dict[str, Any]:
    if program is None:
        return waits[0]
    waiting = {w.get("role") for w in waits}
    for w in sorted(waits, key=lambda w: w.get("iteration") or 0):
        barrier = program.barriers.get(str(w.get("barrier")))
        if barrier is not None and not (set(barrier.prod) & waiting):
            return w
    return min(waits, key=lambda w: w.get("iteration") or 0)


def _out_of_bounds(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    bands = next((c.get("bands") for c in _cases(record) if c.get("bands")), None) or {}
    names = ", ".join(f"`{n}`" for n in bands) or "an output"
    line = _store_line(program, next(iter(bands), ""))
    return [Finding("E05", f"bytes beside {names} were written", "verifier", "bound the coordinates of the store, or give it a mask",
                    "the same run leaves the guard bands untouched", line=line, numbers={"bands": dict(bands)}, basis=("measured",), certain=True)]  # fmt: skip


def _input(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    return [Finding("E06", str(record.get("summary", "an input was changed")), "candidate", "store to the output that was meant",
                    "the input's digest is the same before and after", basis=("measured",), certain=True)]  # fmt: skip


def _device(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    return [Finding("E07", str(record.get("summary", "the device reported a fault")), "verifier", "run the simulator on the failing shape; it checks every address",
                    "the fault appears for a schedule that is known to be right", basis=("measured",),
                    absent=("the address, which the driver does not give",))]  # fmt: skip


def _environment(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    return [Finding("E08", f"nothing is known about the kernel: {record.get('summary', '')}", "environment", "run it again, or see `cake doctor`",
                    "the same candidate fails the same way elsewhere", basis=("measured",))]  # fmt: skip


def _nondeterministic(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    return [Finding("W12", str(record.get("summary", "two runs differ")), "verifier", "look for a missing wait, fence or sync between the last write and the store",
                    "the two runs agree when one wait is made stronger", line=_store_line(program, ""), basis=("measured",), certain=True)]  # fmt: skip


def _cases(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((record.get("numerics") or {}).get("cases", []))


def _store_line(program: Program | None, tensor: str) -> int | None:
    """The line of the first store to `tensor` (any tensor, if it is not named)."""
    if program is None:
        return None
    for op in program.ops:
        if op.name in ("tma_store", "store", "tma_reduce", "bulk_store") and "tensor" in op.attrs and tensor in ("", op.attrs["tensor"]):
            return op.span.line
    return None


# Faults of the simulated machine, by the finding that they are.
_SIMULATED = {
    "X001": "E01", "X002": "E01", "X003": "E07", "X004": "W12", "X005": "W12", "X006": "E05", "X007": "W08", "X008": "W12", "X009": "W12", "X010": "E01",
    "X012": "E01", "X013": "E08",
}  # fmt: skip

_MAKERS = {
    "STATIC_REJECT": _static, "UNDECIDED": _undecided, "COMPILE_ERROR": _compile, "NOT_LOWERED": _not_lowered, "HANG": _hang, "TIMEOUT": _hang,
    "OUT_OF_BOUNDS": _out_of_bounds, "INPUT_MODIFIED": _input, "RUNTIME_ERROR": _device, "INFRA_ERROR": _environment, "SKIPPED": _environment,
    "CANCELLED": _environment, "NONDETERMINISTIC": _nondeterministic, "WORKLOAD_REJECTED": _environment, "INVALID_REFERENCE": _environment,
}  # fmt: skip
