"""`python -m cake_backend.toolchain.probe [--ptxas PROGRAM] [--table]`: exit status 1 where tables and assembler disagree."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cake_backend.toolchain.compile import nvrtc_version
from cake_backend.toolchain.probe.assemble import NoAssembler
from cake_backend.toolchain.probe.compare import Row, compare, table_disagreements
from cake_ir.targets import TARGETS


def main(arguments: Sequence[str] | None = None) -> int:
    """Derive the table again and compare."""
    parser = argparse.ArgumentParser(prog="python -m cake_backend.toolchain.probe", description=__doc__)
    parser.add_argument("--ptxas", metavar="PROGRAM", help="this assembler in place of NVRTC")
    parser.add_argument("--table", action="store_true", help="print the whole table: A taken, W with a warning, . rejected")
    options = parser.parse_args(arguments)
    try:
        rows = compare(ptxas=options.ptxas)
    except NoAssembler as error:
        print(f"not probed: {error}", file=sys.stderr)
        return 2
    if options.table:
        print("\n".join(table(rows)))
    wrong = [r for r in rows if not r.agrees and not r.excused]
    other = table_disagreements(rows)
    for r in wrong:
        print(f"{r.claim.subject}: {r.claim.form.name} on {r.claim.target}: our tables say {'usable' if r.claim.usable else 'not'}, the assembler {r.answer.mark} {r.answer.message}")
    print("\n".join(other), end="\n" if other else "")
    for reason, taken in excuses(rows).items():
        print(f"taken by the assembler and refused by Cake, since {reason}: {', '.join(taken)}")
    source = options.ptxas or nvrtc_version()
    print(f"{len(rows)} claims on {len(TARGETS)} targets against {source}: {len(wrong) + len(other)} disagreements, {sum(r.excused for r in rows)} meant")
    return 1 if wrong or other else 0


def table(rows: Sequence[Row]) -> list[str]:
    """One line a form, one mark a target."""
    marks: dict[str, dict[str, str]] = {}
    for r in rows:
        marks.setdefault(f"{r.claim.subject}: {r.claim.form.name}", {})[r.claim.target] = r.answer.mark
    return [" ".join(TARGETS), *(f"{''.join(by.get(t, ' ') for t in TARGETS)} {name}" for name, by in marks.items())]


def excuses(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Forms by the reason for which they are refused although they assemble."""
    out: dict[str, list[str]] = {}
    for r in rows:
        if r.excused:
            out.setdefault(r.claim.meant, []).append(f"{r.claim.form.name} ({r.claim.target})")
    return out


if __name__ == "__main__":
    sys.exit(main())
