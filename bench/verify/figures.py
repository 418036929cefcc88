"""The benchmark's figures from its records: recall, false alarms, localisation and repair, by class and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from bench.verify.mutate import VALUES

Record = dict[str, Any]

CLAIMS = ("N", "H", "D014", "D015", "Q001", "Q006", "Q007", "D009", "S010", "S018", "S028", "S015", "S031", "S035")
"""Codes, or their first letters, that object to what a text states, whether or not a run suffers: construction, hardware contracts, views
past their pool or off their swizzle's pattern, meetings of other warps than those declared (whose number may be the same by chance), registers read before they are written, dead writes, slots before the first, members that all write one place, turns passed on that are not held, a cluster stated in two ways, a barrier
that counts arrivals of a kind that it does not get. No simulation can confirm them."""


def kind_of(r: Record) -> str:
    """`harmful`, `harmless`, `refused`, `contract` (wrong by a hardware contract that no simulation shows) or `unknown`."""
    state = r["truth"]["state"]
    if r["contract"]:
        return "contract"
    if state == "harmless" and r["errors"] and all(e["code"].startswith(CLAIMS) for e in r["errors"]):
        return "contract"
    return state


def _hit(spans: Sequence[Sequence[int]], lines: Iterable[int]) -> bool:
    return any(lo <= n <= hi for lo, hi in spans for n in lines)


def spans(r: Record) -> list[list[int]]:
    """The spans of a verdict in reading order: first error, what it relates to, the next error."""
    out: list[list[int]] = []
    for e in r["errors"]:
        out.append(e["lines"])
        out.extend(e["related"])
    return out


def localised(r: Record) -> tuple[bool, bool]:
    """Whether the mutated line or a neighbour is in the primary span, and in the first four."""
    found = spans(r)
    return _hit(found[:1], r["near"]), _hit(found[:4], r["near"])


TWO_SIDED = ("Q002",)
"""Codes that say that two roles disagree, of which no analysis can tell the wrong one."""


def right_role(r: Record, role_lines: dict[str, dict[str, list[int]]]) -> bool | None:
    """Whether the first error speaks of a role that the mutation concerns; None where it is about a declaration of none."""
    e = r["errors"][0]
    if e["role"] is not None:
        return e["role"] in r["roles"]
    if _hit([e["lines"]], r["lines"]):
        return True
    blocks = role_lines[r["subject"]]
    named = [role for span in (e["lines"], *e["related"]) for role, (lo, hi) in blocks.items() if lo <= span[0] <= hi]
    if not named:
        return None
    return any(role in r["roles"] for role in (named if e["code"] in TWO_SIDED else named[:1]))


def row(name: str, records: Sequence[Record], role_lines: dict[str, dict[str, list[int]]]) -> dict[str, Any]:
    """Figures of one class."""
    kinds = Counter(kind_of(r) for r in records)
    harmful = [r for r in records if kind_of(r) == "harmful"]
    harmless = [r for r in records if kind_of(r) == "harmless"]
    caught = [r for r in harmful if r["verdict"] == "fail"]
    contract = [r for r in records if kind_of(r) == "contract"]
    places = [localised(r) for r in caught]
    roles = [x for x in (right_role(r, role_lines) for r in caught) if x is not None]
    repairs = Counter(r["repair"] for r in caught if "repair" in r)
    searches = Counter(r["search"] for r in caught if "search" in r)
    return {
        "class": name, "mutants": len(records), "refused": kinds["refused"], "unknown": kinds["unknown"],
        "contract": len(contract), "contract_caught": sum(r["verdict"] == "fail" for r in contract),
        "harmful": len(harmful), "caught": len(caught), "missed": [r["key"] for r in harmful if r["verdict"] == "pass"],
        "undecided": sum(r["verdict"] == "undecided" for r in harmful + harmless),
        "harmless": len(harmless), "false_alarms": [r["key"] for r in harmless if r["verdict"] == "fail"],
        "primary": sum(a for a, _ in places), "first_four": sum(b for _, b in places),
        "role_known": len(roles), "right_role": sum(roles),
        "repairs_tried": sum(repairs.values()), "repairs": dict(repairs),
        "searches_tried": sum(searches.values()), "searches": dict(searches),
    }  # fmt: skip


def summary(records: Sequence[Record], role_lines: dict[str, dict[str, list[int]]], drawn: set[str] | None = None) -> dict[str, Any]:
    """All figures: a row a class, and one in all; of the mutants with these digests where others were drawn class by class."""
    by: dict[str, list[Record]] = {}
    for r in records:
        by.setdefault(r["cls"], []).append(r)
    order = sorted(by, key=lambda name: (name in VALUES, name))
    fair = [r for r in records if drawn is None or r["digest"] in drawn]
    return {
        "classes": [row(name, by[name], role_lines) for name in order],
        "total": row("synchronisation", [r for r in fair if r["cls"] not in VALUES], role_lines),
        "values": row("values", [r for r in fair if r["cls"] in VALUES], role_lines),
    }


def times(found: Sequence[Record]) -> dict[str, float]:
    """Median and 95th percentile of the milliseconds in records."""
    ms = sorted(r["ms"] for r in found)
    return {"median": round(median(ms), 2), "p95": round(ms[int(0.95 * (len(ms) - 1))], 2)} if ms else {}


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:5.1f}" if whole else "    -"


def table(figures: dict[str, Any]) -> str:
    """The figures as a table for people."""
    head = f"{'class':22s} {'n':>5} {'ref':>4} {'?':>3} {'ctr':>7} {'harmful':>7} {'caught%':>7} {'harmless':>8} {'flagged':>7} {'undec':>5} {'prim%':>6} {'top4%':>6} {'role%':>6} {'fix%':>6} {'search%':>7}"
    lines = [head, "-" * len(head)]
    for r in [*figures["classes"], figures["total"], figures["values"]]:
        lines.append(
            f"{r['class']:22s} {r['mutants']:5d} {r['refused']:4d} {r['unknown']:3d} {r['contract_caught']:3d}/{r['contract']:3d} {r['harmful']:7d} {_percent(r['caught'], r['harmful']):>7} {r['harmless']:8d} "
            f"{len(r['false_alarms']):7d} {r['undecided']:5d} {_percent(r['primary'], r['caught']):>6} {_percent(r['first_four'], r['caught']):>6} "
            f"{_percent(r['right_role'], r['role_known']):>6} {_percent(r['repairs'].get('good', 0), r['repairs_tried']):>6} "
            f"{_percent(r['searches'].get('good', 0), r['searches_tried']):>7}"
        )
    return "\n".join(lines)
