"""On which targets a text would be legal, and why not on the others: construction and the static gates for each of the seven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cake_ir.frontend import parse, specialise
from cake_ir.targets import TARGETS
from cake_verify.gates import ORDER, STATIC, Run, gate
from cake_verify.verdict import ordered


def portability(text: str, *, params: Mapping[str, Any] | None = None, filename: str = "<text>") -> dict[str, dict[str, Any]]:
    """By target: `{"verdict": "pass" | "fail", "diagnostics": [...]}` of the gates that depend on the target.

    The first fix of a refusal, where there is one, is the smallest change that would make the target accept the text.
    """
    module = parse(text, filename)
    given = dict(params or {})
    report: dict[str, dict[str, Any]] = {}
    for target in TARGETS:
        run = Run()
        run.add(module.faults, None, target)
        for template in module.schedules:
            own = {name: value for name, value in given.items() if name in template.tunables}
            made = specialise(template, own, target)
            run.add(made.faults, template.name, target)
            if made.program is not None:
                for name in STATIC:
                    gate(run, name, made.program)
        found = [d for d in ordered(run.found, ORDER) if d.severity == "error"]
        report[target] = {"verdict": "fail" if found else "pass", "diagnostics": [d.to_json() for d in found]}
    return report
