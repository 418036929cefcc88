"""H023: MMAs of a pair of CTAs: in a cluster of two along its first axis, and all of a kernel's or none."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.issue import issues_alone
from cake_ir.derive.pairs import paired_roles
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
    statement="`ctas` of `lm.mma` is 1 or 2; 2 takes an accumulator in tensor memory and a cluster that is even along its first axis; all tensor-memory MMAs of a kernel have one value; "
    "a role with MMAs of pairs does nothing but wait, issue and commit; and copies to tensor memory beside them are issued by such a role.",
    why="A pair is the two CTAs whose ranks differ in the last bit: without one there is nobody to hold the other half. The assembler refuses a kernel that mixes both kinds, and nothing checks the cluster: "
    "the MMA waits for a peer that does not exist. One thread in the leading CTA issues for both, so that whatever else its role does would be missing in the other CTA.",
    failing=edit(TENSOR_MEMORY, ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a, b, init=True, ctas=2)"), ("offset=16384, shape=(128, 64)", "offset=16384, shape=(64, 64)")),
    passing=TENSOR_MEMORY,
    limits="Multicast loads beside MMAs of pairs are refused: which CTA then frees which slots is not followed in this build.",
    sources=("HW083", "HW092"),
)


def check(program: Program) -> Iterator[Fault]:
    first: Site | None = None
    for s in sites(program).of("mma"):
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
    yield from _beside(program)


def _beside(program: Program) -> Iterator[Fault]:
    """What a kernel with pairs may not do: work in an issuing role that its other CTA would miss, and multicast loads."""
    paired = paired_roles(program)
    if not paired or not program.target or not target(program.target).has("TWO_CTA_MMA"):
        return
    for s in sites(program).ops:
        if s.role.name in paired and not issues_alone(s.op, program):
            mma = next(x for x in sites(program).ops if x.op.name == "mma" and x.role.name == s.role.name)
            yield Fault("H023", f"`{s.role.name}` issues MMAs of pairs and runs in the leading CTA only: this would not be done in the other one", s.op.span,
                        ((mma.op.span, "one thread issues this for both CTAs"),), "give it to a role that waits, stores or computes in each CTA", (), {"role": s.role.name})  # fmt: skip
            return
        if s.op.name == "tmem_copy" and s.role.name not in paired:
            yield Fault("H023", f"beside MMAs of pairs one copy to tensor memory is issued for both CTAs, by the leading one; `{s.role.name}` runs in each of them", s.op.span, (),
                        f"give the copy to a role that multiplies for the pair: `{min(paired)}`", (), {"role": s.role.name, "expected": sorted(paired)})  # fmt: skip
            return
        if s.op.attrs.get("multicast"):
            yield Fault("H023", "multicast loads beside MMAs of pairs are not followed in this build", s.op.spans.get("multicast", s.op.span), (),
                        "leave `multicast` out: the CTAs of a pair share B already", (), {"found": s.op.attrs["multicast"]})  # fmt: skip
            return


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
