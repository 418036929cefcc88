"""What a loop carries from one round into the next: names that its body reads before it binds them, and binds later.

The body is elaborated once and stands for all rounds, so a compile-time value that it rebinds would be the first round's in every one of
them. A number becomes a value of run time in front of the loop; whatever cannot is a fault.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from itertools import compress, islice
from operator import is_not
from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.frontend.arith import as_expr
from cake_ir.frontend.scope import Elaboration, Local, Lost, Named
from cake_ir.frontend.standing import bound_names, standing
from cake_ir.program import Assign, Expr, Stmt, names_read, statements
from cake_ir.span import Span
from cake_ir.types import FragT, ListT, PairT, ScalarT, SlotT, Type

ATTEMPTS = 6
"""How often a body is elaborated at most: once, and again for each set of names that turn out to be carried."""
UNROLLED = 64
"""Rounds up to which a static loop is written out where it rebinds a compile-time value."""


@dataclass(slots=True)
class Round:
    """One round of a loop while its body is elaborated: names bound so far on every path, and names read before that."""

    bound: set[str]
    read: set[str] = field(default_factory=set)


def note_read(el: Elaboration, name: str) -> None:
    """A name is read for the first time in a loop: every loop in which nothing has bound it yet sees the round before."""
    for r in reversed(el.rounds):
        if name in r.bound:
            return
        r.read.add(name)


def note_bound(el: Elaboration, name: str) -> None:
    if el.rounds:
        el.rounds[-1].bound.add(name)


def changed_names(entry: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names that are new or stand for something else, in the order in which they stand."""
    if [*islice(now, len(entry))] == [*entry]:  # the old ones are where they were, as nearly always: what is compared is no name
        return [*compress(now, map(is_not, now.values(), entry.values())), *islice(now, len(entry), None)]
    return [name for name, v in now.items() if name not in entry or v is not entry[name]]


def rebound(el: Elaboration, entry: dict[str, Any], changed: set[str]) -> list[str]:
    """Names with a compile-time value in front of the loop, of those that the body reads first and binds anew later, where the value is another;
    and those with a uniform number there, of which a round leaves one that was computed from fragments."""
    out = []
    for name in sorted(changed):
        old = entry.get(name, el)  # the elaboration stands for a name that was not there
        if old is el or isinstance(old, Lost):
            continue
        new = left(el.env[name])
        if isinstance(old, Local):
            if old.literal is None and isinstance(new, Local) and _spreads(old.type, new.type):
                out.append(name)
            continue
        if new is not old and not isinstance(new, Lost) and not _equal(new, old):
            out.append(name)
    return out


def left(v: Any) -> Any:
    """What a name was bound to on the path that bound it."""
    return v.seen if isinstance(v, Lost) and v.seen is not None else v


def joined(el: Elaboration, node: ast.If, a: dict[str, Any], b: dict[str, Any]) -> tuple[list[Stmt], list[Stmt], dict[str, Any]]:
    """Numbers that differ at the ends of the two arms of a branch and are read behind it: assignments to add to each arm, and the names then."""
    ends: tuple[list[Stmt], list[Stmt]] = ([], [])
    names: dict[str, Any] = {}
    for name in a:
        x, y = a[name], b.get(name)
        if x is y or name not in b or _equal(x, y) or x == y or not (isinstance(x, (bool, int, float)) or isinstance(y, (bool, int, float))) or not _read_behind(el, node, name):
            continue
        found = [v.type if isinstance(v, Local) else as_expr(el, v, el.span(node)).type for v in (x, y) if isinstance(v, (Local, bool, int, float))]
        wanted = next((v.type for v in (x, y) if isinstance(v, Local)), None) or next((t for t in found if isinstance(t, ScalarT) and t.dtype == "f32"), found[0])
        if len(found) < 2 or not isinstance(wanted, (ScalarT, FragT)) or not all(isinstance(v, Local) or (v is not None and _takes(wanted, v)) for v in (x, y)):
            continue
        span = el.span(node)
        place = next((v.ir_name for v in (x, y) if isinstance(v, Local)), None) or el.fresh(name)
        for v, end in zip((x, y), ends, strict=True):
            if isinstance(v, (bool, int, float)):
                end.append(_start(el, place, v, wanted, span))
        names[name] = Local(place, wanted, span)
    return ends[0], ends[1], names


def never_set(el: Elaboration, node: ast.If, skipped: list[ast.stmt]) -> None:
    """N068 for an arm that no round takes because of a number that only this arm would change; N069 for a number that nothing changes."""
    if not el.rounds:
        return
    name = None
    if skipped and _in_both(el, el.source.through(node.test, node.test), el.source.through(skipped[0], skipped[-1])):
        sets = set(bound_names(skipped))
        name = next((n.id for n in ast.walk(node.test) if isinstance(n, ast.Name) and n.id in sets and n.id not in el.rounds[-1].bound and isinstance(el.env.get(n.id), (bool, int))), None)
    if name is None:
        standing(el, [n for n in (ast.walk(node.test) if isinstance(node.test, ast.Compare) else ()) if isinstance(n, ast.Name)], node.test, "this branch always goes one way")
    else:
        span = el.span(node.test)
        el.faults.append(Fault("N068", f"`{name}` is {el.env[name]} in every round: what would change it is in the arm that this condition never takes", span,
                               help="compare with a value that the name has", facts={"name": name, "found": el.env[name]}))  # fmt: skip


def _in_both(el: Elaboration, condition: str, arm: str) -> bool:
    """Whether lines of an arm hold a word of its condition that is a compile-time number: most arms need no walk through their trees."""
    env = el.env
    return any([word in arm and isinstance(env.get(word), (bool, int)) for word in _WORD.findall(condition)])


_WORD = re.compile(r"[^\W\d]\w*")


def branchable(t: Type) -> str:
    """What to do instead of a branch on a value that is no uniform number."""
    if isinstance(t, FragT) and t.form == "scalar":
        return "what is computed from fragments is no number of the program: choose with `lm.where(mask, x, y)`, or store it to a view, meet, and read it with `view.ld(i)`"
    return "choose element by element with `lm.where(mask, x, y)`" if isinstance(t, FragT) else "compare first: `x != 0`"


def _read_behind(el: Elaboration, node: ast.If, name: str) -> bool:
    """Whether a role's block reads a name further down, before it binds it anew."""
    if el.block is None:
        return False
    end = node.end_lineno or node.lineno
    below = [n for n in ast.walk(el.block) if isinstance(n, ast.Name) and n.id == name and n.lineno > end]
    first = min((n.lineno for n in below), default=0)
    return any(isinstance(n.ctx, ast.Load) for n in below if n.lineno == first)


def _start(el: Elaboration, place: str, v: bool | int | float, t: ScalarT | FragT, span: Span) -> Assign:
    """A place bound to a literal."""
    e = Expr("const", (), {"value": v if t.dtype == "bool" or DTYPES[t.dtype].is_integer else float(v)}, t, span)
    return Assign((place,), el.new_op("compute", {"value": e}, {}, t, span, {"value": span}) if isinstance(t, FragT) else e, span, (span,))


def _spreads(old: Type, new: Type) -> bool:
    """Whether a uniform number may start a value that is one number on every thread."""
    return isinstance(old, ScalarT) and isinstance(new, FragT) and new.form == "scalar" and not new.partial and old.dtype == new.dtype != "bool"


def _spread(el: Elaboration, name: str, old: Local, t: FragT, span: Span) -> Local:
    """A uniform number as a place of every thread: what it was bound to in front of the loop is worked out as one, where nothing else needs the number."""
    assert el.out is not None
    at = next((i for i in range(len(el.out) - 1, -1, -1) if isinstance(a := el.out[i], Assign) and a.targets == (old.ir_name,) and isinstance(a.value, Expr)), None)
    first = el.out[at].value if at is not None else None  # type: ignore[union-attr]  # an assignment, see above
    aliases = any(n != name and isinstance(v, Local) and v.ir_name == old.ir_name for n, v in el.env.items())
    alone = at is not None and not aliases and not any(old.ir_name in names_read(s) or (isinstance(s, Assign) and old.ir_name in s.targets) for s in statements(tuple(el.out[at + 1 :])))
    e = first if isinstance(first, Expr) else Expr("var", (), {"name": old.ir_name}, old.type, span)
    zero = Expr("const", (), {"value": 0 if DTYPES[t.dtype].is_integer else 0.0}, t, span)
    e = Expr(e.op, e.args, e.attrs, t, e.span) if e.args and e.op not in ("ld", "extent") else Expr("add", (zero, e), {}, t, e.span)
    place = old.ir_name if alone else el.fresh(name)
    start = Assign((place,), el.new_op("compute", {"value": e}, {}, t, e.span, {"value": e.span}), old.span, (old.span,))
    if alone and at is not None:
        el.out[at] = start
    else:
        el.out.append(start)
    return Local(place, t, span)


def _equal(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and not isinstance(a, (Local, Named)) and bool(a == b))


def at_run_time(el: Elaboration, names: list[str], entry: dict[str, Any], places: dict[str, Span], after: dict[str, Any]) -> dict[str, Any]:
    """Bind numbers to places that a round may leave another value in, in front of the loop; the names by what they stand for then.

    `places` says where the body binds them, `after` to what. What cannot be carried is among the faults, and lost.
    """
    assert el.out is not None
    out: dict[str, Any] = {}
    for name in names:
        old, new, span = entry[name], left(after[name]), places[name]
        wanted = new.type if isinstance(new, Local) else as_expr(el, new, span).type if isinstance(new, (bool, int, float)) else None
        if isinstance(old, Local) and isinstance(wanted, FragT):
            out[name] = _spread(el, name, old, wanted, span)
            continue
        if not isinstance(old, (bool, int, float)) or not isinstance(wanted, (ScalarT, FragT)) or not _takes(wanted, old):
            el.faults.append(carried_fault(name, old, new, span))
            out[name] = Lost()
            continue
        place = el.fresh(name)
        el.out.append(_start(el, place, old, wanted, span))
        out[name] = Local(place, wanted, span)
    return out


def _takes(t: ScalarT | FragT, v: bool | int | float) -> bool:
    """Whether a literal may start a value of a type: a truth value of `bool`, a whole number of every other dtype, a fraction of floats;
    of fragments only those that are one number on every thread."""
    if isinstance(t, FragT) and (t.form != "scalar" or t.partial):
        return False
    if isinstance(v, bool) or t.dtype == "bool":
        return isinstance(v, bool) and t.dtype == "bool"
    return isinstance(v, int) or not DTYPES[t.dtype].is_integer


def _spoken(v: Any) -> str:
    if isinstance(v, Local):
        return str(v.type)
    if isinstance(v, Named):
        return f"`{getattr(v.record, 'name', 'a declaration')}`"
    return "a tuple" if isinstance(v, tuple) else "None" if v is None else repr(v)


def carried_fault(name: str, old: Any, new: Any, span: Span) -> Fault:
    """D013 for a name whose value in front of the loop cannot become the one that a round leaves."""
    found = new.type if isinstance(new, Local) else None
    if isinstance(found, SlotT):
        help_text = f"the slot of the last step is `lm.at({found.ring})`, the one before a slot `s` is `s.prev()`"
    elif isinstance(found, (FragT, PairT, ListT)):
        help_text = "start from a value of the same type: `lm.frag(.., init=0)`, `lm.rowvec(..)`, `lm.colvec(..)`"
    elif isinstance(old, Named) or isinstance(new, Named):
        help_text = "a declared thing cannot change places in a loop: give one view several stages and index it with a ring's slot"
    else:
        help_text = "only numbers are carried from one round into the next"
    return Fault("D013", f"`{name}` enters the loop as {_spoken(old)} and leaves an iteration as {_spoken(new)}", span, (), help=help_text,
                 facts={"expected": _spoken(old), "found": _spoken(new)})  # fmt: skip


def changed_types(el: Elaboration, node: ast.For, entry: dict[str, Any], changed: list[str], read: set[str], *, final: bool) -> dict[str, Any]:
    """Of the names that are bound anew, those whose type at the back edge is a weaker one than at the loop head; faults where it is another type altogether."""
    weaker: dict[str, Any] = {}
    for name in changed:
        old, new = entry.get(name), el.env[name]
        if not isinstance(old, Local) or not isinstance(new, Local) or old.type is new.type or old.type == new.type:
            continue
        if weakens(old, new.type) and not final:
            weaker[name] = Local(old.ir_name, new.type, old.span, old.from_zero)
        elif name in read and not same_place(old.type, new.type):
            if old.literal is not None and not final and _takes_scalar(new.type, old.literal):
                weaker[name] = old.literal  # a number again, which the loop carries as whatever a round leaves
                continue
            el.faults.append(_type_fault(name, old, new))
    return weaker


def _takes_scalar(t: Type, v: bool | int | float) -> bool:
    return isinstance(t, FragT) and _takes(t, v)


def weakens(old: Local, new: Type) -> bool:
    """Whether a name may go on with a partial result of what it started with."""
    if isinstance(old.type, PairT) and isinstance(new, PairT):
        return same_place(old.type, new) and new.value.partial in ("argmin", "argmax") and old.type.value.partial is None
    if isinstance(old.type, FragT) and isinstance(new, FragT) and same_place(old.type, new) and old.type.partial is None:
        return new.partial in ("max", "min") or (new.partial == "add" and old.from_zero)
    return False


def _type_fault(name: str, old: Local, new: Local) -> Fault:
    return Fault("D013", f"`{name}` enters the loop as {old.type} and leaves an iteration as {new.type}", new.span, ((old.span, f"{old.type} before the loop"),),
                 help="give the name one type: " + ("a literal in front of the loop becomes what a round leaves, and `lm.where` with a scalar makes one of a number" if isinstance(new.type, FragT) and new.type.form == "scalar" else "finish or convert it at the end of the body"), facts={"name": name, "expected": str(old.type), "found": str(new.type)})  # fmt: skip


def same_place(a: Type, b: Type) -> bool:
    """Whether a value of type `b` goes to the place of one of type `a`."""
    if a is b or a == b:
        return True
    if isinstance(a, FragT) and isinstance(b, FragT):
        return a.with_(partial=None, warps=None) == b.with_(partial=None, warps=None)
    if isinstance(a, PairT) and isinstance(b, PairT):
        return same_place(a.value, b.value) and same_place(a.index, b.index)
    return False
