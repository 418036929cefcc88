"""Tensors of which no load comes to what is left behind the last whole tile: counts that round down."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import floor_divisions
from cake_ir.derive.structure import stated
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.span import Span
from cake_verify.analyses.affine import affine
from cake_verify.analyses.counted_terms import LOADS, counted
from cake_verify.analyses.positions import arguments, parameters
from cake_verify.analyses.sites import Site, boxed, sites
from cake_verify.analyses.trips import spoken


def unread_tails(program: Program) -> Iterator[Fault]:
    """Tensors of which no load comes to what is left behind the last whole tile."""
    if not any([n.args[1].op in ("const", "var") for n in floor_divisions(program)]):  # a name may stand for the size of a tile
        return
    loads: dict[str, list[Site]] = {}
    for s in sites(program).of(*LOADS):
        if s.op.attrs.get("tensor") in program.tensors and isinstance(s.op.operands.get("coords"), tuple):
            loads.setdefault(str(s.op.attrs["tensor"]), []).append(s)
    one_by_one = {s.op.attrs.get("tensor") for s in sites(program).of("ld")}  # what is left may be read so
    for name, found in loads.items():
        tensor = program.tensors[name]
        if name in one_by_one:
            continue
        for axis, extent in enumerate(reversed(tensor.extents)):
            cut = _rounded_down(program, found[0], axis, extent) if isinstance(extent, str) else None
            if cut is not None and all([_rounded_down(program, s, axis, extent) for s in found[1:]]):
                step, count, span = cut
                if _stated(program, extent, step):
                    continue
                names = parameters(program, [Expr("param", (), {"name": extent})])
                if not any(args[str(extent)] % step for args in arguments(program, names, limit=12)):
                    continue  # what is assumed leaves nothing behind the last tile
                at = found[0].op.spans.get("coords", found[0].op.span)
                yield Fault("Q012", f"nothing reads `{name}` along `{extent}` behind the last whole {step}: `{count}` rounds down", span, ((at, "loaded here"), (tensor.span, f"`{extent}` is declared here")),
                            f"round up, `lm.cdiv({extent}, {step})`, or state `lm.assume({extent} % {step} == 0)`", (), {"axis": axis, "expected": extent, "found": count})  # fmt: skip
                return


def _stated(program: Program, extent: str | int, step: int) -> bool:
    """Whether an assumption gives the number of whole tiles a name of its own (`P == N // 128`), as a pooled output has: then what is left is left out on purpose."""
    conds = [c for a in program.assumes for c in stated(a.cond) if c.op == "eq"]
    return any(
        x.op == "param" and y.op == "floordiv" and y.args[0].op == "param" and y.args[0].attrs["name"] == extent and y.args[1].attrs.get("value") == step
        for c in conds for x, y in (c.args, c.args[::-1])
    )  # fmt: skip


def _rounded_down(program: Program, s: Site, axis: int, extent: str | int) -> tuple[int, str, Span] | None:
    """The step, the count and where it is written, of a load that steps through an axis by whole tiles only."""
    coords = s.op.operands["coords"]
    line = affine(program, s.role.name, coords[axis]) if isinstance(coords, tuple) and axis < len(coords) and coords[axis].op != "const" else None
    if line is None or line.constant or len(line.terms) != 1 or line.open or line.blurred:
        return None
    ((name, stride),) = line.terms.items()
    count = counted(program, s, name)
    if count is None or not isinstance(count[0], Expr) or count[0].op != "floordiv" or count[1] != 1:
        return None
    x, n = count[0].args
    if not any(a.op == "param" and a.attrs["name"] == extent for a in (x.args if x.op == "min" else (x,))) or n.attrs.get("value") != stride or boxed(s.op, axis) > stride:
        return None
    return stride, spoken(count[0]), count[2]


__all__ = ["unread_tails"]
