"""H023: MMAs of a pair of CTAs: in a cluster of two along its first axis, and all of a kernel's or none."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Program
from cake_ir.targets import target
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.wording import exists_on
from cake_verify.rule import Page
from cake_verify.rules.examples import TENSOR_MEMORY, edit

PAGE = Page(
    code="H023",
    title="an MMA of a pair that is none",
    statement="`ctas` of `lm.mma` is 1 or 2; 2 takes an accumulator in tensor memory and a cluster that is even along its first axis; and all tensor-memory MMAs of a kernel have one value.",
    why="A pair is the two CTAs whose ranks differ in the last bit: without one there is nobody to hold the other half. The assembler refuses a kernel that mixes both kinds, and nothing checks the cluster: "
    "the MMA waits for a peer that does not exist.",
    failing=edit(TENSOR_MEMORY, ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a, b, init=True, ctas=2)")),
    passing=TENSOR_MEMORY,
    limits="This build verifies and simulates MMAs of single CTAs; what a pair shares is not followed.",
    sources=("HW083", "HW092"),
)


def check(program: Program) -> Iterator[Fault]:
    first: Site | None = None
    for s in sites(program).ops:
        if s.op.name != "mma":
            continue
        fault = _one(program, s)
        if fault:
            yield fault
            return
        if s.op.attrs.get("kind") != "tcgen05":
            continue
        if first is not None and _ctas(s) != _ctas(first):
            yield Fault("H023", f"this MMA has `ctas={_ctas(s)}`, another of the kernel has `ctas={_ctas(first)}`: all pair CTAs or none does", s.op.spans.get("ctas", s.op.span),
                        ((first.op.span, f"`ctas={_ctas(first)}`"),), "give both the same `ctas`", (), {"expected": _ctas(first), "found": _ctas(s)})  # fmt: skip
            return
        first = first or s


def _ctas(s: Site) -> int:
    return int(s.op.attrs.get("ctas") or 0)  # type: ignore[arg-type]  # an integer by its kind


def _one(program: Program, s: Site) -> Fault | None:
    """What is wrong with one MMA by itself."""
    ctas, span = _ctas(s), s.op.spans.get("ctas", s.op.span)
    single = (Fix((Edit(span, "1"),), "certain", "one CTA"),) if "ctas" in s.op.spans else ()
    if ctas not in (1, 2):
        return Fault("H023", f"`ctas` is {ctas}, an MMA is of one CTA or of a pair", span, (), "write 1 or 2", single, {"expected": [1, 2], "found": ctas})
    if ctas == 1:
        return None
    if s.op.attrs.get("kind") != "tcgen05":
        return Fault("H023", f"`ctas=2` pairs CTAs over tensor memory, this MMA accumulates in registers; {exists_on('TWO_CTA_MMA')}", span, (), "leave `ctas` out", single, {"found": 2})
    if program.target and not target(program.target).has("TWO_CTA_MMA"):
        return None  # H001: no tensor memory at all
    x = program.launch.cluster[0]
    if x % 2:
        return Fault("H023", f"`ctas=2` needs a cluster that is even along its first axis, this one is {x} x {program.launch.cluster[1]}", span,
                     ((program.launch.spans.get("cluster", program.launch.span), "the cluster"),), "launch `cluster=(2, 1)`, or leave `ctas` out", single,
                     {"expected": 2, "found": x})  # fmt: skip
    return None
