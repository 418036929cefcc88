"""D003: dtypes disagree."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D003",
    title="dtypes disagree",
    statement=(
        "Operands have one dtype (literals take the other's; bf16 and f16 widen to f32 by themselves); what is stored has the "
        "dtype of where it goes."
    ),
    why="Conversions cost instructions and lose bits, so they are written.",
    failing=edit(TILE, ("C: LM.gmem2d[LM.f32]", "C: LM.gmem2d[LM.bf16]")),
    passing=TILE,
    sources=("HW042",),
)
