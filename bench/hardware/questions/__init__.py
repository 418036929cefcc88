"""One file a question: `CONTRACT` (rows of the hardware contracts), `ASKS`, `SOURCE` (kernels), `CASES`, and `answer(bench, case)`."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def questions() -> dict[str, ModuleType]:
    """All of them by name."""
    return {m.name: importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)}
