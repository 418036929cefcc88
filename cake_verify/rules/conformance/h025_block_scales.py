"""H025: the target applies block scales of this dtype, this block and this layout to these operands."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.ops.scales import first_of, scales_at_once
from cake_ir.program import Expr, Program
from cake_ir.targets.mma import kind_of, scale_problem
from cake_ir.types import FragT, ScalesT, TmemT, ViewT
from cake_verify.analyses import ranges
from cake_verify.analyses.sites import Site, sites
from cake_verify.rule import Page
from cake_verify.rules.examples import BLOCK_SCALED, edit

PAGE = Page(
    code="H025",
    title="block scales that the target does not apply",
    statement="ue8m0 scales of 32 elements go with 8-, 6- and 4-bit operands, e4m3 scales of 16 elements with e2m1 alone; tcgen05 reads them in tensor memory (`tmem_128x4`), `mma.sync` in registers (`frag_row`); "
    "the first scale of an instruction stands at a multiple of what it takes of a word of four.",
    why="The instruction's kind fixes block and dtype of the scales: bytes of another type are read as if they were of this one, and no unit reports it.",
    failing=edit(BLOCK_SCALED, ("ta, block=32, dtype=lm.ue8m0", "ta, block=32, dtype=lm.e4m3"), ("tb, block=32, dtype=lm.ue8m0", "tb, block=32, dtype=lm.e4m3"),
                 ('SA: LM.tma4d[LM.ue8m0', 'SA: LM.tma4d[LM.e4m3'), ('SB: LM.tma4d[LM.ue8m0', 'SB: LM.tma4d[LM.e4m3'),
                 ("shape=(32, 16), dtype=lm.ue8m0", "shape=(32, 16), dtype=lm.e4m3"), ("shape=(32, 16), dtype=lm.ue8m0", "shape=(32, 16), dtype=lm.e4m3"),
                 ("shape=(128, 16), dtype=lm.ue8m0", "shape=(128, 16), dtype=lm.e4m3"), ("shape=(128, 16), dtype=lm.ue8m0", "shape=(128, 16), dtype=lm.e4m3")),
    passing=BLOCK_SCALED,
    limits="Targets without block-scaled products at all are H004's. e4m3 stands for the unsigned ue4m3 of the instruction, whose sign bit must be 0: values are not known.",
    sources=("HW011", "HW012", "HW091"),
)  # fmt: skip


def check(program: Program) -> Iterator[Fault]:
    for s in sites(program).of("mma") if program.target else ():
        for name in ("scale_a", "scale_b"):
            e = s.op.operands.get(name)
            fault = _one(program, s, name, e) if isinstance(e, Expr) and isinstance(e.type, ScalesT) else None
            if fault:
                yield fault
                break  # the other operand's are declared alike


def _one(program: Program, s: Site, name: str, e: Expr) -> Fault | None:
    """What is wrong with one operand's scales."""
    t, a, b = e.type, s.op.operands["a"], s.op.operands["b"]
    assert isinstance(t, ScalesT) and isinstance(a, Expr) and isinstance(b, Expr) and isinstance(a.type, ViewT | FragT | TmemT) and isinstance(b.type, ViewT | FragT)
    family = str(s.op.attrs["kind"])
    kind = kind_of(family, program.target, a.type.dtype, b.type.dtype, True)  # type: ignore[arg-type]  # the three families by construction
    if isinstance(kind, str):
        return None  # H004
    where = s.op.spans.get(name, s.op.span)
    problem = scale_problem(program.target, kind, t.block, t.dtype, t.layout)
    if problem:
        return Fault("H025", problem, where, (), "declare the scales as the operands were quantised; another block or dtype is another quantisation", (),
                     {"target": program.target, "kind": kind.name, "block": t.block, "dtype": t.dtype, "layout": t.layout})  # fmt: skip
    if isinstance(t.source, TmemT) != (family == "tcgen05"):
        return Fault("H025", f"{family} does not read scales in {t.source}", where, (), "tensor memory holds the scales of tcgen05, row vectors those of mma.sync", (), {"target": program.target})
    at_once = scales_at_once(a.type.dtype, t.block)
    first = ranges.of(program, s.role.name, first_of(e))
    wrong = first.worst_for(at_once)
    if wrong is None and first.tight:
        wrong = next((int(v) for v in (first.lo, first.hi) if not 0 <= v <= 4 - at_once), None)
    if wrong is not None:
        return Fault("H025", f"`first` comes to {wrong}: an instruction that takes {at_once} scale{'s' if at_once > 1 else ''} of a row starts at {' or '.join(map(str, range(0, 4, at_once)))} of a word of four",
                     where, (), "number the scales of each word from 0", (), {"found": wrong})  # fmt: skip
    return None
