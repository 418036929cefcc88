"""A run record in brief: what an agent needs to decide what to do next; the rest stays in the record."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..cleaning import clip

_CASES = 4
_REMARKS = 6
_SHAPES = 8


def brief(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The sections of a record that it has: compile, numerics, timing, prediction; each with the label of its figures."""
    makers = {"compile": _compile, "numerics": _numerics, "timing": _timing, "prediction": _prediction}
    return {name: make(record[name]) for name, make in makers.items() if isinstance(record.get(name), dict) and record[name]}


def lines(sections: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The same as one line a section."""
    return [f"{name} ({section.get('label', '')}): {clip(_flat(section), 300)}" for name, section in sections.items()]


def _compile(section: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"label": section.get("label", "compiled")}
    out |= _kept(section, ("ok", "status", "target", "compiler", "seconds", "cached"))
    out |= _kept(section.get("resources") or {}, ("registers", "spill_stores", "spill_loads", "stack"))
    out |= _kept(section, ("smem", "serialised"))
    remarks = section.get("remarks") or []
    out["remarks"] = [
        f"{r.get('code') or r.get('severity')} line {r.get('line')}: {clip(str(r.get('text', '')), 200)}" for r in remarks[:_REMARKS]
    ]
    loops = {
        kernel: code["hot_loop"]["counts"] for kernel, code in (section.get("machine_code") or {}).items() if (code or {}).get("hot_loop")
    }
    if loops:
        out["hot_loop"] = loops
    return out


def _numerics(section: Mapping[str, Any]) -> dict[str, Any]:
    cases = section.get("cases") or []
    out = {"label": section.get("label", ""), "ok": section.get("ok"), "cases": len(cases), "wrong": section.get("wrong", 0)}
    ratios = [o["worst"] for c in cases for o in (c.get("outputs") or {}).values() if isinstance(o.get("worst"), int | float)]
    if ratios:
        out["worst_error_over_tolerance"] = round(max(ratios), 4)
    failing = [case for case in cases if not str(case.get("status", "")).startswith("PASSED")]
    out["failing"] = [_case(case) for case in failing[:_CASES]]
    return out


def _case(case: Mapping[str, Any]) -> dict[str, Any]:
    if case.get("heldout"):  # shapes that an agent must not learn by probing: the outcome is all it gets
        return {"heldout": True, "status": case.get("status")}
    out = _kept(case, ("shape", "axes", "distribution", "policy", "status", "summary"))
    for name, output in (case.get("outputs") or {}).items():
        if not output.get("ok", True):
            out[name] = _kept(
                output, ("reason", "failures", "elements", "worst", "worst_at", "pattern", "clusters", "nonfinite_mismatches")
            )
            if isinstance(out[name].get("clusters"), list):
                out[name]["clusters"] = out[name]["clusters"][:3]
    return out


def _timing(section: Mapping[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in section.items() if key != "shapes"}
    kept = ("shape", "seconds", "low", "high", "tflops", "gbytes_per_s", "floor_over_time", "samples", "trusted", "status", "reason", "cycles")
    out["shapes"] = [_kept(shape, kept) for shape in (section.get("shapes") or [])[:_SHAPES]]
    return out


def _prediction(section: Mapping[str, Any]) -> dict[str, Any]:
    out = _kept(section, ("label", "device", "shape", "covered", "binding", "seconds", "seconds_low", "seconds_high"))
    shapes: Sequence[Mapping[str, Any]] = section.get("shapes") or []
    out["shapes"] = [
        {**_kept(shape, ("shape", "tier", "binding")), **_rounded(shape.get("ratio_to_floor")), "withheld": _withheld(shape)}
        for shape in shapes[:_SHAPES]
    ]
    clock = next((shape["clock"] for shape in shapes if shape.get("clock")), None)
    return out | ({"clock": clock} if clock else {})


def _withheld(shape: Mapping[str, Any]) -> list[str]:
    return [f"{w.get('code')}: {clip(str(w.get('text', '')), 160)}" for w in (shape.get("withheld") or [])[:2]]


def _rounded(ratio: Any) -> dict[str, float]:
    return {"ratio_to_floor": round(ratio, 4)} if isinstance(ratio, int | float) else {}


def _kept(section: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: section[name] for name in names if section.get(name) is not None}


def _flat(section: Mapping[str, Any]) -> str:
    def shown(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{k}={shown(v)}" for k, v in section.items() if k != "label" and not isinstance(v, dict | list))
