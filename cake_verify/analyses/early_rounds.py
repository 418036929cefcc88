"""Loops over tiles that end rounds before what they go over does: a length by which their last tile is cut, or a tensor that they bring."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault, Fix
from cake_ir.program import Assign, Expr, For, If, Op, Param, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.affine import affine
from cake_verify.analyses.counted_terms import LOADS, counted
from cake_verify.analyses.positions import arguments, parameters
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.short_rounds import Short, short_rounds
from cake_verify.analyses.sites import Site, boxed, constant_rounds, sites
from cake_verify.analyses.tape import plain_tape
from cake_verify.analyses.trips import loops as counted_loops
from cake_verify.analyses.trips import resolver_of, spoken


def early_rounds(program: Program) -> Iterator[Fault]:
    """The loops that end early, those that a length cuts first."""
    yield from (_cut(found) for found in short_rounds(program))
    yield from _loads(program)


def _cut(found: Short) -> Fault:
    """A loop that never comes to the tile which its length ends in."""
    left = "taken in" if found.op.name in ("compute", "load", "atomic") else "stored"
    if not found.missing:
        hi = found.loop.hi
        fix = (edits.replace(hi.span, f"lm.cdiv({spoken(hi.args[0])}, {spoken(hi.args[1])})"),) if hi is not None and hi.op == "floordiv" and hi.span.line else ()
        message = f"this loop goes over whole tiles only of the length that its tiles are cut by: what is left of it is never {left}"
        return Fault("Q012", message, found.loop.head, ((found.at, "cut here"),), "round up", fix, {"role": found.role, "missing": 1})
    rounds = f"{found.missing} round{'s' if found.missing > 1 else ''}"
    message = f"this loop ends {rounds} before the length that its tiles are cut by does: what is left of it is never {left}"
    return Fault("Q012", message, found.loop.head, ((found.at, "cut here"),), "go on to the last tile", _whole(found.loop.hi), {"role": found.role, "missing": found.missing})


def _whole(hi: Expr | None) -> tuple[Fix, ...]:
    """The end of a loop without the number that is taken off it."""
    return (edits.replace(hi.span, spoken(hi.args[0])),) if hi is not None and hi.op == "sub" and hi.args[1].op == "const" and hi.span.line else ()


def _loads(program: Program) -> Iterator[Fault]:
    """Loops that bring a tensor tile by tile and end the same number of rounds before its end, whatever its length is."""
    early = {id(x.stmt) for x in counted_loops(program) if x.hi.op == "sub" and x.hi.args[1].op == "const"}
    fixed = {id(x.stmt) for x in counted_loops(program) if x.constant} if any(isinstance(e, int) and e > 1 for p in program.tensors.values() for e in p.extents[:-1]) else set()
    if not early and not fixed:
        return
    by: dict[str, list[Site]] = {}
    for s in sites(program).ops:
        if "tensor" in s.op.attrs:
            by.setdefault(str(s.op.attrs["tensor"]), []).append(s)
    for name, found in by.items():
        tensor = program.tensors.get(name)
        if tensor is None or any(s.op.name not in LOADS for s in found):
            continue
        short = early | fixed if any(isinstance(e, int) for e in tensor.extents[:-1]) else early
        for s in found:
            if any(id(x) in short for x in s.loops) and (told := _early(program, s, tensor, short, [o for o in found if o is not s])) is not None:
                yield told
                break


def _early(program: Program, s: Site, tensor: Param, early: set[int], others: list[Site]) -> Fault | None:
    """The fault of a load whose loop ends before an axis of its tensor; `others` load it, too."""
    coords = s.op.operands.get("coords")
    if not isinstance(coords, tuple) or len(tensor.extents) != len(coords):
        return None
    for axis, extent in enumerate(reversed(tensor.extents)):
        guards = [p for p in s.path if isinstance(p, If) and not _chooses(program, p, s, extent)]
        found = _rounds_of(program, s, tensor, axis, early) if not guards else None
        peeled = found is None and others and (found := _behind_first(program, s, tensor, axis, early, others)) is not None
        if found is None:
            continue
        loop, missing = found
        if not missing or (not peeled and others and not (_sums_up(program, s, loop) and all(_whole_alone(program, o, tensor, axis) for o in others))):
            continue
        rest = "nothing reads the rest of it" if not others or peeled else "what it sums lacks the rest, which is read elsewhere"
        ever, declared = (f", whatever `{extent}` is", f"`{extent}` is declared here") if isinstance(extent, str) else ("", f"it has {extent} there")
        message = f"this loop ends {missing} round{'s' if missing > 1 else ''} before `{tensor.name}` does{ever}: {rest}"
        return Fault("Q012", message, loop.head, ((s.op.span, "read here"), (tensor.span, declared)), "go on to the last tile", _whole(loop.hi),
                     {"role": s.role.name, "missing": missing, "axis": axis})  # fmt: skip
    return None


def _chooses(program: Program, branch: If, s: Site, extent: str | int) -> bool:
    """Whether a branch stands around the last loop of a load and says nothing of how long the axis is: whoever takes it goes round as often as that loop does."""
    inside = s.path[s.path.index(branch) :]
    names = {n.attrs["name"] for n in outside_reads(resolver_of(program, s.role.name)(branch.cond)) if n.op == "param"}
    return s.loops[-1] in inside and extent not in names


def _rounds_of(program: Program, s: Site, tensor: Param, axis: int, among: set[int] | None = None) -> tuple[For, int] | None:
    """The loop (one of those `among` which it is asked for) that alone moves a load along an axis from its first tile on, and how many rounds it lacks."""
    coords = s.op.operands["coords"]
    assert isinstance(coords, tuple)
    e, extent = coords[axis], tensor.extents[len(tensor.extents) - 1 - axis]
    line = affine(program, s.role.name, e) if not isinstance(e.type, FragT) and e.op != "const" else None
    if line is None or line.constant or len(line.terms) != 1:
        return None
    ((term, stride),) = line.terms.items()
    loop = next((x for x in s.loops if x.var == term), None)
    if loop is None or (among is not None and id(loop) not in among) or stride != boxed(s.op, axis):
        return None
    if isinstance(extent, int):
        return _parts(program, s, loop, -(-extent // stride))
    rounds = counted(program, s, term)
    return None if rounds is None or not isinstance(rounds[0], Expr) else (loop, _missing(program, rounds[0], extent, stride))


def _behind_first(program: Program, s: Site, tensor: Param, axis: int, among: set[int], others: list[Site]) -> tuple[For, int] | None:
    """The same of a loop that adds up what it loads, where the other loads bring what lies in front of its first round and nothing else."""
    coords, extent = s.op.operands["coords"], tensor.extents[len(tensor.extents) - 1 - axis]
    assert isinstance(coords, tuple)
    line = affine(program, s.role.name, coords[axis]) if not isinstance(coords[axis].type, FragT) and coords[axis].op != "const" else None
    if line is None or line.constant or len(line.terms) != 1 or not isinstance(extent, str):
        return None
    ((term, stride),) = line.terms.items()
    loop = next((x for x in s.loops if x.var == term and id(x) in among), None)
    first = loop.lo.attrs.get("value") if loop is not None and loop.lo is not None and loop.lo.op == "const" else None
    if loop is None or loop.hi is None or not isinstance(first, int) or first < 1 or stride != boxed(s.op, axis) or not _sums_up(program, s, loop):
        return None
    before = s.path[: s.path.index(loop)]
    if any(isinstance(p, If) for p in s.path[len(before) :]) or any(len(o.path) != len(before) or any(a is not b for a, b in zip(o.path, before, strict=True)) or o.arms != s.arms for o in others):
        return None  # one of them may run without the other
    at = sorted(c[axis].attrs.get("value", -1) if isinstance(c := o.op.operands.get("coords"), tuple) and c[axis].op == "const" else -1 for o in others)  # type: ignore[type-var]  # coordinates are integers
    if at != [k * stride for k in range(first)] or any(boxed(o.op, axis) != stride for o in others):
        return None
    return loop, _missing(program, resolver_of(program, s.role.name)(loop.hi), extent, stride)


def _parts(program: Program, s: Site, loop: For, parts: int) -> tuple[For, int] | None:
    """The same over an axis of a fixed number of parts: told where a loop adds up all but the last of them."""
    rounds, first = constant_rounds(loop), loop.lo
    if rounds is None or first is None or first.attrs.get("value") != 0:
        return None
    missing = parts - rounds
    return (loop, missing) if missing == 0 or (missing == 1 and rounds > 1 and _sums_up(program, s, loop)) else None


def _adds(loop: For) -> bool:
    """Whether a loop adds something to a name of its own in every round."""
    for x in loop.body:
        value = x.value.operands.get("value") if isinstance(x, Assign) and isinstance(x.value, Op) else None
        if isinstance(x, Assign) and isinstance(value, Expr) and value.op in ("add", "fma") and any(n.op == "var" and n.attrs["name"] in x.targets for n in value.parts()):
            return True
    return False


def _sums_up(program: Program, s: Site, loop: For) -> bool:
    """Whether a loop leaves nothing but sums of what it loads: it stores nothing, waits for nobody and starts no copy."""
    inside = [x for x in sites(program).of_role(s.role.name) if loop in x.loops]
    return _adds(loop) and all(x.op.name in ("load", "ld", "compute") for x in inside)


def _whole_alone(program: Program, s: Site, tensor: Param, axis: int) -> bool:
    """Whether a load goes over all of an axis by itself, from the first tile on: it does not make up for what another one leaves out."""
    coords = s.op.operands.get("coords")
    found = _rounds_of(program, s, tensor, axis) if isinstance(coords, tuple) and len(coords) == len(tensor.extents) else None
    return found is not None and not found[1]


_CLOSE = 2
"""Rounds that may be missing: more are a part of the tensor that is somebody else's."""


def _missing(program: Program, count: Expr, extent: str, stride: int) -> int:
    """How many rounds are missing, where it is the same number for arguments that give the tensor several lengths."""
    found: set[int] = set()
    sizes: set[int] = set()
    for args in arguments(program, parameters(program, [count, Expr("param", (), {"name": extent})]), (3, stride + 1, 3 * stride, 5 * stride + 1), limit=24):
        n, size = plain_tape(program, (count,)).given(args)[0], args.get(extent)
        if not isinstance(n, int) or size is None:
            return 0
        if n > 0:
            found.add(-(-size // stride) - n)
            sizes.add(-(-size // stride))
            if len(found) > 1 or not 1 <= min(found) <= _CLOSE:
                return 0
    return found.pop() if len(sizes) > 1 else 0


__all__ = ["early_rounds"]
