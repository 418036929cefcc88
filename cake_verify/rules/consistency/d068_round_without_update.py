"""D068: what is rescaled between products is rescaled in front of the second of them already."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, For, If, Program
from cake_ir.types import TmemT
from cake_verify.analyses import edits
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import resolver_of, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.s052_update_lost import SUMMED

_FADED = edit(
    SUMMED,
    ("            lm.wait(added, stage=w)\n            x = lm.tmem_load(o)\n            lm.tmem_wait(\"ld\")\n            if k + 1 < n:\n                lm.tmem_store(o, x * f)\n                lm.tmem_wait(\"st\")\n"
     "            else:\n                lm.store(C, x * f, coords=(0, 0))\n            lm.arrive(faded, stage=w)\n",
     "            if k > 0:\n                lm.wait(added, stage=w.prev())\n                x = lm.tmem_load(o)\n                lm.tmem_wait(\"ld\")\n                lm.tmem_store(o, x * f)\n                lm.tmem_wait(\"st\")\n"
     "            lm.arrive(faded, stage=w)\n        lm.wait(added, stage=lm.at(turn))\n        y = lm.tmem_load(o)\n        lm.tmem_wait(\"ld\")\n        lm.store(C, y, coords=(0, 0))\n"),
    ("arrive=\"warp\", primed=True)\n    n =", "arrive=\"warp\")\n    n ="),
)  # fmt: skip

PAGE = Page(
    code="D068",
    title="a round whose sum is not brought up to date",
    statement="A condition under which a loop multiplies a region of tensor memory by a factor between the products that a role adds to it lets the second round through.",
    why="The first round has nothing to rescale, the second has what the first has left. A check that is one round too strict leaves the first product at its old scale: right where the maximum did not move.",
    failing=edit(_FADED, ("if k > 0:\n                lm.wait(added, stage=w.prev())\n                x", "if k > 0:\n                lm.wait(added, stage=w.prev())\n            if k > 1:\n                x")),
    passing=_FADED,
    limits="Decided for conditions that compare the variable of a loop from a number with a number, where products of a loop from the same number start from zero in its first round only.",
)

_FIRST = {"gt": 1, "ge": 0}


def check(program: Program) -> Iterator[Fault]:
    if not program.tmems:
        return
    starts: dict[str, set[int | None]] = {}
    for s in sites(program).of("mma"):
        e = s.op.operands.get("acc")
        if isinstance(e, Expr) and isinstance(e.type, TmemT):
            starts.setdefault(e.type.tmem, set()).add(_first_round(program, s))
    for s in sites(program).of("tmem_store"):
        e = s.op.operands.get("t")
        region = e.type.tmem if isinstance(e, Expr) and isinstance(e.type, TmemT) else ""
        fault = _late(program, s, region, starts.get(region, set()))
        if fault is not None:
            yield fault
            return


def _first_round(program: Program, s: Site) -> int | None:
    """The round of a loop in which a product starts from zero, where that is its first."""
    init = s.op.operands.get("init")
    loop = next((x for x in reversed(s.loops) if x.kind != "tiles"), None)
    if not isinstance(init, Expr) or init.op != "eq" or loop is None:
        return None
    number = _compared(init, loop)
    return number if number is not None and number == _number(loop.lo) else None


def _late(program: Program, s: Site, region: str, starts: set[int | None]) -> Fault | None:
    """A region that is rescaled in place from a later round than the second on."""
    x, role = s.op.operands.get("x"), s.role.name
    if len(starts) != 1 or None in starts or not isinstance(x, Expr) or x.op != "mul":
        return None
    loads = [y for y in sites(program).of("tmem_load") if y.role is s.role and any(a.op == "var" and a.attrs["name"] in y.targets for a in x.args) and _region(y) == region]
    branches = [p for p in s.path if isinstance(p, If)]
    if len(loads) != 1 or len(branches) != 1 or s.arms != (True,):
        return None
    (first,) = starts
    cond = resolver_of(program, role)(branches[0].cond)
    loop = next((p for p in reversed(s.path[: s.path.index(branches[0])]) if isinstance(p, For) and p.kind != "tiles"), None)
    if loop is None or first is None or _number(loop.lo) != first or cond.op not in _FIRST:
        return None
    number = _compared(cond, loop)
    late = None if number is None else number + _FIRST[cond.op] - (first + 1)
    if late is None or late < 1:
        return None
    var = written(loop.var)
    message = f"{call(s.op)} brings `{region}` up to date from the round `{var}` = {first + 1 + late} on, and what the round `{var}` = {first} has left is there in the next already"
    return Fault("D068", message, branches[0].cond.span, ((s.op.span, "multiplied here"), (loop.head, "in this loop")), f"let `{var}` = {first + 1} through",
                 (edits.replace(branches[0].cond.span, f"{var} > {first}"),), {"role": role, "region": region})  # fmt: skip


def _region(s: Site) -> str:
    e = s.op.operands.get("t")
    return e.type.tmem if isinstance(e, Expr) and isinstance(e.type, TmemT) else ""


def _compared(e: Expr, loop: For) -> int | None:
    """The number that the variable of a loop is compared with."""
    a, b = e.args
    if a.op != "var" or a.attrs["name"] != loop.var:
        return None
    return _number(b)


def _number(e: Expr | None) -> int | None:
    v = _constant(e) if e is not None else None
    return v if isinstance(v, int) else None


def _constant(e: Expr) -> object:
    if e.op == "const":
        return e.attrs["value"]
    if e.op in ("add", "sub"):
        a, b = _constant(e.args[0]), _constant(e.args[1])
        if isinstance(a, int) and isinstance(b, int):
            return a + b if e.op == "add" else a - b
    return None
