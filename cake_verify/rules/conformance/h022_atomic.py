"""H022: atomic updates that the target has."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.ops.atomic import BF16_ADD
from cake_ir.program import Program
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

_SUM = edit(COPY, ("X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]", "X: LM.gmem1d[LM.bf16], Y: LM.gmem1d[LM.bf16].zeroed"), ("lm.store(Y, x, coords=(0,))", 'lm.atomic(Y, x, coords=(0,), order="any")'))

PAGE = Page(
    code="H022",
    title="an atomic update that the target does not have",
    statement="`lm.atomic` adds bf16 on sm_90a and later; sm_80 and sm_89 add f32, f16 and integers.",
    why="The instruction does not exist there, and a loop of compare-and-swap in its place would be slower than adding in f32.",
    failing=edit(_SUM, ('target="sm_90a"', 'target="sm_80"')),
    passing=_SUM,
    sources=("HW103",),
)


def check(program: Program) -> Iterator[Fault]:
    if program.target not in BF16_ADD:
        return
    for op in (s.op for s in sites(program).of("atomic")):
        tensor = program.tensors.get(str(op.attrs.get("tensor")))
        if tensor is not None and tensor.dtype == "bf16":
            yield Fault("H022", f"{program.target} has no atomic addition of bf16", op.span, ((tensor.span, f"`{tensor.name}` holds bf16"),),
                        "add in f32 and convert afterwards, or in f16", (), {"target": program.target, "found": "bf16"})  # fmt: skip
