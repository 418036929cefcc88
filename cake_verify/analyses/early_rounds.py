"""Loops over tiles that end rounds before what they go over does: a length by which their last tile is cut, or a tensor that they bring."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, If, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.affine import affine
from cake_verify.analyses.counted_terms import LOADS, counted
from cake_verify.analyses.positions import arguments, parameters
from cake_verify.analyses.short_rounds import Short, short_rounds
from cake_verify.analyses.sites import Site, boxed, sites
from cake_verify.analyses.tape import plain_tape
from cake_verify.analyses.trips import loops as counted_loops
from cake_verify.analyses.trips import spoken


def early_rounds(program: Program) -> Iterator[Fault]:
    """The loops that end early, those that a length cuts first."""
    yield from (_cut(found) for found in short_rounds(program))
    yield from _loads(program)


def _cut(found: Short) -> Fault:
    """A loop that never comes to the tile which its length ends in."""
    left = "stored" if found.op.name != "compute" else "taken in"
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
    if not early:
        return
    by: dict[str, list[Site]] = {}
    for s in sites(program).ops:
        if "tensor" in s.op.attrs:
            by.setdefault(str(s.op.attrs["tensor"]), []).append(s)
    for name, found in by.items():
        s, tensor = found[0], program.tensors.get(name)
        coords = s.op.operands.get("coords")
        if len(found) > 1 or s.op.name not in LOADS or not any(id(x) in early for x in s.loops) or tensor is None or not isinstance(coords, tuple) or len(tensor.extents) != len(coords) or any(isinstance(p, If) for p in s.path):
            continue
        for axis, e in enumerate(coords):
            extent = tensor.extents[len(tensor.extents) - 1 - axis]
            line = affine(program, s.role.name, e) if isinstance(extent, str) and not isinstance(e.type, FragT) and e.op != "const" else None
            if line is None or line.constant or len(line.terms) != 1 or not isinstance(extent, str):
                continue
            ((term, stride),) = line.terms.items()
            loop = next((x for x in s.loops if x.var == term), None)
            rounds = counted(program, s, term) if loop is not None and stride == boxed(s.op, axis) else None
            if loop is None or id(loop) not in early or rounds is None or not isinstance(rounds[0], Expr):
                continue
            missing = _missing(program, rounds[0], extent, stride)
            if missing:
                message = f"this loop ends {missing} round{'s' if missing > 1 else ''} before `{tensor.name}` does, whatever `{extent}` is: nothing reads the rest of it"
                yield Fault("Q012", message, loop.head, ((s.op.span, "read here"), (tensor.span, f"`{extent}` is declared here")), "go on to the last tile", _whole(loop.hi),
                            {"role": s.role.name, "missing": missing, "axis": axis})  # fmt: skip
                break


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
