"""Names that are nearly right, as edits: where a diagnostic asks `did you mean X?` and the text holds the other name once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from cake_ir.fault import Edit, Fix
from cake_ir.span import Span
from cake_verify.diagnostic import Diagnostic

_ASKED = re.compile(r"did you mean `([\w.]+)`\?")
_NAMES = re.compile(r"`([^`]+)`")


def spelled(d: Diagnostic, lines: Sequence[str]) -> Diagnostic:
    """The diagnostic with an edit that writes the name it asks about, where it has no fix and one place can be meant."""
    asked = _ASKED.search(d.help) if not d.fixes else None
    if asked is None or d.span.line != d.span.end_line or not 0 < d.span.line <= len(lines):
        return d
    meant = asked[1]
    wrong = [name.rpartition(".")[2] for name in _NAMES.findall(d.message)]
    near = max((n for n in wrong if n != meant and re.fullmatch(r"\w+", n)), key=lambda n: SequenceMatcher(None, n, meant).ratio(), default=None)
    if near is None:
        return d
    line = lines[d.span.line - 1]
    places = [m.start() + 1 for m in re.finditer(rf"\b{re.escape(near)}\b", line)]
    inside = [c for c in places if d.span.column <= c < d.span.end_column] or places
    if len(inside) != 1:
        return d
    span = Span(d.span.line, inside[0], d.span.line, inside[0] + len(near))
    return replace(d, fixes=(Fix((Edit(span, meant),), "likely", f"write `{meant}`"),))
