"""Edits that might mend a schedule: what people get wrong, taken back, nearest to where the fault was seen first."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from cake_ir.fault import Cause, Fix
from cake_ir.program import Program
from cake_verify.diagnostic import Diagnostic
from cake_verify.proposals import declarations, flags, operands, results, slots, staging, statements
from cake_verify.proposals.source import Proposal, Source, applied, option

MAKERS: dict[Callable[[Source], Iterator[Proposal]], frozenset[str]] = {
    statements.repeated: frozenset({"duplicate"}),
    statements.missing: frozenset({"insert-wait", "insert-arrive"}),
    statements.swapped: frozenset({"swap", "wait-first", "later", "earlier"}),
    statements.removed: frozenset({"remove", "unguard"}),
    statements.meetings: frozenset({"insert-sync", "insert-drain", "insert-fence", "insert-store-wait", "insert-copy-wait", "insert-tmem-wait", "insert-commit", "insert-turn"}),
    slots.slots: frozenset({"slot", "slot-back", "step", "no-step", "extra-step"}),
    slots.bounds: frozenset({"bound", "round"}),
    slots.guards: frozenset({"guard", "guarded", "condition"}),
    slots.drains: frozenset({"drain", "slack"}),
    declarations.offsets: frozenset({"offset", "pool"}),
    declarations.stages: frozenset({"stages"}),
    declarations.barriers: frozenset({"primed", "arrive", "scope", "roles", "named"}),
    declarations.registers: frozenset({"regs"}),
    declarations.layouts: frozenset({"swizzle"}),
    declarations.columns: frozenset({"columns"}),
    operands.named: frozenset({"barrier"}),
    operands.views: frozenset({"view"}),
    operands.parts: frozenset({"part", "whole"}),
    operands.coordinates: frozenset({"coordinate", "exchange"}),
    operands.products: frozenset({"init", "neutral", "operands"}),
    operands.bounded: frozenset({"clip"}),
    operands.copies: frozenset({"copy"}),
    flags.protocol: frozenset({"flag"}),
    results.stores: frozenset({"result"}),
    staging.unfilled: frozenset({"staged"}),
    results.staged: frozenset({"staged"}),
}  # fmt: skip
"""What makes proposals, with the kinds that each makes."""

FIRST: dict[str, tuple[str, ...]] = {
    "D009": ("init", "neutral", "later", "copy"),
    "D014": ("pool", "offset", "bound", "part"),
    "D015": ("offset", "swizzle", "stages"),
    "D016": ("swizzle", "view", "operands"),
    "D035": ("exchange",),
    "H002": ("stages", "offset"),
    "H003": ("swizzle", "offset"),
    "H006": ("regs",),
    "H008": ("columns",),
    "H012": ("drain", "insert-drain"),
    "Q001": ("part", "coordinate", "condition", "guard"),
    "Q002": ("extra-step", "bound", "step", "no-step", "duplicate", "round", "condition", "guard"),
    "Q006": ("slot", "step", "condition", "guarded", "guard", "swap"),
    "S002": ("barrier", "roles"),
    "S003": ("duplicate", "swap", "view", "insert-wait", "insert-sync", "drain", "insert-drain", "slot-back", "later", "stages", "slot"),
    "S004": ("insert-commit", "insert-wait", "insert-sync", "swap", "drain", "insert-copy-wait", "later", "barrier", "view"),
    "S005": ("drain", "wait-first", "insert-drain", "later", "slot-back", "swap"),
    "S006": ("insert-fence", "swap", "insert-sync"),
    "S007": ("offset", "insert-sync", "part"),
    "S008": ("duplicate", "extra-step", "copy", "barrier", "insert-arrive", "insert-wait", "bound", "guard", "condition", "roles", "primed", "slot", "slot-back", "step", "unguard"),
    "S010": ("named", "duplicate", "insert-sync", "remove"),
    "S011": ("insert-store-wait", "drain", "offset"),
    "S013": ("part",),
    "S014": ("insert-tmem-wait", "insert-commit"),
    "S015": ("insert-turn", "duplicate", "swap", "remove"),
    "S016": ("earlier", "unguard", "guard"),
    "S018": ("arrive", "barrier", "duplicate", "condition"),
    "S019": ("insert-wait", "guard", "step", "no-step"),
    "S020": ("primed", "duplicate", "insert-arrive", "insert-wait", "later", "slot", "stages"),
    "S021": ("duplicate", "slot-back", "slot", "insert-wait", "barrier", "later", "step"),
    "S022": ("duplicate", "slot-back", "slot", "barrier", "guard", "condition", "remove", "step"),
    "S023": ("duplicate", "primed", "barrier", "insert-arrive", "extra-step", "swap", "stages", "step", "slot", "bound"),
    "S025": ("insert-wait", "bound", "insert-drain", "drain", "arrive", "barrier"),
    "S027": ("whole", "copy", "staged", "bound", "view", "slot", "barrier", "insert-wait"),
    "S028": ("result", "view", "copy", "bound", "slot"),
    "S029": ("init", "neutral", "guard", "insert-drain"),
    "S031": ("slot", "step", "condition", "guarded", "guard"),
    "S032": ("stages", "part", "slot"),
    "S033": ("clip",),
    "S034": ("coordinate", "exchange", "part", "operands", "view", "slot"),
    "S035": ("init", "duplicate", "bound", "round", "columns", "coordinate"),
    "S036": ("result", "staged", "view"),
    "S039": ("flag",),
    "S040": ("flag",),
    "S041": ("flag",),
}
"""Kinds of edits that mend a fault of each code, likeliest first."""

BY_CAUSE: dict[Cause | None, tuple[str, ...]] = {
    "columns overwritten": ("columns",),
    "operand turned": ("operands", "exchange", "part", "view"),
    "next sequence": ("guard", "condition"),  # the tile is right, and too much of it is used
    "own copies": ("insert-sync", "swap"),
    "vector laid across": (),  # its elements need coordinates of their own, which no exchange gives them
    "no round": (),  # what follows the loop is right where it has one
    "slot of its own round": ("slot-back",),  # the wait before it leaves one group in flight, as the end of the loop says it should
    "copied behind the wait": ("slot-back", "slot", "insert-copy-wait", "later"),
}
"""Kinds of edits for a fault that says which of several mistakes it is."""

BETTER = frozenset({
    ("H006", "regs"), ("D014", "offset"), ("D014", "bound"), ("S002", "barrier"), ("S003", "view"), ("S005", "drain"), ("S032", "stages"), ("S035", "bound"),
    ("S004", "insert-commit"), ("S008", "roles"), ("S005", "wait-first"), ("H012", "drain"),
})  # fmt: skip
"""Proposals (code, kind) that go in front of the fix that a fault brings itself; a repeated statement always does."""

DOUBTFUL = frozenset({"D010", "H001", "S021", "S028", "S036"})
"""Codes for which the first proposal is a guess."""

MOST_OPS = 400
"""Operations beyond which no edits are looked for: every one is compared with all others. The schedules of today have up to sixty."""

_OTHER = 6.0
_FAR = 30


def propose(text: str, program: Program, errors: Sequence[Diagnostic], usual: bool = False) -> list[Proposal]:
    """Edits for the faults of one schedule, likeliest first; `usual`: only kinds that mend the first fault's code.

    Raises `SyntaxError` or `ValueError` for a text that is not the schedule's.
    """
    if len(program.ops) > MOST_OPS:
        return []
    places = _places(errors)
    unused = str(errors[0].facts.get("place", "")) if errors and errors[0].code == "S036" else ""
    source = Source(text, program, tuple(dict.fromkeys(line for _, line, _ in places))[:8], unused)
    first = FIRST.get(errors[0].code, ()) if errors else ()
    if errors and errors[0].cause in BY_CAUSE:
        first = BY_CAUSE[errors[0].cause]
    if errors and errors[0].code == "S020" and (b := program.barriers.get(str(errors[0].facts.get("barrier")))) is not None and not b.primed:
        first = tuple(kind for kind in first if kind != "primed")  # its first wait does wait
    if errors and errors[0].code == "Q006" and _in_flight(source, errors[0]):
        first = ("guarded", "condition")
    scored: list[tuple[float, int, Proposal]] = []
    seen: set[tuple[object, ...]] = set()
    wanted = {*first, "duplicate", "stages"}
    for maker, kinds in MAKERS.items():
        for p in maker(source) if not usual or kinds & wanted else ():
            key = tuple((e.span, e.text) for e in p.edits)
            if key in seen:
                continue
            seen.add(key)
            kind = first.index(p.kind) * 0.35 if p.kind in first else _OTHER
            wanted_there = p.kind == "view" and _reads_unread(source, p, errors)
            scored.append((p.rank - 3 if wanted_there else kind + p.rank + _distance(p.line, places), len(scored), p))
    scored.sort(key=lambda t: t[:2])
    return [p for _, _, p in scored]


def _unread(errors: Sequence[Diagnostic]) -> str:
    """The title of a proposal to use the view that nobody reads."""
    return f"use `{errors[0].facts.get('view')}`" if errors and errors[0].code == "S028" else ""


def _reads_unread(source: Source, p: Proposal, errors: Sequence[Diagnostic]) -> bool:
    """Whether a proposal has an operation read what nobody reads."""
    here = next((q for q in source.statements if q.line == p.line), None)
    if results.idle(source.program):  # then it is a store that is missing
        return False
    return p.title == _unread(errors) and here is not None and here.name not in ("tma_load", "cp_async", "store")


def _in_flight(source: Source, error: Diagnostic) -> bool:
    """Whether what looks back releases a slot in a loop that leaves products in flight: then the slot is right, and a condition is missing."""
    here = next((p for p in source.statements if p.line == error.span.line), None)
    if here is None or here.name != "arrive" or not here.around:
        return False
    loop = next((x for x in reversed(here.around) if isinstance(x, ast.For)), None)
    return any(q.name == "mma_wait" and q.call is not None and (n := option(q.call, "pending", 0)) is not None and source.source(n) != "0"
               for q in source.of_role(here.role) if loop is not None and loop in q.around)  # fmt: skip


def _places(errors: Sequence[Diagnostic]) -> list[tuple[float, int, int]]:
    """Where faults were seen, with what it costs to be near there instead of at the first place."""
    out: list[tuple[float, int, int]] = []
    for i, e in enumerate(errors[:3]):
        out.append((1.5 * i, e.span.line, e.span.end_line))
        out += [(0.4 + 0.25 * k + 1.5 * i, span.line, span.end_line) for k, (span, _) in enumerate(e.related[:4])]
    return out


def _distance(line: int, places: list[tuple[float, int, int]]) -> float:
    return min((cost + 0.3 * min(max(lo - line, line - hi, 0), _FAR) for cost, lo, hi in places), default=0.0)


def suggested(text: str, program: Program, errors: Sequence[Diagnostic]) -> Fix | None:
    """The fix to put in front of the first fault's own: what comes first to mind where it has none, or where that is known to be better.

    It is not verified; it is `likely` where its kind usually mends faults of that code, else an `idea`.
    """
    first = errors[0]
    own = any(f.grade in ("certain", "likely") for e in errors for f in e.fixes)
    try:
        found = propose(text, program, errors, usual=True)
    except (SyntaxError, ValueError):
        return None
    if not found:
        return None
    p = found[0]
    if own and (first.code, p.kind) not in BETTER and p.kind not in ("duplicate", "stages"):
        return None
    kinds = FIRST.get(first.code, ())
    if p.kind == "view" and p.title == _unread(errors) and not results.idle(program):
        return p.fix("likely")
    if p.kind in ("coordinate", "part", "view", "operands") and not any(lo <= p.line <= hi for _, lo, hi in _places(errors[:1])):
        return None  # an operand of something that the fault does not speak of
    usual = p.kind in kinds and (first.code not in DOUBTFUL or p.kind in ("result", "staged"))
    return p.fix("likely" if usual else "idea")


__all__ = ["Proposal", "applied", "propose", "suggested"]
