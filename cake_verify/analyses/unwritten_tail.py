"""Outputs whose tiles or rounds end before their extent does, by what all of their stores cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cake_ir.derive.structure import stated
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, Param, Program
from cake_ir.span import Span
from cake_verify.analyses import ranges
from cake_verify.analyses.affine import affine
from cake_verify.analyses.counted_terms import counted
from cake_verify.analyses.left_out import fixes
from cake_verify.analyses.positions import arguments, parameters
from cake_verify.analyses.sites import Site, boxed, stores_by_tensor
from cake_verify.analyses.tape import plain_tape
from cake_verify.analyses.tensors import read_tensors
from cake_verify.analyses.trips import resolver_of, spoken


def unwritten_tails(program: Program) -> Iterator[Fault]:
    """What no store comes to, at most one fault for each count that is too low: rounds that end early leave out a part of every tensor that they store."""
    told: set[Span] = set()
    for stores in stores_by_tensor(program):
        tensor = program.tensors[str(stores[0].op.attrs["tensor"])]
        coords = [c for s in stores if isinstance(c := s.op.operands["coords"], tuple)]
        if tensor.name in read_tensors(program) or len(coords) < len(stores) or any(len(tensor.extents) != len(c) for c in coords):
            continue
        for axis, extent in enumerate(reversed(tensor.extents)):
            size = extent if isinstance(extent, int) else program.tunables.get(extent)
            if isinstance(size, int):
                fault = _fixed(program, stores[0], tensor, axis, coords[0][axis], size) if len(stores) == 1 else None
            else:
                fault = _all(_axis(program, s, tensor, axis, c[axis], str(extent), len(stores) > 1) for s, c in zip(stores, coords, strict=True))
            if fault is not None:
                if fault.span not in told:
                    yield fault
                told.add(fault.span)
                break


def _fixed(program: Program, s: Site, tensor: Param, axis: int, e: Expr, size: int) -> Fault | None:
    """An extent that is a number, which rounds of fixed number do not reach."""
    line = affine(program, s.role.name, e)
    if line is None or line.constant or len(line.terms) != 1 or s.op.operands.get("rows") is not None:
        return None
    ((name, stride),) = line.terms.items()
    found = counted(program, s, name)
    if found is None or "." in name or name == "member" or stride != boxed(s.op, axis):
        return None
    count = found[0].attrs.get("value") if isinstance(found[0], Expr) and found[0].op == "const" else found[0]
    if not isinstance(count, int) or count < 1 or count * stride >= size:
        return None
    return Fault("Q012", f"nothing writes `{tensor.name}` from {count * stride} on along axis {axis}, which has {size}: {count} round{'s' if count > 1 else ''} end there", found[2],
                 ((s.op.spans.get("coords", s.op.span), "stored here"), (tensor.span, "declared here")), f"go on to {size}", _longer(s, name, count * stride, size, stride), {"axis": axis, "expected": size, "found": count * stride})  # fmt: skip


def _longer(s: Site, name: str, reached: int, size: int, stride: int) -> tuple[Fix, ...]:
    return fixes(next((x for x in s.loops if x.var == name), None), (reached, size), stride)


def _all(faults: Iterable[Fault | None]) -> Fault | None:
    """Of several stores of a tensor the fault of the one that comes farthest; None where one of them may come to the end."""
    farthest: Fault | None = None
    for fault in faults:
        if fault is None:
            return None
        if farthest is None or fault.facts["found"] > farthest.facts["found"]:
            farthest = fault
    return farthest


def _axis(program: Program, s: Site, tensor: Param, axis: int, e: Expr, extent: str, several: bool) -> Fault | None:
    line = affine(program, s.role.name, e)
    if line is None or line.constant < 0 or (line.constant and not several) or not line.terms or any(c <= 0 for c in line.terms.values()) or (axis and s.op.operands.get("rows") is not None):
        return None
    counts: list[tuple[int, Expr | int, int]] = []
    counting: set[str] | None = None  # worked out where some term is not seen to reach the end
    at: Span | None = None
    text = ""
    for name, stride in line.terms.items():
        found = counted(program, s, name)
        if found is None:
            return None
        count, rounded, span = found
        if _reaches(program, count, stride, extent, boxed(s.op, axis)):
            return None
        counts.append((stride, count, rounded))
        if counting is None:
            counting = _counting(program, extent)
        if isinstance(count, Expr) and any(n.op == "param" and n.attrs["name"] in counting for n in count.parts()):
            at, text = span, spoken(count)
    if at is None:
        return None
    last = reached = boxed(s.op, axis)
    for stride, count, _ in sorted(counts, key=lambda c: c[0]):
        if stride > reached and not several:
            return None  # a gap between neighbours, which Q001 tells
        reached = stride * count if isinstance(count, int) else 1 << 62
    names = parameters(program, [c for _, c, _ in counts if isinstance(c, Expr)]) | {extent}
    whole = max(rounded for _, _, rounded in counts)  # where tiles are rounded up to clusters, one tile and a bit says nothing
    for args in arguments(program, names, (3, 2 * max(line.terms.values()) + 1), 12, () if whole == 1 else (whole,)):
        end = last + line.constant
        for stride, count, rounded in counts:
            n = count if isinstance(count, int) else plain_tape(program, (count,)).given(args)[0]
            if not isinstance(n, int) or n < 1:
                break
            end += stride * (-(-n // rounded) * rounded - 1)
        else:
            size = args.get(extent)
            if size is not None and end < size:
                given = ", ".join(f"{n} = {args[n]}" for n in sorted(names) if n in args)
                return Fault("Q012", f"nothing writes `{tensor.name}` from {end} on along `{extent}`: `{text}` tiles or rounds end there, for {given}", at,
                             ((s.op.spans.get("coords", s.op.span), "stored here"), (tensor.span, f"`{extent}` is declared here")), f"round up: `lm.cdiv({extent}, ..)` by what one store covers", (),
                             {"axis": axis, "expected": size, "found": end})  # fmt: skip
    return None


def _counting(program: Program, extent: str) -> set[str]:
    """An extent and the arguments by which `lm.assume` says what it is: `HW == 16 * H`."""
    resolve = resolver_of(program, "")
    out = {extent}
    for a in program.assumes:
        for c in stated(resolve(a.cond)):
            if c.op == "eq":
                for x, other in (c.args, c.args[::-1]):
                    if x.op == "param" and x.attrs["name"] == extent and all(n.op in ("param", "const", "mul") for n in other.parts()):
                        out |= {str(n.attrs["name"]) for n in other.parts() if n.op == "param"}
    return out


def _reaches(program: Program, count: Expr | int, stride: int, extent: str, size: int) -> bool:
    """Whether as many steps come to the end whatever the extent is, nearly always as tiles are counted: `lm.cdiv(extent, n)` steps of n or more, as many
    as the extent says, or `extent // n` of n where that is assumed to leave nothing."""
    if not isinstance(count, Expr):
        return False
    if count.op == "param":
        return count.attrs["name"] == extent and size > 0
    if count.op not in ("cdiv", "floordiv") or count.args[0].op != "param" or count.args[0].attrs["name"] != extent:
        return False
    n = count.args[1].attrs.get("value") if count.args[1].op == "const" else None
    if not isinstance(n, int) or not 0 < n <= stride:
        return False
    return count.op == "cdiv" or (size >= n and ranges.of(program, None, count.args[0]).multiple_of(n))


__all__ = ["unwritten_tails"]
