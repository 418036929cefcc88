"""The corpus: one folder per kernel family, with its task and one schedule file per architecture.

Schedules are Cake IR text. They look like Python and are never imported: `schedules()` gives their text.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_backend.task import Task

_FOLDER = Path(__file__).parent
_NOT_SCHEDULES = frozenset({"__init__.py", "task.py"})


@dataclass(frozen=True, slots=True)
class CorpusSchedule:
    """One schedule file: its family (the task's name), its name (the file's stem) and its path."""

    family: str
    name: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text()


def families() -> tuple[str, ...]:
    """Names of the folders that hold a task."""
    return tuple(sorted(p.parent.name for p in _FOLDER.glob("*/task.py")))


@lru_cache(maxsize=1)
def tasks() -> dict[str, Task]:
    """The tasks that ship with Cake, by name."""
    found = {}
    for family in families():
        task = importlib.import_module(f"cake_kernels.{family}.task").TASK
        found[task.name] = task
    return found


def schedules() -> tuple[CorpusSchedule, ...]:
    """All schedule files of the corpus, sorted by family and name."""
    return tuple(
        CorpusSchedule(path.parent.name, path.stem, path)
        for path in sorted(_FOLDER.glob("*/*.py"))
        if path.name not in _NOT_SCHEDULES and not path.name.startswith("_")
    )
