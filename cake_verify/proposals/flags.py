"""Flags between blocks put right: a wait or a signal that is missing, names another word, or asks for another value than the other side gives.

What is handed on tells the words: who reads `LAST` at `t.r - 1` waits for the word of `t.r - 1`, who stores it at `t.r` raises that of `t.r`.
Where both touch one place blocks take turns: one word, and each raises it to one more than it waited for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cake_ir.record import record
from cake_verify.proposals.source import Placed, Proposal, Source, called, option


@record()
class _Flag:
    """A wait for a word, or a signal of one."""

    at: Placed
    word: ast.expr
    value: ast.expr


@record()
class _Handed:
    """A tensor that one statement stores and another one loads, and the coordinate in which the two differ (empty texts: none)."""

    stored: Placed
    loaded: Placed
    own: str
    other: str


def protocol(s: Source) -> Iterator[Proposal]:
    """Edits of waits and signals, or new ones, for every tensor of flags."""
    handed = _handed(s)
    if handed is None:
        return
    for name in (p.name for p in s.program.tensors.values()):
        spins, signals = _flags(s, "spin", name), _flags(s, "signal", name)
        if len(spins) + len(signals) == 0 or len(spins) > 1 or len(signals) > 1:
            continue
        if not spins:
            yield from _wait(s, name, signals[0], handed)
        elif not signals:
            yield from _raise(s, name, spins[0], handed)
        else:
            yield from _both(s, spins[0], signals[0], handed)


def _flags(s: Source, kind: str, name: str) -> list[_Flag]:
    out = []
    for p in s.statements:
        if p.name == kind and p.call is not None and len(p.call.args) >= 1 and s.source(p.call.args[0]) == name:
            word, value = option(p.call, "i", 1), option(p.call, "value", 2)
            if word is not None and value is not None:
                out.append(_Flag(p, word, value))
    return out


def _handed(s: Source) -> _Handed | None:
    """What a role stores and loads again, loads nested in expressions included."""
    for name in s.program.tensors:
        stores = [(p, n) for p in s.statements for n in _calls(p.node) if called(n) in ("store", "tma_store") and n.args and s.source(n.args[0]) == name]
        loads = [(p, n) for p in s.statements for n in _calls(p.node) if called(n) in ("load", "tma_load") and n.args and s.source(n.args[0]) == name]
        if not stores or not loads:
            continue
        (stored, a), (loaded, b) = stores[-1], loads[0]
        mine, theirs = option(a, "coords"), option(b, "coords")
        if not isinstance(mine, ast.Tuple) or not isinstance(theirs, ast.Tuple) or len(mine.elts) != len(theirs.elts):
            continue
        pairs = [(s.source(x), s.source(y)) for x, y in zip(mine.elts, theirs.elts, strict=True)]
        apart = [p for p in pairs if p[0] != p[1]]
        if len(apart) <= 1:
            return _Handed(stored, loaded, *(apart[0] if apart else ("", "")))
    return None


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    if not isinstance(node, (ast.For, ast.If, ast.With)):
        yield from (n for n in ast.walk(node) if isinstance(n, ast.Call))


def _wait(s: Source, name: str, signal: _Flag, handed: _Handed) -> Iterator[Proposal]:
    """A wait in front of what reads."""
    word = handed.other or s.source(signal.word)
    value = s.source(signal.value) if handed.other else _less(s, signal.value)
    if value:
        text = f"lm.spin({name}, {word}, {value})"
        yield Proposal("flag", (s.before(handed.loaded.node, text),), f"insert `{text}`", handed.loaded.line)


def _raise(s: Source, name: str, spin: _Flag, handed: _Handed) -> Iterator[Proposal]:
    """A signal behind what is stored last."""
    word = handed.own or s.source(spin.word)
    value = s.source(spin.value) if handed.own else f"{s.source(spin.value)} + 1"
    text = f"lm.signal({name}, {word}, {value})"
    yield Proposal("flag", (s.after(handed.stored.node, text),), f"insert `{text}`", handed.stored.line)


def _both(s: Source, spin: _Flag, signal: _Flag, handed: _Handed) -> Iterator[Proposal]:
    """The word or the value of the side that does not fit."""
    waits, raises = s.source(spin.word), s.source(signal.word)
    if handed.other:
        if waits != handed.other:
            yield _word(s, spin, handed.other)
        if raises != handed.own:
            yield _word(s, signal, handed.own)
        yield from _values(s, spin, signal)
    else:
        if waits != raises:
            wrong = spin if isinstance(spin.word, ast.Constant) or (len(waits) > len(raises) and not isinstance(signal.word, ast.Constant)) else signal
            yield _word(s, wrong, raises if wrong is spin else waits)
        yield from _turns(s, spin, signal)


def _word(s: Source, f: _Flag, text: str) -> Proposal:
    return Proposal("flag", (s.replace(f.word, text),), f"name the word `{text}`", f.at.line)


def _value(s: Source, f: _Flag, text: str) -> Proposal:
    return Proposal("flag", (s.replace(f.value, text),), f"write `{text}`", f.at.line, 0.1)


def _values(s: Source, spin: _Flag, signal: _Flag) -> Iterator[Proposal]:
    """Both sides name one value: the one that is computed is the odd one, or the one that is no more than what words start with."""
    waits, raises = s.source(spin.value), s.source(signal.value)
    if waits != raises:
        nothing = isinstance(signal.value, ast.Constant) and signal.value.value == 0
        wrong = signal if nothing or (isinstance(signal.value, ast.BinOp) and not isinstance(spin.value, ast.BinOp)) else spin
        yield _value(s, wrong, raises if wrong is spin else waits)


def _turns(s: Source, spin: _Flag, signal: _Flag) -> Iterator[Proposal]:
    """A turn is raised to one more than was waited for, and the first one waits for zero."""
    mine, theirs = _split(s, spin.value), _split(s, signal.value)
    if mine[0] != theirs[0]:
        return
    if mine[1]:
        yield _value(s, spin, mine[0])
    if theirs[1] != 1:
        yield _value(s, signal, f"{mine[0]} + 1")


def _split(s: Source, e: ast.expr) -> tuple[str, int]:
    """An expression without the numbers added at its end, and their sum."""
    more = 0
    while isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)) and isinstance(e.right, ast.Constant) and isinstance(e.right.value, int):
        more += e.right.value if isinstance(e.op, ast.Add) else -e.right.value
        e = e.left
    return s.source(e), more


def _less(s: Source, e: ast.expr) -> str:
    """One less than the value of a signal, where that is written as a sum."""
    text, more = _split(s, e)
    return text if more == 1 else f"{text} + {more - 1}" if more > 1 else ""


__all__ = ["protocol"]
