"""Findings from wrong numbers: which tiles, which member, which part of the sum, and which conditions bring the fault out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cake_backend.cost.scalars import NoValue, value
from cake_backend.diagnose.finding import Finding
from cake_backend.diagnose.tiles import OutputTiles, output_tiles, unused_fields
from cake_ir.derive.structure import sites
from cake_ir.program import For, Program

_GATES = "if the gates passed it, propose a check that catches it"


def number_findings(record: Mapping[str, Any], program: Program | None) -> list[Finding]:
    """Findings for every wrong output of the first wrong case, and for what tells right cases from wrong ones."""
    section = record.get("numerics") or {}
    label = str(section.get("label", "measured"))
    cases = [c for c in section.get("cases", []) if isinstance(c, dict)]
    wrong = [c for c in cases if c.get("status") == "INCORRECT_NUMERICAL"]
    if not wrong:
        return []
    shown = next((c for c in wrong if c.get("outputs")), None)
    if shown is None:
        return [Finding("W09", "only held-out cases are wrong; of them only the outcome is told", "candidate",
                        "make the schedule right for every shape and kind of data that the task admits: tails, non-finite values, ties",
                        "a declared case fails too", basis=(label,), absent=("where the errors lie",))]  # fmt: skip
    out: list[Finding] = []
    for name, verdict in (shown.get("outputs") or {}).items():
        if not verdict.get("ok", True):
            out += _output(name, verdict, shown, program, label)
    return out + _conditions(cases, program, label)


def _output(name: str, v: Mapping[str, Any], case: Mapping[str, Any], program: Program | None, label: str) -> list[Finding]:
    tiles = output_tiles(program, name) if program is not None else None
    line = tiles.op.span.line if tiles else None
    share = v.get("failures", 0) / max(1, v.get("elements", 1))
    where = f"shape `{case.get('shape')}` with `{case.get('distribution')}` data"
    numbers: dict[str, Any] = {"failures": v.get("failures"), "elements": v.get("elements"), "worst": v.get("worst_at"), "pattern": v.get("pattern") or None}
    absent = () if program is not None else ("the program: tiles cannot be named",)
    out: list[Finding] = []
    if (v.get("extra") or {}).get("out_of_range") or (v.get("extra") or {}).get("different_index"):
        return [_index(name, v, where, line, label)]
    unwritten = (case.get("unwritten") or {}).get(name, 0)
    if unwritten:
        out.append(_unwritten(name, unwritten, tiles, program, where, line, label))
    bad = v.get("nonfinite_mismatches") or 0
    if bad and not unwritten:
        out.append(_nonfinite(name, bad, v, program, where, line, label, numbers))
    located = _located(name, v, case, program, tiles, where, line, label, numbers, absent)
    if located is not None:
        out.append(located)
    if not bad:
        part = _missing_part(name, v, case, program, where, label)
        out += [part] if part else []
    if not bad and (v.get("relation") or {}).get("kind") in _RELATIONS:
        related = _related(name, v["relation"], where, line, label)
        if located is None:
            out.append(related)
        else:  # one fault: where it lies and what it is
            out[out.index(located)] = replace(located, claim=f"{located.claim}; {v['relation']['text']}", edit=f"{related.edit}; {located.edit}", numbers={**located.numbers, **related.numbers})
    if not out:
        said = f"{v.get('failures')} of {v.get('elements')} elements of `{name}` are wrong for {where}, spread out ({share:.1%})"
        if label == "simulated" and case.get("policy") == "canonical":
            said, route = f"{said}, with nothing running out of order", "candidate"
            edit = "compare what the schedule computes with the task: constants, the order of conversions, operands of the same shape in each other's place"
            refuted = "the same case is right in another order of execution"
        else:
            route, refuted = "verifier", "the errors lie in the same places in every run"
            edit = f"look for a missing wait or fence (a race gives scattered errors), or for a rounding that the task does not allow; {_GATES}"
        out.append(Finding("W09", said, route, edit, refuted, line=line, numbers=numbers, basis=(label,), absent=absent))
    return out


_RELATIONS: dict[str, tuple[str, str, str]] = {
    "factor": ("W13", "look for a scale that is missing, applied twice or taken of another row or column: scales of quantisation, 1/sqrt(d), a sum's reciprocal, ln 2",
               "the ratio of found to expected varies where the wrong elements share one number"),
    "offset": ("W14", "look for a bias or residual that is missing, added twice or taken of another row or column",
               "the difference of found and expected varies where the wrong elements share one number"),
    "transposed": ("W15", "take `.T` off an operand, or put it there, and compare the form of the fragment with how the view is stored", "the values are right when the view is read untransposed"),
    "moved": ("W15", "compare coordinates and slots of what is loaded and stored there, and the swizzle on both sides of the view", "the values found belong nowhere else in the output"),
}  # fmt: skip
"""By kind of relation: the finding's id, what to edit, and what would refute it."""


def _related(name: str, relation: Mapping[str, Any], where: str, line: int | None, label: str) -> Finding:
    code, edit, refuted = _RELATIONS[relation["kind"]]
    return Finding(code, f"in `{name}`, for {where}, {relation['text']}", "candidate", edit, refuted, line=line, numbers=dict(relation["numbers"]), basis=(label,))


def _index(name: str, v: Mapping[str, Any], where: str, line: int | None, label: str) -> Finding:
    extra = v["extra"]
    if extra.get("out_of_range"):
        claim = f"{extra['out_of_range']} indices in `{name}` name no candidate for {where}"
        edit = "mask the tail before the running minimum, and start it at index 0"
    elif extra.get("ties_not_lowest"):
        claim = f"{extra['ties_not_lowest']} ties in `{name}` do not go to the lowest index for {where}"
        edit = "walk the candidates in ascending order, and give `base=` of the chunk"
    else:
        claim = f"{extra['different_index']} indices in `{name}` are not the best ones for {where}"
        edit = "check the score's expression and the `base=` of the chunk"
    return Finding("W11", claim, "candidate", edit, "the scores reached are within the tolerance", line=line, numbers=dict(extra), basis=(label,), certain=True)


def _unwritten(name: str, count: int, tiles: OutputTiles | None, program: Program | None, where: str, line: int | None, label: str) -> Finding:
    area = tiles.rows * tiles.columns if tiles else 0
    whole = f", {count / area:g} whole tiles of {tiles.rows} x {tiles.columns}" if tiles and area and count % area == 0 else ""
    slices = tiles.step_rows * tiles.step_columns if tiles else 0
    part = f", {count / slices:g} store slices of {tiles.step_rows} x {tiles.step_columns}" if tiles and not whole and slices and count % slices == 0 else ""
    return Finding("W03", f"{count} elements of `{name}` still hold the poison they were filled with for {where}{whole}{part}", "verifier",
                   "let the tile loop and the epilogue's loop cover every tile and slice, edges included; " + _GATES,
                   "the poison is gone and the errors stay", line=line, numbers={"unwritten": count, "tile": area or None}, basis=(label,), certain=True)  # fmt: skip


def _nonfinite(name: str, bad: int, v: Mapping[str, Any], program: Program | None, where: str, line: int | None, label: str, numbers: dict[str, Any]) -> Finding:
    return Finding("W08", f"{bad} elements of `{name}` are NaN or infinite where the oracle's are not (or the other way round) for {where}", "candidate",
                   "check that the first MMA of every tile starts from zero (`init=`), that nothing is read before it is written, and that masks cover the tail",
                   "the elements are finite with the same inputs in the simulator", line=_first_product(program) or line, numbers={**numbers, "non-finite": bad}, basis=(label,))  # fmt: skip


def _located(name: str, v: Mapping[str, Any], case: Mapping[str, Any], program: Program | None, tiles: OutputTiles | None, where: str, line: int | None, label: str,
             numbers: dict[str, Any], absent: tuple[str, ...]) -> Finding | None:  # fmt: skip
    """Whole tiles, edge tiles, one member's rows or one slice's columns; None where the wrong places are not clustered."""
    clusters = list(v.get("clusters") or ())
    pattern = str(v.get("pattern") or "")
    if not clusters and "modulo" in pattern:
        return Finding("W05", f"`{name}` is wrong in a lane pattern for {where}: {pattern}", "candidate",
                       "compare the form of the stored fragment with the swizzle of the view it goes through, and with the tensor's box",
                       "the same rows are right when the view has no swizzle", line=line, numbers=numbers, basis=(label,), absent=absent)  # fmt: skip
    if not clusters or tiles is None:
        if not clusters:
            return None
        boxes = ", ".join(f"rows {c['row']}+{c['rows']} columns {c['column']}+{c['columns']}" for c in clusters[:4])
        return Finding("W01", f"`{name}` is wrong in whole blocks for {where}: {boxes}", "candidate", "look at what these blocks have in common",
                       "the errors lie elsewhere in another run", line=line, numbers=numbers, basis=(label,), absent=absent)  # fmt: skip
    hit = sorted({tiles.tile_of(c["row"], c["column"]) for c in clusters})
    numbers = {**numbers, "tiles": [tiles.name(t) for t in hit[:8]]}
    named = ", ".join(tiles.name(t) for t in hit[:4]) + (", .." if len(hit) > 4 else "")
    extent = _extent(case, v)
    every = _tile_count(tiles, extent)
    share = v.get("failures", 0) / max(1, v.get("elements", 1))
    missing = unused_fields(program, tiles) if program is not None else []
    if missing:
        fields, at = ", ".join(f"`{f}`" for f, _ in missing), missing[0][1]
        return Finding("W01", f"{named} of `{name}` are wrong for {where}, and no load uses the tile's {fields}", "candidate",
                       f"let the coordinates of a load depend on {fields}", f"the tiles are right without it: {fields} is not needed by any operand", line=at,
                       role=tiles.role, numbers=numbers, basis=(label, "schedule"), certain=True)  # fmt: skip
    if extent is not None and _at_edge(hit, tiles, extent):
        return Finding("W02", f"only edge tiles of `{name}` are wrong for {where}: {named}", "candidate",
                       "bound the store at the edge (mask or `rows=`), and let loads past the edge contribute zero",
                       "an inner tile is wrong too", line=line, role=tiles.role, numbers=numbers, basis=(label,), certain=True)  # fmt: skip
    if part := _parts(clusters, tiles, extent):
        return Finding("W04", f"`{name}` is wrong only where {part} writes, for {where}", "candidate",
                       f"check what depends on that index at line {line}: row offsets, columns of the accumulator, slot of the staging view, barrier of the member",
                       "the other members or slices are wrong too", line=line, role=tiles.role, numbers=numbers, basis=(label,))  # fmt: skip
    mma = _first_product(program)
    if share > 0.9 or (every is not None and len(hit) == every > 1 and share > 0.5):
        return Finding("W01", f"every tile of `{name}` is wrong for {where}", "candidate",
                       f"look at what all tiles share: {'`init=` and the operands of the MMA, coordinates along k, ' if mma else 'constants and operands of the expressions, '}"
                       "the conversion, the slice that is stored", "some tile is right", line=mma or line,
                       role=tiles.role, numbers=numbers, basis=(label,))  # fmt: skip
    return Finding("W01", f"whole tiles of `{name}` are wrong for {where}: {named}", "candidate",
                   "compare the coordinates of the loads and of the store of these tiles, and the order in which roles walk the tiles" + _zero(v),
                   "the errors lie in other tiles in another run (then it is a race)", line=line, role=tiles.role, numbers=numbers, basis=(label,))  # fmt: skip


def _first_product(program: Program | None) -> int | None:
    """The line of the first MMA, where there is one."""
    return next((op.span.line for op in program.ops if op.name == "mma"), None) if program is not None else None


def _zero(v: Mapping[str, Any]) -> str:
    worst = v.get("worst_at") or {}
    return "; the worst element is exactly 0, as boxes past a tensor's edge are" if worst.get("found") == 0.0 and worst.get("expected") else ""


def _tile_count(tiles: OutputTiles, extent: tuple[int, int] | None) -> int | None:
    if extent is None:
        return None
    return (-(-extent[0] // tiles.rows) if tiles.rows else 1) * (-(-extent[1] // tiles.columns) if tiles.columns else 1)


def _parts(clusters: Sequence[Mapping[str, Any]], tiles: OutputTiles, extent: tuple[int, int] | None) -> str:
    """The members or slices that hold all wrong blocks, where a tile has others inside the output; empty where every part is hit."""
    members, slices = tiles.parts
    rows, columns = extent or (1 << 30, 1 << 30)
    hit = {tiles.part(c["row"], c["column"]) for c in clusters}
    wrong_members, wrong_slices = {m for m, _ in hit}, {s for _, s in hit}
    whole_rows, whole_columns = rows >= tiles.rows, -(-columns // max(1, tiles.step_columns))
    said = []
    if None not in wrong_members and len(wrong_members) < members and whole_rows:
        said.append(f"member {_list(wrong_members)} of `{tiles.role}`")
    if None not in wrong_slices and len(wrong_slices) < min(slices, whole_columns):
        said.append(f"column slice {_list(wrong_slices)}")
    return ", ".join(said)


def _list(numbers: set[Any]) -> str:
    return ", ".join(str(n) for n in sorted(numbers))


def _extent(case: Mapping[str, Any], v: Mapping[str, Any]) -> tuple[int, int] | None:
    """Rows and columns of the output, where the case's axes show them: the pair whose product is the element count."""
    axes = [int(n) for n in (case.get("axes") or {}).values()]
    if case.get("rows_checked", "all") != "all":
        return None
    return next(((m, n) for m in axes for n in axes if m * n == v.get("elements")), None)


def _at_edge(hit: list[tuple[int, int]], tiles: OutputTiles, extent: tuple[int, int]) -> bool:
    """Whether all wrong tiles are the cut-off last ones along an axis that has whole tiles too."""
    for axis, (size, limit) in enumerate(zip((tiles.rows, tiles.columns), extent, strict=True)):
        last = limit // size if size else 0
        if size and limit % size and last > 0 and all(t[axis] == last for t in hit):
            return True
    return False


def _trips(program: Program, case: Mapping[str, Any]) -> int | None:
    """Trips of the loop that issues MMAs or loads, for the arguments of a case, where its axes give them."""
    axes = case.get("axes") or {}
    loops: dict[int, For] = {id(loop): loop for s in sites(program) if s.op.name in ("mma", "tma_load") for loop in s.loops if loop.kind == "range"}
    for loop in loops.values():
        try:
            assert loop.lo is not None and loop.hi is not None
            return int(value(loop.hi, program, axes, {})) - int(value(loop.lo, program, axes, {}))
        except NoValue:
            continue
    return None


def _missing_part(name: str, v: Mapping[str, Any], case: Mapping[str, Any], program: Program | None, where: str, label: str) -> Finding | None:
    """Sums of positive numbers show how many equal parts are missing or double."""
    worst = v.get("worst_at") or {}
    found, expected = worst.get("found"), worst.get("expected")
    trips = _trips(program, case) if program is not None else None
    if case.get("distribution") != "positive" or not trips or trips < 2 or not isinstance(found, (int, float)) or not isinstance(expected, (int, float)) or not expected:
        return None
    parts = found / expected * trips
    off = round(parts) - trips
    if off == 0 or abs(parts - round(parts)) > 0.2:
        return None
    said = f"{-off} of {trips} k tiles are missing from" if off < 0 else f"{off} of {trips} k tiles are counted twice in"
    line = _first_product(program)
    return Finding("W07", f"{said} the sums of `{name}` for {where}: {found:g} found, {expected:g} expected", "candidate",
                   "compare the trip counts of the loads and of the MMAs, the `init=` of the first MMA, and the wait in front of the store",
                   "the ratio of found to expected is not a whole number of k tiles elsewhere", line=line,
                   numbers={"found": found, "expected": expected, "k tiles": trips, "parts": round(parts, 2)}, basis=(label,))  # fmt: skip


def _conditions(cases: list[dict[str, Any]], program: Program | None, label: str) -> list[Finding]:
    """What right and wrong cases differ in: the kind of data, or whether a ring has wrapped around."""
    seen = [c for c in cases if not c.get("heldout") and str(c.get("status")).startswith(("PASSED", "INCORRECT_NUMERICAL"))]
    bad = [c for c in seen if c["status"] == "INCORRECT_NUMERICAL"]
    good = [c for c in seen if c["status"] != "INCORRECT_NUMERICAL"]
    out: list[Finding] = []
    if not good or not bad:
        return out
    kinds_bad, kinds_good = {c.get("distribution") for c in bad}, {c.get("distribution") for c in good}
    if not kinds_bad & kinds_good:
        names = ", ".join(f"`{k}`" for k in sorted(map(str, kinds_bad)))
        out.append(Finding("W10", f"only {names} data is wrong, {', '.join(f'`{k}`' for k in sorted(map(str, kinds_good)))} is right in every shape", "candidate",
                           "read what that kind of data tries: non-finite values, large sums, ties, equal rows", "another kind of data fails too",
                           numbers={"wrong": len(bad), "right": len(good)}, basis=(label,), certain=True))  # fmt: skip
    if program is not None and program.rings:
        trips_bad = [t for c in bad if (t := _trips(program, c)) is not None]
        trips_good = [t for c in good if (t := _trips(program, c)) is not None]
        for ring in program.rings.values():
            if trips_bad and trips_good and min(trips_bad) > ring.stages >= max(trips_good):
                out.append(Finding("W06", f"cases with at most {ring.stages} k tiles are right and longer ones are wrong: the fault shows when ring `{ring.name}` wraps",
                                   "verifier", f"check who releases a slot of `{ring.name}`, and whether its readers are done by then; {_GATES}",
                                   "a case with fewer k tiles fails, or one with more passes", line=ring.span.line,
                                   numbers={"stages": ring.stages, "least wrong": min(trips_bad), "most right": max(trips_good)}, basis=(label,)))  # fmt: skip
                break
    return out
