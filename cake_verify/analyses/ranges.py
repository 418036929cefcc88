"""What values a uniform integer can take: an interval and a congruence, from constants, loops, members, rings and assumptions."""

from __future__ import annotations

import math
from functools import lru_cache

from cake_ir.derive.assumed import assumed, equals
from cake_ir.derive.bits import BITS, counted
from cake_ir.fact import fact
from cake_ir.program import Expr, For, Program
from cake_ir.record import record
from cake_verify.analyses.scalar_operations import LARGE
from cake_verify.analyses.sites import Site, sites

_DEPTH = 24


@record()
class Range:
    """lo <= v <= hi and v = rem (mod `mod`); `mod` 0 means v = rem exactly. Infinite ends are floats.

    `tight` says that both ends are taken by some member or iteration, as far as no condition around forbids it.
    """

    lo: float
    hi: float
    mod: int = 1
    rem: int = 0
    tight: bool = False

    @property
    def exact(self) -> int | None:
        """The only value, if there is one."""
        return int(self.lo) if self.lo == self.hi and math.isfinite(self.lo) else None

    def multiple_of(self, n: int) -> bool:
        """Whether every value is a multiple of n."""
        if n == 1:
            return True
        if self.mod == 0 or self.exact is not None:
            return (self.rem if self.mod == 0 else int(self.lo)) % n == 0
        return self.mod % n == 0 and self.rem % n == 0

    def worst_for(self, n: int) -> int | None:
        """A value that is certainly taken and no multiple of n, if one is known: the value itself, or one of the ends of a tight range."""
        if self.exact is not None:
            return self.exact if self.exact % n else None
        if self.mod and self.rem % math.gcd(self.mod, n):
            return self.rem
        if self.tight and math.isfinite(self.lo) and (self.mod % n or self.rem % n):
            first = int(self.lo)
            return first if first % n else first + self.mod if (first + self.mod) % n else None
        return None

    def never_multiple_of(self, n: int) -> bool:
        """Whether no value is a multiple of n."""
        if self.mod == 0:
            return self.rem % n != 0
        return self.rem % math.gcd(self.mod, n) != 0


ANY = Range(-math.inf, math.inf)
NATURAL = Range(0, math.inf)


@lru_cache(maxsize=1024)
def const(v: int) -> Range:
    return Range(v, v, 0, v, True)


def span(lo: float, hi: float, tight: bool = False) -> Range:
    """[lo, hi]."""
    if lo == hi and math.isfinite(lo):
        return const(int(lo))
    return Range(lo, hi, 1, 0, tight)


def join(a: Range, b: Range) -> Range:
    """The values of either."""
    mod = math.gcd(math.gcd(a.mod, b.mod), abs(a.rem - b.rem))
    return Range(min(a.lo, b.lo), max(a.hi, b.hi), mod, a.rem % mod if mod else a.rem)


def add(a: Range, b: Range, sign: int = 1) -> Range:
    lo, hi = (a.lo + b.lo, a.hi + b.hi) if sign > 0 else (a.lo - b.hi, a.hi - b.lo)
    mod = math.gcd(a.mod, b.mod)
    rem = a.rem + sign * b.rem
    return Range(lo, hi, mod, rem % mod if mod else rem, a.tight and b.tight)


def mul(a: Range, b: Range) -> Range:
    ends = [_times(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    # (ma x + ra)(mb y + rb) = ra rb modulo gcd(ma mb, ma rb, mb ra)
    mod = math.gcd(math.gcd(a.mod * b.mod, a.mod * b.rem), b.mod * a.rem)
    rem = a.rem * b.rem
    lo, hi = min(ends), max(ends)
    if max(abs(rem), mod, abs(lo) if lo > -math.inf else 0, abs(hi) if hi < math.inf else 0) > LARGE:  # names of squares of names
        return Range(-math.inf if lo < -LARGE else min(lo, LARGE), math.inf if hi > LARGE else max(hi, -LARGE))
    return Range(lo, hi, mod, rem % mod if mod else rem, a.tight and b.tight)


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def floordiv(a: Range, b: Range) -> Range:
    d = b.exact
    if d is None or d <= 0:
        return ANY
    lo = a.lo // d if math.isfinite(a.lo) else a.lo
    hi = a.hi // d if math.isfinite(a.hi) else a.hi
    if a.mod % d == 0 and a.rem % d == 0:
        return Range(lo, hi, a.mod // d, a.rem // d)
    return span(lo, hi)


def modulo(a: Range, b: Range) -> Range:
    d = b.exact
    if d is None or d <= 0:
        return ANY
    if a.mod == 0:
        return const(a.rem % d)
    g = math.gcd(a.mod, d)
    if a.lo >= 0 and a.hi < d:
        return a
    return Range(a.rem % g, d - 1 - (d - 1 - a.rem) % g, g, a.rem % g)


def of(program: Program, role: str | None, e: Expr) -> Range:
    """The range of a uniform integer expression as role `role` sees it; anything may come out of what is not understood."""
    if e.op == "const":
        return const(int(v)) if isinstance(v := e.attrs["value"], int) else ANY
    return _evaluator(program, role).value(e, _DEPTH)


def live(program: Program, *names: str) -> tuple[Site, ...]:
    """The operations (of these names) in text order without those in loops that certainly have no iteration: what they would do is never done."""
    found = sites(program).of(*names) if names else sites(program).ops
    idle = _idle(program) if found else ()
    return tuple(s for s in found if not any(id(p) in idle for p in s.path)) if idle else found


@fact
def _idle(program: Program) -> frozenset[int]:
    """The loops that certainly have no iteration, by identity."""
    return frozenset(id(s) for (role, _), loops in sites(program).loops.items() for s in loops if _never_runs(program, role, s))


def _never_runs(program: Program, role: str, loop: For) -> bool:
    return loop.lo is not None and loop.hi is not None and of(program, role, loop.lo).lo >= of(program, role, loop.hi).hi


@fact
def _evaluator(program: Program, role: str | None) -> _Evaluator:
    return _Evaluator(program, role)


@fact
def _parameters(program: Program) -> dict[str, Range]:
    """What assumptions say of the run-time scalars that somebody asked about: the same for every role."""
    return {}


class _Evaluator:
    """Ranges as one role sees them; several rules ask for the same ones.

    `known` has those of expressions and of names, by identity and by name, each with the depth from which on it is the whole answer and what it
    is of, which lives as long as its number stands for it. `cut_off` has answers at a depth that was not enough; `cut` says that one was met.
    """

    __slots__ = ("assumes", "cut", "cut_off", "known", "lets", "parameters", "rings", "role", "roles", "sites")

    def __init__(self, program: Program, role: str | None) -> None:
        self.role, self.sites = role, sites(program)  # not the program: this is one of its facts, and they would hold each other
        self.lets, self.roles, self.rings, self.assumes = program.lets, program.roles, program.rings, program.assumes
        self.parameters = _parameters(program)
        self.known: dict[int | str, tuple[int, Range, Expr | None]] = {}
        self.cut_off: dict[tuple[int | str, int], tuple[Range, Expr | None]] = {}
        self.cut = False

    def value(self, e: Expr, depth: int) -> Range:
        if e.op == "const":
            v = e.attrs["value"]
            return const(int(v)) if isinstance(v, int) else ANY
        if depth == 0:
            self.cut = True
            return ANY
        if not e.args:
            return self._worked_out(e, depth)
        key = id(e)
        found = self.known.get(key)
        if found is not None and depth >= found[0]:
            return found[1]
        return self._kept(key, e, depth)

    def _kept(self, key: int | str, e: Expr | None, depth: int) -> Range:
        """Work out an expression, or the range of the name that is the key, and keep it."""
        short = self.cut_off.get((key, depth))
        if short is not None:
            self.cut = True
            return short[0]
        before, self.cut = self.cut, False
        out = self._variable(str(key), depth) if e is None else self._worked_out(e, depth)
        if self.cut:
            self.cut_off[key, depth] = out, e
        else:
            self.known[key], self.cut = (depth, out, e), before
        return out

    def _worked_out(self, e: Expr, depth: int) -> Range:
        op = e.op
        if op in _BINARY:
            return _BINARY[op](self.value(e.args[0], depth - 1), self.value(e.args[1], depth - 1))
        if op in BITS:
            found = counted(e)
            return ANY if found is None else _BINARY[found[0]](self.value(found[1], depth - 1), const(found[2]))
        if op == "neg":
            return add(const(0), self.value(e.args[0], depth - 1), -1)
        if op == "select":
            return join(self.value(e.args[1], depth - 1), self.value(e.args[2], depth - 1))
        if op in ("min", "max"):
            a, b = self.value(e.args[0], depth - 1), self.value(e.args[1], depth - 1)
            pick = min if op == "min" else max
            both = join(a, b)
            return Range(pick(a.lo, b.lo), pick(a.hi, b.hi), both.mod or 1, both.rem if both.mod else 0)
        if op == "cdiv":
            a, b = self.value(e.args[0], depth - 1), self.value(e.args[1], depth - 1)
            d = b.exact
            if d is None or d <= 0:
                return NATURAL if a.lo >= 0 else ANY
            return span(-(-a.lo // d) if math.isfinite(a.lo) else a.lo, -(-a.hi // d) if math.isfinite(a.hi) else a.hi)
        if op == "role_index":
            return span(0, self.roles[str(e.attrs["role"])].members - 1, True)
        if op == "slot_index":
            return span(0, self.rings[str(e.attrs["ring"])].stages - 1)
        if op == "param":
            return self._parameter(str(e.attrs["name"]))
        if op in ("field", "extent", "cta_rank", "cta_id"):
            return NATURAL
        if op == "var":
            return self.variable(str(e.attrs["name"]), depth - 1)
        return ANY

    def _parameter(self, name: str) -> Range:
        """A run-time scalar as `lm.assume` bounds it."""
        found = self.parameters.get(name)
        if found is None:
            lo, hi, mod = assumed(self.assumes, name)
            found = self.parameters[name] = const(int(lo)) if lo == hi and math.isfinite(lo) else Range(lo, hi, mod, 0)
            for same in equals(self.assumes, name) if found.exact is None else ():  # what is asked for on the way is the part that is known by now
                r = self.value(same, _DEPTH)
                if r.mod > 1 and not r.rem:
                    found = self.parameters[name] = Range(found.lo, found.hi, math.lcm(found.mod, r.mod), 0)
        return found

    def variable(self, name: str, depth: int) -> Range:
        """The range of a name: of its definitions, or of the loops that it counts."""
        found = self.known.get(name)
        return found[1] if found is not None and depth >= found[0] else self._kept(name, None, depth)

    def _variable(self, name: str, depth: int) -> Range:
        if name in self.lets:
            return self.value(self.lets[name].value, depth)
        if self.role is None:
            return ANY
        key = (self.role, name)
        loops, bindings = self.sites.loops.get(key, ()), self.sites.bindings.get(key, ())
        if key in self.sites.results or (loops and bindings):
            return ANY
        out: Range | None = None
        for loop in loops:
            if loop.lo is None or loop.hi is None:
                return ANY
            lo, hi = self.value(loop.lo, depth), self.value(loop.hi, depth)
            if lo.lo >= hi.hi:  # the loop has no iteration, and no value
                continue
            r = span(lo.lo, hi.hi - 1, lo.exact is not None and hi.exact is not None)
            out = r if out is None else join(out, r)
        if len(bindings) > 1 and any(_mentions(b.value, name) for b in bindings):
            return ANY  # a running value: no fixpoint is sought
        for b in bindings:
            r = self.value(b.value, depth)
            out = r if out is None else join(out, r)
        return out if out is not None else ANY


_BINARY = {"add": add, "sub": lambda a, b: add(a, b, -1), "mul": mul, "floordiv": floordiv, "mod": modulo}


def _mentions(e: Expr, name: str) -> bool:
    return any(x.op == "var" and x.attrs["name"] == name for x in e.parts())
