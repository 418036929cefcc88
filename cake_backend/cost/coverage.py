"""What the model answers for, and where it abstains: one code for each reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cake_backend.cost.calibration import Calibration, Constants
from cake_backend.cost.compiled import Compiled
from cake_backend.cost.demand import Demand
from cake_backend.cost.reading import Subject
from cake_ir.derive.structure import sites
from cake_ir.program import Expr, For, Program
from cake_verify.rules.conformance.h015_mma_registers import check as serialised_mmas

OVERLAP = 0.15

REASONS: dict[str, str] = {
    "R01": "a constant that this kernel needs is not known for this device",
    "R02": "CUDA-core work overlaps tensor work, and how the two share an SM is not calibrated",
    "R03": "the walk reaches no steady state",
    "R06": "the work depends on data whose distribution is not given",
    "R07": "no measured kernel of this family",
    "R08": "the compiler's report shows, or will show, a loss whose direction is certain and whose size is not",
    "R09": "the clock under this load is not known: cycles only",
}


@dataclass(frozen=True, slots=True)
class Withheld:
    """One reason not to answer; `text` says it in this program's terms."""

    code: str
    text: str
    line: int | None = None


def family(subject: Subject) -> str:
    """The kernel family by what its loops do: `gemm` (MMAs with little else), `fused` (MMAs with work on the CUDA cores), `rows`."""
    if not any(d.tensor for d in subject.demands.values()):
        return "mma_sync" if any(p.name == "mma_sync" for d in subject.demands.values() for p in d.pieces) else "rows"
    return "gemm"


def abstentions(subject: Subject, constants: Constants, calibration: Calibration, build: Compiled | None) -> tuple[list[Withheld], float]:
    """Reasons to withhold that follow from program and compile report, and the largest share of CUDA-core to tensor work in a loop."""
    program, out = subject.program, []
    for d in subject.demands.values():
        for p in d.pieces:
            if p.kind == "unknown":
                out.append(Withheld("R01", f"the cost of {p.name} is not calibrated on {calibration.device}", d.op.span.line))
    kind = family(subject)
    overlap, line = _overlap(subject, constants)
    if overlap > OVERLAP:
        out.append(Withheld("R02", f"CUDA-core work is {overlap:.0%} of the tensor work in the loop at line {line}, and their overlap is not calibrated", line))
    if kind not in calibration.families and not out:
        out.append(Withheld("R07", f"no kernel of this kind ({kind}) has been compared with a measurement on {calibration.device}"))
    ranked = next((e for site in sites(program) for e in _expressions(site.op.operands.values()) if e.op in ("cta_rank", "cta_id")), None)
    if ranked is not None:
        out.append(Withheld("R07", "blocks of a cluster do different work, the reading takes them as alike", ranked.span.line))
    if build is not None and build.serialised:
        out.append(Withheld("R08", f"the assembler serialises MMA groups ({', '.join(c for c in build.codes if c.startswith(('C75', 'sass')))})",
                            next(iter(build.lines.values()), None)))  # fmt: skip
    if build is None:
        out += [Withheld("R08", f"the assembler will serialise MMA groups: {f.message}", f.span.line) for f in serialised_mmas(program)]
    if build is not None and build.spilled:
        out.append(Withheld("R08", f"{build.spilled} bytes of registers are spilled to local memory"))
    return _merged(out), overlap


def _merged(found: list[Withheld]) -> list[Withheld]:
    """The first of each code and text."""
    return list({(w.code, w.text): w for w in reversed(found)}.values())[::-1]


def _expressions(operands: Iterable[object]) -> Iterable[Expr]:
    for operand in operands:
        for e in operand if isinstance(operand, tuple) else (operand,):
            if isinstance(e, Expr):
                yield from e.parts()


def _overlap(subject: Subject, c: Constants) -> tuple[float, int | None]:
    """The largest ratio of CUDA-core to tensor cycles over the loops whose body issues MMAs, and that loop's line."""
    loops: dict[int, tuple[For, float, float]] = {}
    for site in sites(subject.program):
        inner = next((loop for loop in reversed(site.loops) if loop.kind == "range"), None)
        if inner is None:
            continue
        demand = subject.demands[site.op.id]
        tensor, other = _work(demand, c, subject.program)
        _, t, o = loops.get(id(inner), (inner, 0.0, 0.0))
        loops[id(inner)] = (inner, t + tensor, o + other)
    worst, line = 0.0, None
    for loop, tensor, other in loops.values():
        if tensor > 0 and other / tensor > worst:
            worst, line = other / tensor, loop.head.line
    return worst, line


def _work(demand: Demand, c: Constants, program: Program) -> tuple[float, float]:
    role = program.roles[demand.role]
    tensor = other = 0.0
    for p in demand.pieces:
        if p.kind == "mma":
            tensor += p.flops / (c.tensor_flop_8 if p.eight_bit else c.tensor_flop_16)
        elif p.kind == "pipes":
            other += max(p.count.cycles(c, role.member_warps).values(), default=0.0)
        elif p.kind == "smem":
            other += p.size * p.factor / c.smem_bytes
        elif p.kind == "gmem":
            other += p.factor * c.sector
    return tensor, other


def hot_fences(program: Program) -> int | None:
    """The line of an arrive ordered at cluster scope inside a loop: it makes the assembler emit a device-wide fence; None without one."""
    for site in sites(program):
        if site.op.attrs.get("order") == "cluster" and any(loop.kind == "range" for loop in site.loops):
            return site.op.span.line
    return None
