"""D061: a number from memory that is a coordinate has bounds."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_verify.analyses import ranges
from cake_verify.analyses.positions import around, declared_values
from cake_verify.analyses.sites import Site, extent_along, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_EMBED = '''
@cake.schedule(target="sm_90a")
def embed(lm, ids: LM.gmem1d[LM.i32, "T"].const, table: LM.gmem2d[LM.bf16, "V", 128], out: LM.gmem2d[LM.bf16, "T", 128], T: LM.i32, V: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            row = lm.ld(ids, t.t)
            if row >= 0 and row < V:
                lm.store(out, lm.load(table, coords=(0, row), shape=(1, 128)), coords=(0, t.t))
            else:
                lm.store(out, lm.frag(shape=(1, 128), dtype=lm.bf16, form="vec", init=0), coords=(0, t.t))
'''

PAGE = Page(
    code="D061",
    title="a coordinate from memory without bounds",
    statement="A number that `lm.ld` reads, and that a coordinate of an ordinary access or a bulk copy is a sum of, has bounds: `lm.assume_values` of its tensor, or a condition around the access that looks at it.",
    why="These accesses are not clipped. Index tensors are padded with -1 or -100, and which numbers they hold only the caller knows: what is neither stated nor looked at cannot be proved to stay inside.",
    failing=edit(_EMBED, ("            if row >= 0 and row < V:\n                lm.store", "            lm.store"), ("            else:\n                lm.store(out, lm.frag(shape=(1, 128), dtype=lm.bf16, form=\"vec\", init=0), coords=(0, t.t))\n", "")),
    passing=_EMBED,
    limits="Tensors without declared extents, masked and clipped accesses, copies through a tensor map (which the hardware clips), fragments of indices, numbers that a `lm.min` or another operation brings into range, and tensors that the schedule itself "
    "writes are left alone. Any comparison of the number counts as its bounds; whether it is the right one is D031's.",
)

_UNCLIPPED = ("load", "store", "ld", "atomic", "bulk_load", "bulk_store")
_WRITES = ("store", "atomic", "tma_store", "tma_reduce", "bulk_store", "signal")


def check(program: Program) -> Iterator[Fault]:
    read = {str(s.op.attrs.get("tensor")) for s in sites(program).of("ld")}
    bare = {t for t in read if declared_values(program, t) is None}
    if not bare:
        return
    bare -= {str(s.op.attrs.get("tensor")) for s in ranges.live(program, *_WRITES)}
    told: set[str] = set()
    for site in ranges.live(program, *_UNCLIPPED) if bare else ():
        tensor = program.tensors.get(str(site.op.attrs.get("tensor")))
        if tensor is None or tensor.kind != "gmem" or not tensor.extents or site.op.operands.get("mask") is not None or site.op.attrs.get("clip"):
            continue
        for axis, at, number in _numbers(program, site, bare):
            source = str(number.attrs["tensor"])
            end = extent_along(program, site.op, axis) or ".."
            if source not in told:
                told.add(source)
                yield Fault("D061", f"nothing says which numbers `{source}` holds, and this access of `{tensor.name}` is placed by one", site.op.spans.get("coords", site.op.spans.get("i", site.op.span)),
                            ((program.tensors[source].span, "read from here"), (tensor.span, "declared here")), f"state it, `lm.assume_values({source}, 0, {end})`, or put the access under a condition on `{spoken(at)}`", (),
                            {"tensor": tensor.name, "found": source, "role": site.role.name})  # fmt: skip


def _numbers(program: Program, site: Site, bare: set[str]) -> Iterator[tuple[int, Expr, Expr]]:
    """The coordinates of an access, with their axes, that are sums with a number from one of these tensors, and that number, where no condition around looks at it."""
    coords = site.op.operands.get("coords")
    resolve = resolver_of(program, site.role.name)
    for axis, e in enumerate(coords if isinstance(coords, tuple) else (site.op.operands.get("i", site.op.operands.get("offset")),)):
        if not isinstance(e, Expr) or e.op == "const":
            continue
        whole = resolve(e)
        reads = [n for n in whole.parts() if n.op == "ld" and n.attrs["tensor"] in bare]
        terms = linear(whole)[1] if reads else {}
        for n in reads:
            if (text := canonical(n)) in terms and not any(text == canonical(x) for c in around(site, program) for x in c.parts()):
                yield axis, e, n
