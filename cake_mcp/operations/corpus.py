"""The corpus: every schedule that ships with Cake, as programs that a proposed check must leave alone."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_ir.program import Program


@dataclass(frozen=True, slots=True)
class Entry:
    """One schedule of the corpus: where it is, its text, and its program with default parameters for its first target."""

    name: str
    path: Path
    text: str
    program: "Program"


@functools.cache
def schedules() -> tuple[Entry, ...]:
    """Every schedule in `cake_kernels` that constructs, by family and file."""
    import cake_kernels

    from .programs import programs_of

    return tuple(
        Entry(f"{file.family}/{file.name}:{program.name}", file.path, file.text, program)
        for file in cake_kernels.schedules()
        for program in programs_of(file.text, params={}, target=None)
    )
