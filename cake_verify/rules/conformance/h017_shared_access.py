"""H017: ordinary accesses of shared memory start on multiples of the piece that an instruction moves."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.layout import ViewLayout, stage_stride, view_problem
from cake_ir.program import Expr, Op, Program
from cake_ir.targets import target
from cake_ir.types import FragT
from cake_verify.analyses.rectangles import Rectangle, rectangles
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_STAGED = '''
@cake.schedule(target="sm_90a")
def staged(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    pool = lm.smem(4096)
    v = pool.view(offset=16, shape=(512,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    with work:
        v.store(lm.load(X, coords=(0,), shape=(512,)))
        lm.sync(own)
        lm.store(Y, v.load(form="vec"), coords=(0,))
'''

PAGE = Page(
    code="H017",
    title="a shared-memory access off its alignment",
    statement="`view.store`, `view.load` and `view.send` move pieces of 4, 8 or 16 bytes, by the fragment's form and dtype: the view's offset, its stages and its rows are multiples of the piece, "
    "and a slice of columns of a tile or vector starts on a multiple of 16 bytes.",
    why="An access of several words is a misaligned address unless it starts on a multiple of its size, and a matrix load or store takes rows of 16 bytes. It traps when it runs; the assembler "
    "sees no address.",
    failing=edit(_STAGED, ("offset=16", "offset=4")),
    passing=_STAGED,
    limits="Origins are judged by interval and congruence; what cannot be shown to be misaligned is accepted. `view.ldmatrix` is H018.",
    sources=("HW020", "HW090", "HW100"),
)

_FORMS = frozenset({"acc", "a", "b", "vec", "colvec"})


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    for site in sites(program).of("store", "load", "send"):
        op = site.op
        view, frag = op.operands.get("view"), _fragment(op)
        if not isinstance(view, Expr) or frag is None or frag.form not in _FORMS:
            continue
        for r in rectangles(program, site.role.name, view):
            if view_problem(r.layout) or r.name in told:
                continue  # D015; or said already
            fault = _fault(op, r, frag, piece(program.target, op.name, frag, r))
            if fault:
                told.add(r.name)
                yield fault
                break


def _fragment(op: Op) -> FragT | None:
    """The fragment that an access reads into or writes from."""
    x = op.operands.get("x")
    t = x.type if isinstance(x, Expr) else op.type
    return t if isinstance(t, FragT) else None


def piece(target_name: str, name: str, frag: FragT, r: Rectangle) -> int:
    """Bytes that one instruction of a thread moves, or one row of a matrix instruction."""
    bits = DTYPES[frag.dtype].bits
    if frag.form == "vec":
        return min(128, (frag.chunk or 1) * bits) // 8
    if frag.form == "colvec":
        return 2 * bits // 8 if name == "load" and bits in (16, 32) and not r.layout.swizzle and not r.transposed else bits // 8
    if bits == 32 and frag.form == "acc":
        return 8
    if name == "load" or r.transposed:
        return 16
    if bits == 16 and name == "store":
        return 16 if not target_name or target(target_name).has("STMATRIX") else 4
    return 4 if bits == 16 else 2


def _fault(op: Op, r: Rectangle, frag: FragT, size: int) -> Fault | None:
    layout = r.layout
    step = max(1, (8 * size if frag.form == "colvec" else 128) // layout.elem_bits)
    if r.col.worst_for(step):
        at = r.col.exact
        return Fault("H017", f"columns of `{r.name}` are accessed from {at if at is not None else 'a column'} on, `{op.name}` takes them in steps of {step}", op.spans.get("view", op.span),
                     ((r.view.span, "declared here"),), f"start on a multiple of {step} columns", (), {"view": r.name, "expected": step, "found": at})  # fmt: skip
    wrong = _misplaced(layout, size)
    if wrong is None:
        return None
    what, found, part = wrong
    up, span = -(-found // size) * size, r.view.spans.get(part, r.view.span)
    fixes = (Fix((Edit(span, str(up)),), "idea", f"start at {up}; whatever lies behind moves too"),) if part == "offset" and "offset" in r.view.spans else ()
    help = f"start on a multiple of {size}" if part == "offset" else f"pad the rows to a multiple of {size} bytes" if part == "shape" else f"`stage_bytes={up}` pads the stages"
    return Fault("H017", f"`{r.name}` {what} {found}, `view.{op.name}` moves {size} bytes of it at a time", span, ((op.spans.get("view", op.span), "accessed here"),), help, fixes,
                 {"view": r.name, "expected": size, "found": found})  # fmt: skip


def _misplaced(layout: ViewLayout, size: int) -> tuple[str, int, str] | None:
    """What of a layout is no multiple of `size`: words, the number, and the declaration's part to change."""
    if layout.offset % size:
        return "starts at byte", layout.offset, "offset"
    if layout.stages > 1 and stage_stride(layout) % size:
        return "has stages at a distance of", stage_stride(layout), "stage_bytes"
    if not layout.swizzle and layout.rows > 1 and layout.row_bytes % size:
        return "has rows at a distance of", layout.row_bytes, "shape"
    return None
