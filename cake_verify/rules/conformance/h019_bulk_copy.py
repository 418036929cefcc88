"""H019: bulk copies move whole 16-byte units of global memory."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import ViewT
from cake_verify.analyses import ranges
from cake_verify.analyses.sites import Site
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_BULK = '''
@cake.schedule(target="sm_90a")
def bulk(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    pool = lm.smem(2048)
    x = pool.view(offset=0, shape=(512,), dtype=lm.f32)
    load = lm.role(warps=[4])
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    with load:
        s = lm.step(ring)
        x.bulk_load(X, offset=4, n=512, stage=s, barrier=full)
    with work:
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.store(Y, x.load(form="vec"), coords=(0,))
'''

TARGETED = False

PAGE = Page(
    code="H019",
    title="a bulk copy of part of a 16-byte unit",
    statement="`offset` and `n` of `view.bulk_load`, and the rows and the first coordinate of `view.bulk_store`, are multiples of 16 bytes of elements.",
    why="The copy engine takes addresses and sizes in units of 16 bytes. Anything else is a misaligned access when it runs, which no assembler sees.",
    failing=edit(_BULK, ("offset=4, n=512", "offset=2, n=512")),
    passing=_BULK,
    limits="Decided where an offset or a length is never a multiple; the tensor's own address is checked by the launcher.",
    sources=("HW040",),
)


def check(program: Program) -> Iterator[Fault]:
    for site in ranges.live(program, "bulk_load", "bulk_store"):
        view = site.op.operands.get("view")
        if not isinstance(view, Expr) or not isinstance(view.type, ViewT):
            continue
        if site.op.name == "bulk_store":
            yield from _rows(program, site, view.type)
            continue
        bits = DTYPES[view.type.dtype].container_bits
        for name, what in (("offset", "starts"), ("n", "moves")):
            fault = _units(program, site, name, what, max(1, 128 // bits), bits)
            if fault:
                yield fault
                break


def _rows(program: Program, site: Site, view: ViewT) -> Iterator[Fault]:
    """Rows of a bulk store: their length and where they start."""
    bits = DTYPES[view.dtype].container_bits
    per, coords = max(1, 128 // bits), site.op.operands["coords"]
    if view.cols % per:
        yield Fault("H019", f"rows of {view.cols * bits // 8} bytes are not whole 16-byte units", site.op.spans.get("view", site.op.span), (),
                    f"make a row a multiple of {per} elements, or store with `lm.store`", (), {"expected": per, "found": view.cols})  # fmt: skip
    elif isinstance(coords, tuple) and ranges.of(program, site.role.name, coords[0]).never_multiple_of(per):
        yield Fault("H019", "this bulk copy starts inside a 16-byte unit of the tensor", site.op.spans.get("coords", site.op.span), (),
                    f"make the first coordinate a multiple of {per} elements, or store with `lm.store`", (), {"expected": per})  # fmt: skip


def _units(program: Program, site: Site, name: str, what: str, per: int, bits: int) -> Fault | None:
    e = site.op.operands.get(name)
    if not isinstance(e, Expr):
        return None
    r = ranges.of(program, site.role.name, e)
    if not r.never_multiple_of(per):
        return None
    found = f"{int(r.lo) * bits // 8} bytes" if r.exact is not None else f"{r.rem % per * bits // 8} bytes past a multiple of 16"
    text = f"this bulk copy {what} {found}{' into the tensor' if name == 'offset' else ''}, the copy engine takes multiples of 16"
    return Fault("H019", text, site.op.spans.get(name, site.op.span), (), f"make `{name}` a multiple of {per} elements, or copy with `view.cp_async` or `lm.load`", (),
                 {"expected": per, "found": r.exact})  # fmt: skip
