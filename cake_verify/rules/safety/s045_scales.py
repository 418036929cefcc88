"""S045: block scales are those of the elements that they scale."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.scale_owner import foreign_scales
from cake_verify.analyses.scale_places import Misplaced, misplaced_scales
from cake_verify.analyses.words import call, span_of
from cake_verify.rule import Page
from cake_verify.rules.examples import BLOCK_SCALED, edit

OF_VALUES = True

PAGE = Page(
    code="S045",
    title="scales of other elements",
    statement="A product takes each operand's block scales for the rows and the stretch of K that the operand covers: scales move with their operand, word by word along K and tile by tile along the rows, and count from where it does.",
    why="Everything is synchronised, shapes and dtypes agree, and every sum is wrong by factors that look like noise: a word of scales of the block before, of another tile, or of the other operand.",
    failing=edit(BLOCK_SCALED, ("sa.tma_load(SA, coords=(0, 0, k, 0)", "sa.tma_load(SA, coords=(0, 0, k + 1, 0)")),
    passing=BLOCK_SCALED,
    limits="Where one axis of a tensor of scales counts tiles of rows and words of K, small grids are worked out whole. Otherwise seen where scales are loaded by a tensor map (without a box), in bulk, or as row vectors, and where the operand's axes have names. Nothing is said of scales that the kernel computes, "
    "and a tensor with one place along an axis may serve all of it.",
    sources=("HW091",),
)


def check(program: Program) -> Iterator[Fault]:
    """Scales along one axis for rows and K, over a whole grid, and what moves those that bulk copies bring."""
    for m in misplaced_scales(program):
        yield _fault(m)
    for f in foreign_scales(program):
        other = "b" if f.name == "a" else "a"
        message = f"{call(f.product)} scales `{f.name}`, whose rows move with `{f.rows}`, by scales that move with `{f.moves}`, as the rows of `{other}` do: `{f.load.op.attrs['tensor']}`"
        yield Fault("S045", message, span_of(f.product, f"scale_{f.name}"), ((f.load.op.span, "they are loaded here"),), f"give `scale_{f.name}` the scales of `{f.name}`", (),
                    {"role": f.load.role.name, "operand": f"scale_{f.name}", "tensor": str(f.load.op.attrs["tensor"])})  # fmt: skip
        return


def _fault(m: Misplaced) -> Fault:
    load, operand = m.load.op, m.name
    tensor = str(load.attrs["tensor"])
    (r0, k0), (r1, k1) = m.cells
    first, second = (f"row {r0}, K = {k0}", f"row {r1}, K = {k1}")
    message = f"{call(m.product)} scales `{operand}` "
    if m.why == "other":
        message += f"from {first} on by `{tensor}` from line {m.places[0]} on in one tile, and from line {m.places[1]} on in another"
    elif m.why == "same":
        message += f"from {first} on and from {second} on by the same scales, `{tensor}` from line {m.places[0]} on"
    elif m.why == "beyond":
        message += f"from {first} on by `{tensor}` from line {m.places[0]} on, which has {m.places[1]} lines"
    else:
        message += f"from {first} on and from {second} on by lines of `{tensor}` that overlap: from {m.places[0]} and from {m.places[1]} on"
    related = ((span_of(m.product, f"scale_{operand}"), f"they scale `{operand}` here"), (span_of(m.data, "coords"), f"`{operand}` is loaded here"))
    return Fault("S045", f"{message}, for {m.args}", span_of(load, "coords"), related, f"each tile of rows and each word of K of `{operand}` has lines of its own, counted by what moves `{operand}`", (),
                 {"role": m.load.role.name, "operand": f"scale_{operand}", "tensor": tensor})  # fmt: skip
