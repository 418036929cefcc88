"""The judge: plans what is run, runs it in a process of its own, and decides from raw bytes what it was worth.

The worker imports this package too, so nothing is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cake_backend.judge.evaluation import evaluate
    from cake_backend.judge.status import Status

__all__ = ["Status", "evaluate"]

_WHERE = {"evaluate": "evaluation", "Status": "status"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
