"""Uniform integers as linear combinations of tile fields, members and loop variables."""

from __future__ import annotations

from dataclasses import field

from cake_ir.derive.bits import counted
from cake_ir.fact import fact
from cake_ir.program import Expr, For, Program
from cake_ir.record import record
from cake_verify.analyses import ranges
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.tensors import written_tensors
from cake_verify.analyses.trips import resolver_of

_DEPTH = 16
_NOWHERE: frozenset[str] = frozenset()


@record()
class Affine:
    """constant + sum of coefficient x term; terms are `t.m` (a tile's field), `member`, or a loop variable's name.

    `open` says that something is added that does not change with any term; `blurred` holds terms with which more changes than their
    coefficient says.
    """

    constant: int = 0
    terms: dict[str, int] = field(default_factory=dict)
    open: bool = False
    blurred: frozenset[str] = _NOWHERE

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        terms = dict(self.terms)
        for name, c in other.terms.items():
            terms[name] = terms.get(name, 0) + sign * c
        return Affine(self.constant + sign * other.constant, {n: c for n, c in terms.items() if c}, self.open or other.open, self.blurred | other.blurred)

    def times(self, k: int) -> Affine:
        return Affine(self.constant * k, {n: c * k for n, c in self.terms.items()}, self.open, self.blurred) if k else Affine()

    @property
    def whole(self) -> bool:
        """Whether nothing but the constant and the terms is in it."""
        return not self.open and not self.blurred


def affine(program: Program, role: str, e: Expr) -> Affine | None:
    """`e` as a linear combination, None where it is not one of known integers."""
    found = _form(program, role, e, _DEPTH, _known(program, role))
    return found if found.whole else None


def shifted(program: Program, role: str, e: Expr) -> Affine | None:
    """`e` as a linear combination beside launch arguments, which are the same for every block; None where something else is added."""
    found = _form(program, role, e, _DEPTH, _known(program, role))
    if found.blurred or (found.open and any(n.op in _OF_BLOCKS for n in resolver_of(program, role)(e).parts())):
        return None
    return found


_OF_BLOCKS = ("cta_rank", "cta_id", "slot_index", "ld")
"""What is no term and yet may differ between blocks or rounds."""


def steps(program: Program, role: str, e: Expr) -> dict[str, int]:
    """By how much `e` grows from one value of a term to the next, all else the same; terms for which that is no one number are left out."""
    found = _form(program, role, e, _DEPTH, _known(program, role))
    return {name: c for name, c in found.terms.items() if name not in found.blurred and _several(program, role, name)}


def _several(program: Program, role: str, name: str) -> bool:
    """Whether a term has more than one value."""
    if name == "member":
        return program.roles[role].members > 1
    loops = sites(program).loops.get((role, name), ())
    return not loops or any(loop.lo is None or loop.hi is None or _iterations(program, role, loop) != 1 for loop in loops)


def _iterations(program: Program, role: str, loop: For) -> int | None:
    lo, hi = (ranges.of(program, role, e).exact for e in (loop.lo, loop.hi) if e is not None)
    return hi - lo if lo is not None and hi is not None else None


_Forms = dict[tuple[int, int], tuple[Expr, Affine]]


def _form(program: Program, role: str, e: Expr, depth: int, known: _Forms) -> Affine:
    if not e.args and e.op != "var":
        return _worked_out(program, role, e, depth, known)
    key = id(e), depth
    found = known.get(key)
    if found is None:
        found = known[key] = e, _worked_out(program, role, e, depth, known)
    return found[1]


@fact
def _known(program: Program, role: str) -> _Forms:
    """Forms by identity and by how deep was looked, each with its expression, which lives as long as its number stands for it."""
    return {}


def _worked_out(program: Program, role: str, e: Expr, depth: int, known: _Forms) -> Affine:
    op = e.op
    if op == "const":
        v = e.attrs["value"]
        return Affine(v) if isinstance(v, int) else Affine(open=True)
    if depth == 0:
        return Affine(open=True, blurred=_everything(program, role))
    if op in ("add", "sub"):
        a, b = _form(program, role, e.args[0], depth - 1, known), _form(program, role, e.args[1], depth - 1, known)
        return a.plus(b, 1 if op == "add" else -1)
    if op == "neg":
        return _form(program, role, e.args[0], depth - 1, known).times(-1)
    if op == "mul":
        return _product(program, role, e, depth, known)
    if op == "shl" and (shifted := counted(e)) is not None:
        return _form(program, role, shifted[1], depth - 1, known).times(shifted[2])
    if op == "field" and e.args[0].op == "var":
        return Affine(0, {f"{e.args[0].attrs['name']}.{e.attrs['name']}": 1})
    if op == "role_index":
        return Affine(0, {"member": 1})
    if op == "var":
        return _variable(program, role, str(e.attrs["name"]), depth, known)
    return _moving([_form(program, role, x, depth - 1, known) for x in e.args])


def _product(program: Program, role: str, e: Expr, depth: int, known: _Forms) -> Affine:
    forms = [_form(program, role, x, depth - 1, known) for x in e.args]
    for factor, other, x in ((forms[0], forms[1], e.args[0]), (forms[1], forms[0], e.args[1])):
        if factor.whole and not factor.terms:
            return other.times(factor.constant)
        if not factor.terms and not factor.blurred and (k := ranges.of(program, role, x).exact) is not None:
            return other.times(k)
    return _moving(forms)


def _variable(program: Program, role: str, name: str, depth: int, known: _Forms) -> Affine:
    if name in program.lets:
        return _form(program, role, program.lets[name].value, depth - 1, known)
    found, key = sites(program), (role, name)
    bindings, results, loops = found.bindings.get(key, ()), found.results.get(key, ()), found.loops.get(key, ())
    if loops and not bindings:
        return Affine(0, {name: 1})
    if len(bindings) == 1 and not results:
        return _form(program, role, bindings[0].value, depth - 1, known)
    if len(results) == 1 and not bindings and _lasting(program, results[0]):  # the same wherever the same element is read
        return _moving([_form(program, role, results[0].op.operands["i"], depth - 1, known)])  # type: ignore[arg-type]  # reads have one index
    if results and not bindings:  # read anew in every round of the loops around
        around = [p for s in results for p in s.path if isinstance(p, For)]
        return Affine(open=True, blurred=frozenset(t for loop in around for t in _terms_of(program, role, loop)))
    return Affine(open=True, blurred=_everything(program, role))


def _lasting(program: Program, s: Site) -> bool:
    """Whether this is a read of a number from a tensor that the launch does not write."""
    return s.op.name == "ld" and "tensor" in s.op.attrs and str(s.op.attrs["tensor"]) not in written_tensors(program)


def _moving(forms: list[Affine]) -> Affine:
    """Something that is no sum: it may change with every term in it."""
    return Affine(open=True, blurred=frozenset(n for f in forms for n in (*f.terms, *f.blurred)))


def _terms_of(program: Program, role: str, loop: For) -> frozenset[str]:
    """The terms that change from one round of a loop to the next."""
    if loop.kind == "tiles":
        return frozenset(f"{loop.var}.{name}" for name in program.schedulers[str(loop.scheduler)].fields) | {"member"}
    return frozenset({loop.var, "member"})


@fact
def _everything(program: Program, role: str) -> frozenset[str]:
    loops = [loop for (owner, _), found in sites(program).loops.items() if owner == role for loop in found]
    return frozenset({"member"}).union(*(_terms_of(program, role, loop) for loop in loops))
