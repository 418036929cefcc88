"""Trip counts as expressions: names resolved to what they stand for, canonical text to compare, and values for given arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_, itemgetter
from typing import Any

from cake_ir.derive.bits import as_numbers
from cake_ir.derive.structure import listed
from cake_ir.fact import fact
from cake_ir.fault import LEFT_OUT
from cake_ir.program import Assign, Expr, For, If, Op, Program
from cake_ir.record import record
from cake_ir.span import Span
from cake_verify.analyses.count_text import Env, NotKnown, compiled, texts
from cake_verify.analyses.rebound import read_element, rebound

NO_VALUE = (ZeroDivisionError, OverflowError, ValueError, TypeError)
"""What compiled counts raise where the arguments give no number."""


@record(eq=False)
class Loop:
    """One loop of a role with its bounds resolved: parameters, tile fields, memory reads and outer loop variables only."""

    role: str
    stmt: For
    lo: Expr
    hi: Expr

    @property
    def constant(self) -> bool:
        return self.lo.op == "const" and self.hi.op == "const"


def lengths(program: Program, loop: Loop) -> list[Expr]:
    """How many iterations a loop has, in the first and in the last round of the loops around it that its bounds depend on."""
    length = loop.hi if loop.lo.op == "const" and loop.lo.attrs["value"] == 0 else Expr("sub", (loop.hi, loop.lo))
    around = _around(program, loop.role)
    if not any(n.op == "var" and n.attrs.get("name") in around for n in length.parts()):
        return [length]
    return [_ends(program, loop.role, last)(length, 4) for last in (False, True)]


def arguments_of(lengths: Iterable[Expr]) -> frozenset[str] | None:
    """The arguments that lengths of loops depend on; None where something else may decide them too."""
    leaves = [n for e in lengths for n in e.parts() if not n.args or n.op in ("ld", "field", "extent")]
    return None if any(n.op not in ("param", "const", "var", "role_index", "cta_rank", "cta_id", "cluster_size") for n in leaves) else frozenset(str(n.attrs["name"]) for n in leaves if n.op == "param")


@fact
def _around(program: Program, role: str) -> dict[str, Loop]:
    """The counted loops of a role by their variables."""
    return {x.stmt.var: x for x in loops(program) if x.role == role}


class _Ends:
    """Replaces the variables of a role's loops by their first or last value. What was asked before is found by identity, as in `_Resolver`."""

    __slots__ = ("around", "known", "last")

    def __init__(self, around: dict[str, Loop], last: bool) -> None:
        self.around, self.last = around, last
        self.known: dict[tuple[int, int], tuple[Expr, Expr]] = {}

    def __call__(self, e: Expr, depth: int) -> Expr:
        if e.op == "var":
            outer = self.around.get(str(e.attrs.get("name"))) if depth else None
            if outer is None:
                return e
            got = self.known.get((id(outer), depth))
            if got is None:
                end = Expr("sub", (outer.hi, Expr("const", (), {"value": 1}))) if self.last else outer.lo
                got = self.known[id(outer), depth] = end, self(end, depth - 1)
            return got[1]
        if not e.args:
            return e
        got = self.known.get((id(e), depth))
        if got is None:
            args = tuple([self(a, depth) for a in e.args])
            got = self.known[id(e), depth] = e, e if all(map(is_, args, e.args)) else Expr(e.op, args, e.attrs, e.type, e.span)
        return got[1]


@fact
def _ends(program: Program, role: str, last: bool) -> _Ends:
    return _Ends(_around(program, role), last)


def resolver(program: Program, role: str) -> Callable[[Expr], Expr]:
    """A function that replaces the role's scalar names by their definitions. Names assigned several times stay as they are, unless `rebound` says what they come to."""
    values: dict[str, Expr] = {d.name: d.value for d in program.lets.values()}
    twice: set[str] = set()
    for block, body in listed(program):
        if block.role != role:
            continue
        for s in body:
            if not isinstance(s, Assign):
                continue
            for name in s.targets:
                if name in values and name not in program.lets:
                    twice.add(name)
            if isinstance(s.value, Op):
                values |= {s.targets[0]: read} if (read := read_element(s.value)) is not None else {}
            elif len(s.targets) == 1:
                values[s.targets[0]] = s.value
    for name in twice:
        values.pop(name, None)
    if twice and len(own := [(block.body, body) for block, body in listed(program) if block.role == role]) == 1:
        values.update(rebound(own[0][0], own[0][1], twice))

    return _Resolver(values)


DEEPEST = 60
"""Levels of a definition that is put in place of its name. What is read as a tree, or printed for Python to read, has to end somewhere."""


class _Resolver:
    """Replaces names by their definitions. What was asked before is found by identity, with the expression kept alive for as long as its
    number stands for it; a name's definition is one expression wherever it stands, so that its readers work each part out once.

    `levels` has how deep each answer is. A name whose definition is deeper than `DEEPEST` stays, and says that it stands for something.
    """

    __slots__ = ("known", "levels", "named", "values")

    def __init__(self, values: dict[str, Expr]) -> None:
        self.values = values
        self.known: dict[int, tuple[Expr, Expr]] = {}
        self.named: dict[str, Expr] = {}
        self.levels: dict[int, int] = {}

    def __call__(self, e: Expr) -> Expr:
        got = self.known.get(id(e))
        return self._resolve(e) if got is None else got[1]

    def _resolve(self, e: Expr) -> Expr:
        """The expression itself where nothing in it changes, so that its readers find what they know of it."""
        if e.op == "var":
            name = str(e.attrs["name"])
            if name not in self.named:
                if name not in self.values:
                    return e
                self._define(name)
            return self.named[name]
        if not e.args:
            return e
        got = self.known.get(id(e))
        if got is None:
            args = tuple(map(self._resolve, e.args))
            out = as_numbers(e if all(map(is_, args, e.args)) else Expr(e.op, args, e.attrs, e.type, e.span))
            got = self.known[id(e)] = e, out
            levels, deepest = self.levels, 0
            for a in args:
                if a.args and (level := levels.get(id(a), 0)) > deepest:
                    deepest = level
            levels[id(out)] = 1 + deepest
        return got[1]

    def _define(self, name: str) -> None:
        """Resolve a name behind those that its definition reads: one after the other, for names of names may be many."""
        waiting, begun = [name], set[str]()
        while waiting:
            name = waiting[-1]
            if name in self.named:
                waiting.pop()
                continue
            e = self.values[name]
            if name not in begun:
                begun.add(name)
                read = [str(n.attrs["name"]) for n in e.parts() if n.op == "var"]
                first = [n for n in read if n in self.values and n not in self.named and n not in begun]
                if first:
                    waiting += first
                    continue
            stays = Expr("var", (), {"name": name, "defined": True}, e.type, e.span)
            self.named[name] = stays  # for a definition that reads the name itself
            found = self._resolve(e)
            if self.levels.get(id(found), 0) <= DEEPEST:
                self.named[name] = found


@fact
def loops(program: Program) -> tuple[Loop, ...]:
    """Every counted loop of every role, in text order, bounds resolved."""
    out = []
    for block, body in listed(program):
        resolve = resolver_of(program, block.role)
        for s in body:
            if isinstance(s, For) and s.kind != "tiles" and s.lo is not None and s.hi is not None:
                out.append(Loop(block.role, s, resolve(s.lo), resolve(s.hi)))
    return tuple(out)


@fact
def conditions(program: Program) -> tuple[tuple[str, If, Expr], ...]:
    """Every branch with its condition resolved, by role."""
    out = []
    for block, body in listed(program):
        resolve = resolver_of(program, block.role)
        out += [(block.role, s, resolve(s.cond)) for s in body if isinstance(s, If)]
    return tuple(out)


_TEXT = 4000
"""Characters of a canonical text beyond which its digest stands for it: the text of what shares its parts may double with every name."""


def canonical(e: Expr) -> str:
    """Text that is equal for expressions that are the same up to the order of sums and the spelling of rounding up."""
    if not e.args:
        return _canonical(e)
    text = getattr(e, "canonical", None)
    if text is None:
        text = _canonical(e)
        if len(text) > _TEXT:
            from hashlib import blake2b  # here, not above: it loads OpenSSL, for what hardly any schedule has

            text = f"#{blake2b(text.encode()).hexdigest()}"
        e.canonical = text  # type: ignore[misc]  # the one thing of an expression that is set later
    return text  # type: ignore[no-any-return]  # a text, see above


def _canonical(e: Expr) -> str:
    op, args = e.op, e.args
    if op == "const":
        return repr(e.attrs["value"])
    if op in ("param", "var"):
        return str(e.attrs["name"]) if op == "param" else f"?{e.attrs['name']}"
    if op == "field":
        return f"tile.{e.attrs['name']}"
    if op == "ld":
        return f"{e.attrs['tensor']}[{canonical(args[0])}]"
    if op in ("add", "sub"):
        constant, terms = linear(e)
        return _sum(terms, constant)
    if op == "cdiv":
        a, b = canonical(args[0]), canonical(args[1])
        return f"ceil({a}/{b})"
    if op == "floordiv" and args[1].op == "const" and isinstance(args[1].attrs["value"], int):
        c = int(args[1].attrs["value"])
        constant, terms = linear(args[0])
        if constant == c - 1:
            return f"ceil({next(iter(terms)) if list(terms.values()) == [1] else _sum(terms, 0)}/{c})"
    if op in ("min", "max", "mul"):
        return f"{op}({','.join(sorted(canonical(a) for a in args))})"
    extra = "" if not e.attrs else str(sorted((k, str(v)) for k, v in e.attrs.items()))
    return f"{op}{extra}({','.join(canonical(a) for a in args)})"


def _sum(terms: dict[str, int], constant: int) -> str:
    parts = sorted(f"{_digits(n)}*{t}" if n != 1 else t for t, n in terms.items())
    return "(" + "+".join([*parts, _digits(constant)] if constant or not parts else parts) + ")"


def _digits(n: int) -> str:
    """A number as text: Python refuses more than 4,300 decimal digits, which products of many names have."""
    return str(n) if n.bit_length() <= 64 else hex(n)


def linear(e: Expr) -> tuple[int, dict[str, int]]:
    """A sum as its constant and the multiples of its terms, each in canonical text; loop variables stand as `?name`.

    Every part is read once, with how often all of its readers add it. What cancels out is no term.
    """
    if e.op not in ("add", "sub", "neg", "mul"):  # one term, or a number
        return (int(e.attrs["value"]), {}) if e.op == "const" and isinstance(e.attrs["value"], int) else (0, {canonical(e): 1})
    times, constant, terms = {id(e): 1}, 0, dict[str, int]()
    for n in reversed(e.parts()):  # readers first
        k = times.get(id(n))
        if k is None:  # only a term has it in it
            continue
        op, args = n.op, n.args
        if op == "const" and isinstance(n.attrs["value"], int):
            constant += k * int(n.attrs["value"])
        elif op in ("add", "sub"):
            a, b = id(args[0]), id(args[1])
            times[a] = times.get(a, 0) + k
            times[b] = times.get(b, 0) + (k if op == "add" else -k)
        elif op == "neg":
            times[id(args[0])] = times.get(id(args[0]), 0) - k
        elif op == "mul" and (found := _multiple(n)) is not None:
            factor, x = found
            times[id(x)] = times.get(id(x), 0) + k * factor
        else:
            t = canonical(n)
            terms[t] = terms.get(t, 0) + k
    return constant, {t: n for t, n in terms.items() if n}


def _multiple(e: Expr) -> tuple[int, Expr] | None:
    """A product with a constant as that and the other factor."""
    for a, b in (e.args, e.args[::-1]):
        if a.op == "const" and isinstance(a.attrs["value"], int):
            return int(a.attrs["value"]), b
    return None


def rounded_up(e: Expr) -> tuple[Expr, int] | None:
    """The number and the divisor of a division by a number that rounds up, also where it is written out, `(n + 63) // 64`."""
    n = e.args[1].attrs.get("value") if e.op in ("cdiv", "floordiv") else None
    if not isinstance(n, int):
        return None
    if e.op == "cdiv":
        return e.args[0], n
    constant, terms = linear(e.args[0])
    if constant != n - 1 or n < 2:
        return None
    if [*terms.values()] == [1]:
        (term,) = terms
        return next(x for x in e.args[0].parts() if canonical(x) == term), n
    return Expr("sub", (e.args[0], Expr("const", (), {"value": n - 1}))), n


def written(name: str, span: Span | None = None) -> str:
    """A program's name as its author wrote it: without the number that told it from an earlier one of that name.

    The width of `span`, where the name stands, says how long the author's name is.
    """
    head, _, number = name.rpartition("_")
    if not head or not number.isdigit():
        return name
    if span is not None and span.line == span.end_line and span.end_column - span.column == len(name):
        return name
    return head if span is None or span.end_column - span.column == len(head) else name


_READABLE = 160
"""Characters of a part of an expression that a message has room for."""


def spoken(e: Expr) -> str:
    """An expression as its author would write it, for messages: parts that are too long to be read are left out."""
    return _speak(e, {})


def _speak(e: Expr, known: dict[int, str]) -> str:
    op, args = e.op, e.args
    infix = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    if op == "const":
        return str(e.attrs["value"])
    if op in ("param", "var"):
        return written(str(e.attrs["name"]), e.span)
    if op == "role_index":
        return f"{e.attrs['role']}.index"
    parts = [_part(a, known) for a in args]
    if op == "field":
        return f"{parts[0]}.{e.attrs['name']}"
    if op == "ld":
        return f"lm.ld({e.attrs['tensor']}, {parts[0]})"
    if op in infix:
        return f"{_inner(parts[0])} {infix[op]} {_inner(parts[1])}"
    return f"{'lm.' if op in ('cdiv', 'min', 'max') else ''}{op}({', '.join(parts)})"


def _part(e: Expr, known: dict[int, str]) -> str:
    text = known.get(id(e))
    if text is None:
        text = _speak(e, known)
        text = known[id(e)] = text if len(text) <= _READABLE else LEFT_OUT
    return text


def _inner(text: str) -> str:
    return f"({text})" if " " in text and not text.endswith(")") else text


@fact
def resolver_of(program: Program, role: str) -> Callable[[Expr], Expr]:
    """`resolver`, kept for each role."""
    return resolver(program, role)


@fact
def tile_counts(program: Program, name: str) -> Callable[[Env], tuple[int, ...]]:
    """A function of the environment that gives a scheduler's tile counts."""
    resolve = resolver_of(program, "")
    tiles = [resolve(e) for e in program.schedulers[name].tiles]
    plain = [f for e in tiles if (f := _plain(e)) is not None]
    if len(plain) == len(tiles):
        return lambda env: tuple([max(0, int(f(env))) for f in plain])
    (counts,) = texts(program, [tiles])
    if counts is None:
        raise NotKnown(name)
    return compiled([f"max(0, int({text}))" for text in counts])[0]


def _plain(e: Expr) -> Callable[[Env], Any] | None:
    """A count as it mostly is (a number, an argument, the blocks in one) as a function of the environment: compiling it would take longer than all its calls."""
    if e.op == "param":
        return itemgetter(str(e.attrs["name"]))
    if e.op == "const":
        v = e.attrs["value"]
        return lambda env: v
    if e.op == "cdiv" and e.args[0].op == "param" and e.args[1].op == "const" and e.args[1].attrs["value"]:
        name, block = str(e.args[0].attrs["name"]), e.args[1].attrs["value"]
        return lambda env: -(-env[name] // block)
    return None
