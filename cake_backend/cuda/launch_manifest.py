"""The launch manifest of one lowered program."""

from __future__ import annotations

from cake_backend.cuda.context import Context
from cake_backend.cuda.manifest_text import host_text, stripped
from cake_backend.manifest import DTYPE_BYTES, Grid, Guard, Launch, Manifest, Param, TensorParam
from cake_ir.program import Expr, Program
from cake_ir.tensor_modes import modes
from cake_ir.types import ViewT


def dtype_of(program: Program, tensor: str) -> str:
    """A tensor's element type: declared, or that of the views it is copied to or from."""
    declared = program.tensors[tensor].dtype
    if declared:
        return declared
    for op in program.ops:
        view = op.operands.get("view")
        if op.attrs.get("tensor") == tensor and isinstance(view, Expr) and isinstance(view.type, ViewT):
            return view.type.dtype
    return "f32"


def grid_of(program: Program, schedulers: list[str]) -> Grid:
    """The grid: tiles of the scheduler that the roles loop over; one CTA where there is none."""
    kind = "persistent" if program.launch.grid == "persistent" else "tiles"
    if not schedulers:
        return Grid(kind, (1,), program.launch.cluster)
    scheduler = program.schedulers[schedulers[0]]
    if scheduler.kind == "grouped":  # the number of tiles is data: as many CTAs as fit at once
        return Grid(kind, (2**30,), scheduler.cluster)
    tiles = tuple(stripped(host_text(program, e)) for e in scheduler.tiles)
    return Grid(kind, tuple(int(t) if t.lstrip("-").isdigit() else t for t in tiles), scheduler.cluster)


def guards(ctx: Context) -> tuple[Guard, ...]:
    """What the launcher must check: the author's assumptions, declared extents, strides and alignments."""
    program = ctx.program
    out = [Guard(stripped(host_text(program, a.cond)), f"the schedule assumes {stripped(host_text(program, a.cond))}", a.span.line) for a in program.assumes]
    mapped = {m.tensor for m in ctx.maps.maps}
    for name, p in program.tensors.items():
        line = p.span.line
        for dim, e in enumerate(p.extents):
            out.append(Guard(f"extent({name}, {dim}) == {e}", f"`{name}` has extent {e} along dimension {dim}", line))
        if name not in mapped and name not in {t for t, _, _ in ctx.params.names}:
            continue
        out.append(Guard(f"stride({name}, {p.rank - 1}) == 1", f"`{name}` is contiguous along its innermost dimension", line))
        size = DTYPE_BYTES[dtype_of(program, name)]
        needed = 16 if name in mapped else ctx.alignments.get(name, 0)
        if needed > size:
            for dim in range(p.rank - 1):
                out.append(Guard(f"stride({name}, {dim}) % {needed // size} == 0", f"rows of `{name}` start on multiples of {needed} bytes", line))
    return tuple(out)


def build(ctx: Context, params: list[Param], schedulers: list[str], dynamic: int) -> Manifest:
    """The manifest, strict enough to be read back."""
    program = ctx.program
    how = modes(program)
    launch = Launch(
        entry=ctx.entry,
        block=program.threads,
        grid=grid_of(program, schedulers),
        params=tuple(params),
        cluster=(program.launch.cluster[0] * program.launch.cluster[1], 1, 1),
        smem=dynamic,
        ctas_per_sm=program.launch.ctas_per_sm,
        pdl=any(op.name == "pdl_wait" for op in program.ops),
    )
    return Manifest(
        schedule=program.name,
        target=program.target,
        launches=(launch,),
        maps=tuple(ctx.maps.maps),
        tensors={n: TensorParam(p.rank, dtype_of(program, n), how[n]) for n, p in program.tensors.items()},
        scalars={n: p.dtype or "i32" for n, p in program.scalars.items()},
        guards=guards(ctx),
    )
