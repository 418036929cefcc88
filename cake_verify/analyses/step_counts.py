"""How often each role steps each ring, as a polynomial over what the launch and the data decide."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cake_ir.printer import print_expr
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, statements
from cake_ir.span import Span
from cake_verify.analyses.scalar_operations import apply
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import canonical

Monomial = tuple[str, ...]
Polynomial = dict[Monomial, int]

_DEPTH = 24
MOST_TERMS, MOST_FACTORS = 400, 32
_READABLE, _SHOWN = 200, 300
"""Nodes of an expression that is written out in a count, and characters of a count that is."""


@dataclass(slots=True)
class RoleSteps:
    """The count of one role on one ring, and the innermost loop or the step that decides it; of one `member`, where members differ."""

    role: str
    member: int | None = None
    count: Polynomial = field(default_factory=dict)
    span: Span | None = None

    @property
    def who(self) -> str:
        return f"`{self.role}`" if self.member is None else f"`{self.role}` member {self.member}"


def plus(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    out = dict(a)
    for m, c in b.items():
        out[m] = out.get(m, 0) + sign * c
        if not out[m]:
            del out[m]
    return out


class Unwieldy(Exception):
    """A product with more terms, or more factors in one, than are looked at."""


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) * len(b) > MOST_TERMS or max(map(len, a), default=0) + max(map(len, b), default=0) > MOST_FACTORS:
        raise Unwieldy
    out: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            both = tuple(sorted((*m, *n)))
            out[both] = out.get(both, 0) + c * d
            if not out[both]:
                del out[both]
    return out


def _deciding(s: Stmt) -> tuple[Expr, ...]:
    """What decides how often the statements inside one are executed."""
    if isinstance(s, For):
        return tuple(e for e in (s.lo, s.hi) if e is not None)
    return (s.cond,) if isinstance(s, If) else ()


class Steps:
    """Counts of all roles; `atoms` keeps what each atom of a polynomial stands for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.atoms: dict[str, Expr] = {}
        self.rounds: dict[tuple[str, str], str] = {}  # bounds of a loop -> the variable that stands for it in every role
        self.rings: dict[str, list[RoleSteps]] = {}
        self.member: int | None = None
        self.found: dict[str, RoleSteps] = {}
        self.inlined: dict[tuple[int, str, int | None, int], Expr] = {}  # by identity of what the program holds
        self.keys: dict[tuple[int, str, int | None], str] = {}
        self.long: dict[str, str] = {}  # canonical text of what is too long to be read -> what stands for it
        self.multiplied: dict[tuple[int, str, int | None, int], Polynomial] = {}
        used = {str(s.scheduler) for block in program.body for s in statements(block.body) if isinstance(s, For) and s.kind == "tiles"}
        self.tiles = program.schedulers[used.pop()] if len(used) == 1 else None
        try:
            self._count_all()
        except Unwieldy:  # nothing is said of any
            self.rings.clear()

    def _count_all(self) -> None:
        program = self.program
        for role in program.roles.values():
            blocks = [b for b in program.body if b.role == role.name]
            alike = role.members < 2 or not any(e.op == "role_index" for b in blocks for s in statements(b.body) for x in _deciding(s) for e in self._inline(x, role.name).parts())
            counts: list[dict[str, RoleSteps]] = []
            for member in (None,) if alike else range(role.members):
                self.member, self.found = member, {}
                for block in blocks:
                    self._body(block.body, block.role, {(): 1}, None)
                counts.append(self.found)
            self.member = None
            self._keep(counts)

    def _keep(self, counts: list[dict[str, RoleSteps]]) -> None:
        """What the members that come to a ring have counted: once, if they agree."""
        for ring in dict.fromkeys(name for found in counts for name in found):
            each = [found[ring] for found in counts if ring in found]
            if all(r.count == each[0].count for r in each):
                each[0].member = None
                each = each[:1]
            self.rings.setdefault(ring, []).extend(each)

    def _body(self, body: tuple[Stmt, ...], role: str, often: Polynomial, head: Span | None) -> None:
        for s in body:
            if isinstance(s, Assign) and isinstance(s.value, Expr) and s.value.op == "step":
                found = self.found.setdefault(str(s.value.attrs["ring"]), RoleSteps(role, self.member))
                found.count = plus(found.count, often)
                found.span = found.span or head or s.span
            elif isinstance(s, For):
                self._body(s.body, role, times(often, self._trips(s, role)), s.head)
            elif isinstance(s, If) and (side := self._by_member(s.cond, role)) is not None:
                self._body(s.then if side else s.orelse, role, often, head)
            elif isinstance(s, If):
                condition = {(self._atom(s.cond, role),): 1}
                self._body(s.then, role, times(often, condition), head)
                self._body(s.orelse, role, times(often, plus({(): 1}, condition, -1)), head)

    def _by_member(self, cond: Expr, role: str) -> bool | None:
        """Which way a condition goes for the member that is counted, where nothing else decides it."""
        inlined = self._inline(cond, role)
        if any(not n.args and n.op != "const" for n in inlined.parts()):
            return None
        side = self._value(inlined, {}, random.Random(0), {})
        return None if side is None else bool(side)

    def _trips(self, s: For, role: str) -> Polynomial:
        if s.lo is None or s.hi is None:
            return {(f"tiles of {s.scheduler}",): 1}
        return plus(self.polynomial(s.hi, role), self.polynomial(s.lo, role), -1)

    def polynomial(self, e: Expr, role: str, depth: int = _DEPTH) -> Polynomial:
        """`e` multiplied out; what is no sum or product is an atom."""
        e = self._resolve(e, role)
        asked = id(e), role, self.member, depth
        found = self.multiplied.get(asked)
        if found is None:
            found = self.multiplied[asked] = self._polynomial(e, role, depth)
        return found

    def _polynomial(self, e: Expr, role: str, depth: int) -> Polynomial:
        if e.op == "role_index" and self.member is not None:
            return {(): self.member} if self.member else {}
        if e.op == "const" and isinstance(e.attrs["value"], int):
            return {(): int(e.attrs["value"])} if e.attrs["value"] else {}
        if depth and e.op in ("add", "sub"):
            return plus(self.polynomial(e.args[0], role, depth - 1), self.polynomial(e.args[1], role, depth - 1), 1 if e.op == "add" else -1)
        if depth and e.op == "mul":
            with suppress(Unwieldy):
                return times(self.polynomial(e.args[0], role, depth - 1), self.polynomial(e.args[1], role, depth - 1))
        return {(self._atom(e, role),): 1}

    def _resolve(self, e: Expr, role: str) -> Expr:
        """The expression that a name bound once stands for."""
        for _ in range(_DEPTH):
            if e.op != "var":
                break
            name = str(e.attrs["name"])
            if name in self.program.lets:
                e = self.program.lets[name].value
                continue
            bound = sites(self.program).bindings.get((role, name), ())
            if len(bound) != 1 or (role, name) in sites(self.program).results:
                break
            e = bound[0].value
        return e

    def _atom(self, e: Expr, role: str) -> str:
        asked = id(e), role, self.member
        key = self.keys.get(asked)
        if key is None:
            inlined = self._inline(e, role)
            key = self.keys[asked] = self._text(inlined)
            self.atoms.setdefault(key, inlined)
        return key

    def _text(self, e: Expr) -> str:
        """An expression as text; one that nobody could read has a name, the same wherever its like stands."""
        sizes: dict[int, int] = {}
        for n in e.parts():
            sizes[id(n)] = 1 + sum([sizes[id(a)] for a in n.args])
        if sizes[id(e)] <= _READABLE:
            return print_expr(self.program, e)
        return self.long.setdefault(canonical(e), f"(expression {len(self.long) + 1} of line {e.span.line})")

    def _inline(self, e: Expr, role: str, depth: int = _DEPTH) -> Expr:
        asked = id(e), role, self.member, depth
        found = self.inlined.get(asked)
        if found is None:
            found = self.inlined[asked] = self._inline_one(e, role, depth)
        return found

    def _inline_one(self, e: Expr, role: str, depth: int) -> Expr:
        e = self._resolve(e, role)
        if e.op == "role_index" and self.member is not None:
            return Expr("const", (), {"value": self.member}, e.type, e.span)
        if e.op == "var" and depth:
            loaded = sites(self.program).results.get((role, str(e.attrs["name"])), ())
            if len(loaded) == 1 and loaded[0].op.name == "ld":
                return self._load(loaded[0].op, role, depth - 1)
            loops = sites(self.program).loops.get((role, str(e.attrs["name"])), ())
            if any(loop.kind == "tiles" for loop in loops):
                return Expr("var", (), {"name": "t"}, e.type, e.span)  # every role walks the same tiles
            if len(loops) == 1 and loops[0].lo is not None and loops[0].hi is not None:
                lo, hi = (self._text(self._inline(x, role, depth - 1)) for x in (loops[0].lo, loops[0].hi))
                return Expr("var", (), {"name": self.rounds.setdefault((lo, hi), str(e.attrs["name"]))}, e.type, e.span)  # roles name their loops as they like
        if not e.args or not depth:
            return e
        return Expr(e.op, tuple(self._inline(a, role, depth - 1) for a in e.args), e.attrs, e.type, e.span)

    def _load(self, op: Op, role: str, depth: int) -> Expr:
        """A value read from memory, named by where it was read, so that two roles that read one place agree."""
        i = op.operands.get("i")
        where = self._text(self._inline(i, role, depth)) if isinstance(i, Expr) else "0"
        return Expr("param", (), {"name": f"{op.attrs.get('tensor')}[{where}]"}, op.type, op.span)

    # -------------------------------------------------------- comparing

    def differ(self, a: Polynomial, b: Polynomial, assumed: list[Expr]) -> bool:
        """Whether two counts differ for some values of what they depend on, with the assumptions kept and tiles that there are."""
        if a == b or self._names(a) != self._names(b):
            return False  # one adds up over rounds that the other does not have: a product of both says nothing of the sum
        within = self._tiles_of(a, b)
        for seed in range(240 if within else 24):
            draw = random.Random(seed)
            values: dict[str, Any] = {}
            known: dict[int, Any] = {}
            if all(self._value(c, values, draw, known) is not False for c in assumed) and all(self._value(c, values, draw, known) for c in within):
                x, y = self._count(a, values, draw, known), self._count(b, values, draw, known)
                if x is not None and y is not None and x != y:
                    return True
        return False

    def _names(self, p: Polynomial) -> set[str]:
        """The loop variables and other names that a count depends on."""
        return {str(n.attrs["name"]) for m in p for atom in m if atom in self.atoms for n in self.atoms[atom].parts() if n.op == "var"} - {"t"}

    def _tiles_of(self, *counts: Polynomial) -> list[Expr]:
        """That the tile whose fields counts depend on is one of the tile space; empty where that cannot be said."""
        fields = {str(n.attrs["name"]): n for p in counts for m in p for atom in m if atom in self.atoms for n in self.atoms[atom].parts() if n.op == "field"}
        d = self.tiles
        if d is None or d.kind == "grouped":
            return []
        return [Expr("lt", (n, self._inline(d.tiles[d.names.index(name)], "")), {}, n.type, n.span) for name, n in fields.items() if name in d.names]

    def _count(self, p: Polynomial, values: dict[str, Any], draw: random.Random, known: dict[int, Any]) -> int | None:
        total = 0
        for m, c in p.items():
            for atom in m:
                v = self._value(self.atoms[atom], values, draw, known) if atom in self.atoms else values.setdefault(atom, draw.randint(1, 5))
                if v is None:
                    return None
                c *= int(v)
            total += c
        return total

    def _value(self, e: Expr, values: dict[str, Any], draw: random.Random, known: dict[int, Any]) -> Any:
        """A value with leaves drawn into `values`; `known` has those of this draw's expressions, by identity."""
        if e.op == "const":
            return e.attrs["value"]
        if e.args and e.op != "field":
            if id(e) not in known:
                known[id(e)] = apply(e.op, [self._value(a, values, draw, known) for a in e.args])
            return known[id(e)]
        key = print_expr(self.program, e)
        if key not in values:
            values[key] = draw.choice((0, 1, 2, 3, 4, 8) if e.op == "field" else (1, 2, 3, 5, 8, 64, 128, 256, 300, 513, 1024, 1152))
        return values[key]

    def shown(self, p: Polynomial) -> str:
        """A count as text, tiles left out where every term has them; one that nobody could read by how many terms it has."""
        common = [a for a in sorted({a for m in p for a in m if a.startswith("tiles of ")}) if all(a in m for m in p)]
        out = ""
        for m, c in sorted(p.items(), key=lambda t: (-len(t[0]), t[0])):
            atoms = list(m)
            for a in common:
                atoms.remove(a)
            body = " x ".join(([str(abs(c))] if abs(c) != 1 or not atoms else []) + atoms)
            out += (" - " if c < 0 else " + " if out else "") + body if out or c > 0 else f"-{body}"
        if len(out) > _SHOWN:
            out = f"a sum of {len(p)} products"
        return (out or "0") + (" times a tile" if common else " times")
