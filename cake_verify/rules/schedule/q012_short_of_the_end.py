"""Q012: the tiles of an output reach its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cake_ir.derive.mentions import beside
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, If, Param, Program
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.affine import affine
from cake_verify.analyses.left_out import fixes
from cake_verify.analyses.positions import arguments, parameters
from cake_verify.analyses.short_rounds import Short, short_rounds
from cake_verify.analyses.sites import Site, covered, sites, stores_by_tensor
from cake_verify.analyses.tape import plain_tape
from cake_verify.analyses.tensors import read_tensors
from cake_verify.analyses.trips import loops as counted_loops
from cake_verify.analyses.trips import resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import NAMED

PAGE = Page(
    code="Q012",
    title="tiles that end before the tensor does",
    statement="Where the coordinate of every store of a tensor steps by tiles or rounds whose number follows from the extent, or by rounds of a fixed number along an extent that is one, the last of them reaches the extent. A loop over tiles that a length cuts comes to the tile in which that ends, one that brings all of a tensor to its last, and some load comes to what is left behind the last whole tile of a tensor.",
    why="A count that rounds down, or divides by another tile than the one that is stored, leaves the rest of the output as it was: right for multiples of the tile, wrong for everything else.",
    failing=edit(NAMED, ("tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128))", "tiles=(M // 64, lm.cdiv(N, 128))")),
    passing=NAMED,
    limits="Tried on small arguments that keep every `lm.assume`, for coordinates that are linear in tile fields, members and loop variables. Tensors that the launch also reads are left alone; extents that are numbers are decided where one store writes the tensor.",
)


def check(program: Program) -> Iterator[Fault]:
    yield from (_cut(found) for found in short_rounds(program))
    yield from _loads(program)
    told: set[Span] = set()  # rounds that end early leave out a part of every tensor that they store
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
    yield from (fault for fault in _unread(program) if fault.span not in told)


_LOADS = ("tma_load", "cp_async", "load")


def _unread(program: Program) -> Iterator[Fault]:
    """Tensors of which no load comes to what is left behind the last whole tile."""
    counts = (*(e for d in program.schedulers.values() for e in d.tiles), *(let.value for let in program.lets.values()))
    if not any(n.op == "floordiv" for e in counts for n in e.parts()) and not any(n.op == "floordiv" for n in beside(program)):
        return  # nothing is rounded down
    loads: dict[str, list[Site]] = {}
    for s in sites(program).of(*_LOADS):
        if s.op.attrs.get("tensor") in program.tensors and isinstance(s.op.operands.get("coords"), tuple):
            loads.setdefault(str(s.op.attrs["tensor"]), []).append(s)
    for name, found in loads.items():
        tensor = program.tensors[name]
        for axis, extent in enumerate(reversed(tensor.extents)):
            cut = _rounded_down(program, found[0], axis, extent) if isinstance(extent, str) else None
            if cut is not None and all([_rounded_down(program, s, axis, extent) for s in found[1:]]):
                step, count, span = cut
                names = parameters(program, [Expr("param", (), {"name": extent})])
                if not any(args[str(extent)] % step for args in arguments(program, names, limit=12)):
                    continue  # what is assumed leaves nothing behind the last tile
                at = found[0].op.spans.get("coords", found[0].op.span)
                yield Fault("Q012", f"nothing reads `{name}` along `{extent}` behind the last whole {step}: `{count}` rounds down", span, ((at, "loaded here"), (tensor.span, f"`{extent}` is declared here")),
                            f"round up, `lm.cdiv({extent}, {step})`, or state `lm.assume({extent} % {step} == 0)`", (), {"axis": axis, "expected": extent, "found": count})  # fmt: skip
                return


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
    if x.op != "param" or x.attrs["name"] != extent or n.attrs.get("value") != stride or stored(s, axis) > stride:
        return None
    return stride, spoken(count[0]), count[2]


def _cut(found: Short) -> Fault:
    """A loop that never comes to the tile which its length ends in."""
    rounds = f"{found.missing} round{'s' if found.missing > 1 else ''}"
    message = f"this loop ends {rounds} before the length that its tiles are cut by does: what is left of it is never {'stored' if found.op.name != 'compute' else 'taken in'}"
    return Fault("Q012", message, found.loop.head, ((found.at, "cut here"),), "go on to the last tile", _whole(found.loop.hi), {"role": found.role, "missing": found.missing})


def _whole(hi: Expr | None) -> tuple[Fix, ...]:
    """The end of a loop without the number that is taken off it."""
    return (edits.replace(hi.span, spoken(hi.args[0])),) if hi is not None and hi.op == "sub" and hi.args[1].op == "const" and hi.span.line else ()


def _fixed(program: Program, s: Site, tensor: Param, axis: int, e: Expr, size: int) -> Fault | None:
    """An extent that is a number, which rounds of fixed number do not reach."""
    line = affine(program, s.role.name, e)
    if line is None or line.constant or len(line.terms) != 1 or s.op.operands.get("rows") is not None:
        return None
    ((name, stride),) = line.terms.items()
    found = counted(program, s, name)
    if found is None or "." in name or name == "member" or stride != stored(s, axis):
        return None
    count = found[0].attrs.get("value") if isinstance(found[0], Expr) and found[0].op == "const" else found[0]
    if not isinstance(count, int) or count < 1 or count * stride >= size:
        return None
    return Fault("Q012", f"nothing writes `{tensor.name}` from {count * stride} on along axis {axis}, which has {size}: {count} round{'s' if count > 1 else ''} end there", found[2],
                 ((s.op.spans.get("coords", s.op.span), "stored here"), (tensor.span, "declared here")), f"go on to {size}", _longer(s, name, count * stride, size, stride), {"axis": axis, "expected": size, "found": count * stride})  # fmt: skip


def _longer(s: Site, name: str, reached: int, size: int, stride: int) -> tuple[Fix, ...]:
    return fixes(next((x for x in s.loops if x.var == name), None), (reached, size), stride)


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
        if len(found) > 1 or s.op.name not in _LOADS or not any(id(x) in early for x in s.loops) or tensor is None or not isinstance(coords, tuple) or len(tensor.extents) != len(coords) or any(isinstance(p, If) for p in s.path):
            continue
        for axis, e in enumerate(coords):
            extent = tensor.extents[len(tensor.extents) - 1 - axis]
            line = affine(program, s.role.name, e) if isinstance(extent, str) and not isinstance(e.type, FragT) and e.op != "const" else None
            if line is None or line.constant or len(line.terms) != 1 or not isinstance(extent, str):
                continue
            ((term, stride),) = line.terms.items()
            loop = next((x for x in s.loops if x.var == term), None)
            rounds = counted(program, s, term) if loop is not None and stride == stored(s, axis) else None
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
    at: Span | None = None
    text = ""
    for name, stride in line.terms.items():
        found = counted(program, s, name)
        if found is None:
            return None
        count, rounded, span = found
        if _reaches(count, stride, extent):
            return None
        counts.append((stride, count, rounded))
        if isinstance(count, Expr) and any(n.op == "param" and n.attrs["name"] == extent for n in count.parts()):
            at, text = span, spoken(count)
    if at is None:
        return None
    last = reached = stored(s, axis)
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


def _reaches(count: Expr | int, stride: int, extent: str) -> bool:
    """Whether as many steps come to the end whatever the extent is: `lm.cdiv(extent, n)` steps of n or more, nearly always how tiles are counted."""
    if not isinstance(count, Expr) or count.op != "cdiv" or count.args[0].op != "param" or count.args[0].attrs["name"] != extent:
        return False
    n = count.args[1].attrs.get("value") if count.args[1].op == "const" else None
    return isinstance(n, int) and 0 < n <= stride


def stored(s: Site, axis: int) -> int:
    """Elements that one access covers along an axis, innermost first."""
    box, view = s.op.attrs.get("box"), s.op.operands.get("view")
    if isinstance(box, tuple):
        return int(box[axis])  # type: ignore[arg-type]  # integers by the option's kind
    if isinstance(view, Expr) and axis == 1 and view.type is not None:
        return int(getattr(view.type, "rows", 1))
    return covered(s.op, axis)


def counted(program: Program, s: Site, name: str) -> tuple[Expr | int, int, Span] | None:
    """How many values a term takes, the multiple that it is rounded up to, and where that is written."""
    if name == "member":
        return s.role.members, 1, s.role.span
    if "." in name:
        var, _, field = name.partition(".")
        loop = next((x for x in s.loops if x.var == var), None)
        d = program.schedulers.get(str(loop.scheduler)) if loop is not None else None
        if d is not None and d.kind == "grouped" and field == "n":  # the tiles along n are the same for every group
            return resolver_of(program, "")(d.tiles[-1]), d.cluster[1] if len(d.cluster) > 1 else 1, d.spans.get("tiles", d.span)
        if d is None or d.kind == "grouped" or field not in d.names:
            return None
        k = d.names.index(field)
        return resolver_of(program, "")(d.tiles[k]), d.cluster[k] if k < len(d.cluster) else 1, _written(program, d.tiles[k], d.spans.get("tiles", d.span))
    loop = next((x for x in s.loops if x.var == name), None)
    if loop is None or loop.lo is None or loop.hi is None or affine(program, s.role.name, loop.lo) is None:
        return None
    resolve = resolver_of(program, s.role.name)
    lo = resolve(loop.lo)
    if lo.op != "const" or lo.attrs["value"] != 0:
        return None
    return resolve(loop.hi), 1, _written(program, loop.hi, loop.head)


def _written(program: Program, e: Expr, here: Span) -> Span:
    """Where a count is written: where it has a name, at the declaration of the name."""
    let = program.lets.get(str(e.attrs.get("name"))) if e.op == "var" else None
    return here if let is None else let.value.span
