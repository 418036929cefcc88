"""Whether one instruction form may be used on one target: the assembler's verdict corrected by what it does not check.

The table (``data/instructions.json``, about 1,800 forms assembled for every target) is parsed on the first look-up.
"""

from __future__ import annotations

from functools import lru_cache

from cake_ir.record import record


@record()
class Verdict:
    """What is known about ``form`` on ``target``.

    ``usable`` is the answer; ``reason`` says why not, or what the assembler warned about; ``assembles`` what the assembler
    said, which may be yes for an unusable form; ``known`` is False when the table has no such form (``nearest`` then names
    the closest ones); ``contracts`` are the hardware rules (HW ids) that any use must also keep.
    """

    form: str
    target: str
    usable: bool
    assembles: bool
    reason: str = ""
    known: bool = True
    family: str = ""
    contracts: tuple[str, ...] = ()
    scope: str = ""
    nearest: tuple[str, ...] = ()
    needs_newer_assembler: bool = False


@record()
class _Row:
    form: str
    id: str
    verdict: str
    illegal_because: str
    warning: str
    newer: str
    family: str
    scope: str
    contracts: tuple[str, ...]


def _data(name: str) -> dict:
    """One packaged table, parsed."""
    import json  # here, not above: most runs never look an instruction up, and start-up time counts
    from importlib.resources import files

    return json.loads(files("cake_ir.targets").joinpath("data", name).read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, _Row], dict[str, int]]:
    """Rows by id and by form, and the column of each target in a verdict string."""
    raw = _data("instructions.json")
    rows: dict[str, _Row] = {}
    for family in raw["families"]:
        for r in family["forms"]:
            row = _Row(
                r["form"], r["id"], r["ptxas_13_0"], r.get("illegal_because", ""), r.get("warning", "") or r.get("note", ""),
                r.get("ptxas_13_5", ""), family["name"], family["scope"], tuple(family["contracts"]),
            )  # fmt: skip
            rows[row.id] = row
            rows.setdefault(row.form, row)
    return rows, {name: i for i, name in enumerate(raw["verdict_legend"]["order"])}


@lru_cache(maxsize=4096)
def instruction(form: str, target: str) -> Verdict:
    """The verdict on ``form`` (an id or the exact spelling of the table) for ``target``.

    An unknown form is not usable: what was never assembled is not offered. Raises ``KeyError`` for an unknown target.
    """
    rows, columns = _table()
    column = columns[target]
    row = rows.get(form)
    if row is None:
        import difflib

        near = tuple(difflib.get_close_matches(form, rows, n=3, cutoff=0.6))
        return Verdict(form, target, False, False, "the form is not in the instruction table", known=False, nearest=near)
    code = row.verdict[column]
    assembles = code in "AW"
    newer = not assembles and bool(row.newer) and row.newer[column] in "AW"
    if row.illegal_because:
        reason = row.illegal_because
    elif newer:
        reason = f"{target} takes it only from a newer assembler than 13.0"
    elif not assembles:
        others = [name for name, i in columns.items() if row.verdict[i] in "AW"]
        reason = f"{target} does not have it" + (f", it exists on {', '.join(others)}" if others else "")
    else:
        reason = row.warning if code == "W" else ""
    return Verdict(
        form, target, assembles and not row.illegal_because, assembles, reason, True, row.family, row.contracts, row.scope,
        needs_newer_assembler=newer,
    )  # fmt: skip


def forms(prefix: str = "") -> list[str]:
    """Ids of the table that start with ``prefix``, in the table's order."""
    return [key for key, row in _table()[0].items() if key == row.id and key.startswith(prefix)]
