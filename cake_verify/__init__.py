"""The gates of Cake: what a schedule does wrong, where, why, and how to mend it. Imports `cake_ir` only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cake_ir  # noqa: F401 - first, for it decides whether the compiled form is taken

if TYPE_CHECKING:
    from cake_verify.diagnostic import Diagnostic
    from cake_verify.gates import verify, verify_text
    from cake_verify.many import Question, verify_many
    from cake_verify.porting import portability
    from cake_verify.rule import explain
    from cake_verify.verdict import Verdict

__all__ = ["Diagnostic", "Question", "Verdict", "explain", "portability", "verify", "verify_many", "verify_text"]

_WHERE = {
    "Diagnostic": "diagnostic", "Verdict": "verdict", "explain": "rule", "portability": "porting", "verify": "gates", "verify_text": "gates",
    "Question": "many", "verify_many": "many",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: a command that prints one page needs no gates."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
