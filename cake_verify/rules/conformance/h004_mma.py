"""H004: the tensor core takes these operands, in these places, in this shape."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Op, Program, Role
from cake_ir.targets import target
from cake_ir.targets.mma import accumulator_problem, kind_of, place_problem, shape_problem, unpacked_problem
from cake_ir.types import FragT, TmemT, Type, ViewT
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="H004",
    title="an MMA that the target does not have",
    statement="Operand dtypes, the accumulator's dtype, the shape, where the operands live and which way they are read must be one of the target's combinations.",
    why="The tables differ by instruction family: wgmma takes N from 8 to 256 in steps of 8 and reads 8-bit and tf32 operands K-major only; tcgen05 takes M of 64 or 128; "
    "fp8 starts at sm_89. What the assembler does not reject runs and gives wrong sums.",
    failing=edit(TILE, ("shape=(128, 64), dtype=lm.bf16", "shape=(132, 64), dtype=lm.bf16"), ("shape=(64, 128), dtype=lm.f32", "shape=(64, 132), dtype=lm.f32"),
                 ("lm.smem(24576)", "lm.smem(25600)")),
    passing=TILE,
    limits="Whether a view's swizzle and alignment suit the instruction is D016.",
    sources=("HW010", "HW011", "HW060", "HW088", "HW091"),
)

_NEEDS = {"wgmma": "WGMMA", "tcgen05": "TCGEN05", "mma_sync": "MMA_SYNC"}


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        return
    for site in sites(program).of("mma"):
        found = _problem(program, site.op, site.role)
        if found:
            problem, param = found
            related = tuple((site.op.spans[p], f"`{p}` is {_type(site.op, p)}") for p in ("acc", "a", "b") if p != param and p in site.op.spans)
            yield Fault("H004", problem, site.op.spans.get(param, site.op.span), related, help=_help(site.op, problem, program.target), facts={"kind": str(site.op.attrs["kind"]), "target": program.target})


def _help(op: Op, problem: str, name: str) -> str:
    """The nearest multiply that the target has."""
    family = str(op.attrs["kind"])
    if "K-major only" in problem:
        return "store the operand with K innermost, or transpose it in a stage of its own"
    if problem.startswith(("M =", "N =", "K =", "m16n8")):
        return "pad the tile to the next size, or split it"
    if "block-scaled" in problem or problem.startswith("block scales"):
        return "read the scales from tensor memory with tcgen05" if target(name).has("TCGEN05_BLOCK_SCALED") else "multiply unscaled into a partial accumulator and scale that"
    if "packs two" in problem:
        return "multiply e2m1 by e2m1, or store the operand in a wider type"
    if "accumulat" in problem:
        return "declare the accumulator with one of these dtypes"
    if problem.startswith(("only a shared-memory", "mma.sync multiplies", "wgmma reads", "tcgen05 reads")):
        return "move the operand to where the instruction reads it"
    if family == "mma_sync" and target(name).has("TCGEN05"):
        return "accumulate in tensor memory: `lm.tmem(..)` and operands in shared memory; or cast the operands to a dtype that mma.sync has here"
    return "cast the operands to a dtype that this instruction multiplies here, or choose another target"


def _type(op: Op, name: str) -> Type:
    e = op.operands[name]
    assert isinstance(e, Expr)
    return e.type


def _place(t: Type) -> str:
    return "tmem" if isinstance(t, TmemT) else "view" if isinstance(t, ViewT) else "frag"


def _problem(program: Program, op: Op, role: Role) -> tuple[str, str] | None:
    """(sentence, parameter to point at) of the first rule that the operation breaks."""
    family = str(op.attrs["kind"])
    if not target(program.target).has(_NEEDS[family]):
        return None  # H001
    acc, a, b = (_type(op, n) for n in ("acc", "a", "b"))
    assert isinstance(a, ViewT | FragT | TmemT) and isinstance(b, ViewT | FragT)
    scaled = op.operands.get("scale_a") is not None or op.operands.get("scale_b") is not None
    kind = kind_of(family, program.target, a.dtype, b.dtype, scaled)  # type: ignore[arg-type]  # the three families by construction
    if isinstance(kind, str):
        return kind, "a"
    turned = [isinstance(t, ViewT) and t.transposed for t in (a, b)]
    why = place_problem(family, kind, _place(a), _place(b), *turned)  # type: ignore[arg-type]  # as above
    if why:
        return why, "b" if turned[1] and not turned[0] else "a"
    why = unpacked_problem(kind, a.dtype, b.dtype) if scaled else None
    if why:
        return why, "a" if a.dtype == "e2m1" else "b"
    assert isinstance(acc, FragT | TmemT)
    why = accumulator_problem(kind, acc.dtype)
    if why:
        return why, "acc"
    ctas = 2 if op.attrs.get("ctas") == 2 else 1  # H023 judges other numbers
    if ctas == 2 and isinstance(acc, TmemT) and acc.lanes != 128:
        return f"the accumulator has {acc.lanes} lanes; each CTA of a pair holds 128 of the 256 rows of a tcgen05 MMA with ctas=2", "acc"
    m, n = (acc.rows, acc.cols) if isinstance(acc, FragT) else (ctas * acc.lanes, acc.cols)
    k = b.shape[-1]
    split = acc.warps if isinstance(acc, FragT) else None
    if family == "wgmma" and role.member_warps % 4:
        return None  # H013
    why = shape_problem(family, kind, m, n, k, warps=role.member_warps, split=split, ctas=ctas,  # type: ignore[arg-type]  # as above
                        a_place=_place(a), b_transposed=turned[1])  # type: ignore[arg-type]  # as above
    if why:
        return why, "a" if why.startswith("K") else "acc"
    return None
