"""D057: what holds a part for every group, tile or name is read part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cake_ir.fault import Fault
from cake_ir.program import Expr, Param, Program
from cake_ir.types import FragT, ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.positions import arguments, parameters
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.sites import Site, boxed, sites
from cake_verify.analyses.tape import evaluate
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_GROUPED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def gated(lm, X: LM.gmem2d[LM.f32, "T", "H2"], Y: LM.gmem2d[LM.f32, "T", "H"], T: LM.i32, H: LM.i32, H2: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(H2 == 2 * H and H % 128 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(H // 128, T), names=("c", "t"))
    with work:
        for t in lm.tiles(sched):
            gate = lm.load(X, coords=(t.c * 128, t.t), shape=(128,))
            up = lm.load(X, coords=(H + t.c * 128, t.t), shape=(128,))
            lm.store(Y, lm.silu(gate) * up, coords=(t.c * 128, t.t))
'''

PAGE = Page(
    code="D057",
    title="one part read for all",
    statement="A tensor with a part for every group or every tile along an axis is read at that group or tile, and two names that are loaded side by side from one tensor hold different parts of it where part of an axis is read by nothing.",
    why="`coords=(k * 64, t.n * 128, 0)` gives every expert the weights of the first, and gate and up loaded from the same columns are the same numbers: all shapes fit, and the result is that of another model.",
    failing=edit(_GROUPED, ("coords=(H + t.c * 128, t.t)", "coords=(t.c * 128, t.t)")),
    passing=_GROUPED,
    limits="An axis counts as having a part for every group where its extent is the number of groups, or the count of a tile axis, and every read of the tensor has the same number there. Two loads of the same elements are told where nothing reads half of the axis or more, for small arguments that keep every `lm.assume`.",
)

SIZES = (2, 3, 200, 500)
"""Numbers of blocks that are tried: large ones too, where an argument is assumed to be a multiple of something."""
_READS = ("load", "tma_load", "cp_async", "bulk_load")


def check(program: Program) -> Iterator[Fault]:
    by: dict[str, list[Site]] = {}
    for s in sites(program).of(*_READS):
        if isinstance(s.op.operands.get("coords"), tuple):
            by.setdefault(str(s.op.attrs.get("tensor")), []).append(s)
    for name, found in by.items():
        tensor = program.tensors.get(name)
        if tensor is None or not tensor.extents or any(s.op.attrs.get("tensor") == name for s in sites(program).of("ld")):
            continue
        fault = _standing(program, tensor, found) or _twice(program, tensor, found)
        if fault is not None:
            yield fault


# ------------------------------------------------------------------ one number for all groups or tiles


def _standing(program: Program, tensor: Param, found: Sequence[Site]) -> Fault | None:
    for k, extent in enumerate(reversed(tensor.extents)):
        if not isinstance(extent, str):
            continue
        entries = [s.op.operands["coords"][k] for s in found]  # type: ignore[index]  # tuples, as asked above
        if any(not isinstance(e, Expr) or e.op != "const" for e in entries) or any(boxed(s.op, k) != 1 for s in found):
            continue
        counted = next((c for s in found if (c := _counts(program, s, extent)) is not None), None)
        if counted is None:
            continue
        field, loop, what = counted
        s = found[0]
        e = entries[0]
        message = f"every {what} reads number {e.attrs['value']} of `{tensor.name}` along `{extent}`, of which there is one for each `{loop}.{field}`"
        fixes = (edits.replace(e.span, f"{loop}.{field}"),) if e.span.line and e.span.line == e.span.end_line else ()
        return Fault("D057", message, e.span if e.span.line else s.op.span, ((tensor.span, f"extent `{extent}`"),), f"read `{loop}.{field}` of it", fixes, {"role": s.role.name, "tensor": tensor.name})
    return None


def _counts(program: Program, s: Site, extent: str) -> tuple[str, str, str] | None:
    """The field of the tiles around an access of which there are as many as the extent says."""
    for loop in s.loops:
        d = program.schedulers.get(str(loop.scheduler)) if loop.kind == "tiles" else None
        if d is None:
            continue
        resolve = resolver_of(program, "")
        if d.kind == "grouped":
            offsets = program.tensors.get(str(d.offsets))
            if offsets is not None and offsets.extents and _one_more(program, offsets.extents[0], extent):
                return "group", written(loop.var), "group"
            continue
        for name, e in zip(d.names, d.tiles, strict=False):
            r = resolve(e)
            if r.op == "param" and r.attrs.get("name") == extent:
                return name, written(loop.var), f"tile along `{name}`"
    return None


def _one_more(program: Program, many: str | int, extent: str) -> bool:
    """Whether there are as many offsets as the extent says, and one."""
    if not isinstance(many, str):
        return False
    gap = Expr("sub", (Expr("param", (), {"name": many}), Expr("param", (), {"name": extent})))
    tried = list(arguments(program, parameters(program, [gap]), SIZES, 4))
    return len(tried) > 1 and all(args.get(many, 0) == args.get(extent, 0) + 1 for args in tried) and len({args[extent] for args in tried}) > 1


# ------------------------------------------------------------------ the same elements under two names


def _twice(program: Program, tensor: Param, found: Sequence[Site]) -> Fault | None:
    pair = _same_elements(program, found)
    if pair is None:
        return None
    axis = next((k for k in range(len(pair[0].op.operands["coords"])) if _half(program, tensor, found, k)), None)  # type: ignore[arg-type]  # a tuple, as asked above
    if axis is None:
        return None
    s, other = pair
    extent = tensor.extents[len(tensor.extents) - 1 - axis]
    message = f"`{tensor.name}` is read twice at the same place, {spoken(s.op.operands['coords'][axis])} along `{extent}`, and nothing reads the other part of `{extent}`"  # type: ignore[index,arg-type]  # a tuple
    return Fault("D057", message, s.op.spans.get("coords", s.op.span), ((other.op.span, "the same elements"), (tensor.span, f"extent `{extent}`")),
                 "add where the other part starts to one of the two", (), {"role": s.role.name, "tensor": tensor.name, "axis": axis})  # fmt: skip


def _same_elements(program: Program, found: Sequence[Site]) -> tuple[Site, Site] | None:
    """The first access that reads what an earlier one of its role reads in the same round, under another name, and that one."""
    texts: dict[int, list[object] | None] = {}

    def text(k: int) -> list[object] | None:
        if k not in texts:
            texts[k] = _texts(program, found[k])
        return texts[k]

    for i, s in enumerate(found):
        for k, other in enumerate(found[:i]):
            if s.role is not other.role or s.path != other.path or s.arms != other.arms or _place(s) == _place(other) or _shape(s) != _shape(other):
                continue
            if (at := text(i)) is not None and at == text(k):
                return s, other
    return None


def _place(s: Site) -> object:
    """Where an access puts what it reads."""
    view = s.op.operands.get("view")
    return view.type.view if isinstance(view, Expr) and isinstance(view.type, ViewT) else s.targets


def _shape(s: Site) -> object:
    view = s.op.operands.get("view")
    if isinstance(view, Expr) and isinstance(view.type, ViewT):
        return view.type.rows, view.type.cols
    return s.op.attrs.get("shape"), s.op.attrs.get("form")


def _texts(program: Program, s: Site) -> list[object] | None:
    out: list[object] = []
    for e in s.op.operands["coords"]:  # type: ignore[union-attr]  # a tuple, as asked above
        run = run_of(program, s.role.name, e) if isinstance(e.type, FragT) else (resolver_of(program, s.role.name)(e), 1)  # type: ignore[union-attr]  # an expression
        if run is None:
            return None
        out.append((canonical(run[0]), run[1]))
    return out


def _half(program: Program, tensor: Param, found: Sequence[Site], axis: int) -> bool:
    """Whether all reads of a tensor together stay in the first half of an axis, for every choice of a few small arguments."""
    extent = tensor.extents[len(tensor.extents) - 1 - axis]
    if not isinstance(extent, str):
        return False
    ends: list[tuple[int, dict[str, int], dict[str, Expr]]] = []
    for s in found:
        e = s.op.operands["coords"][axis]  # type: ignore[index]  # a tuple, as asked above
        run = run_of(program, s.role.name, e) if isinstance(e.type, FragT) else (resolver_of(program, s.role.name)(e), boxed(s.op, axis))  # type: ignore[union-attr,arg-type]  # an expression
        if run is None:
            return False
        first, terms = linear(run[0])
        counts = _counts_of(program, s)
        if not terms or not all(c > 0 and (t in counts or t in program.scalars) for t, c in terms.items()):
            return False
        ends.append((first + run[1], terms, counts))
    wanted = [Expr("param", (), {"name": extent}), *(e for _, terms, counts in ends for t, e in counts.items() if t in terms)]
    names = parameters(program, [*wanted, *(Expr("param", (), {"name": t}) for _, terms, _ in ends for t in terms if t in program.scalars)])
    tried = 0
    for args in arguments(program, names, SIZES, 12):
        last = 0
        for end, terms, counts in ends:
            for t, c in terms.items():
                many = evaluate(program, counts[t], args) if t in counts else args.get(t)
                if not isinstance(many, int):
                    return False
                end += c * (many - (t in counts))
            last = max(last, end)
        if extent not in args or 2 * last > args[extent]:
            return False
        tried += 1
    return tried > 1


def _counts_of(program: Program, s: Site) -> dict[str, Expr]:
    """How many values the tiles' fields around an access have."""
    out = {}
    for loop in s.loops:
        d = program.schedulers.get(str(loop.scheduler)) if loop.kind == "tiles" else None
        if d is not None and d.kind != "grouped":
            out.update({f"tile.{name}": resolver_of(program, "")(e) for name, e in zip(d.names, d.tiles, strict=False)})
    return out
