"""N018: not a dtype or extent."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N018",
    title="not a dtype or extent",
    statement=(
        "Between the brackets of a tensor type stand a dtype and then the extents, outermost first, as names of scalar "
        "parameters or numbers; `dtype=` takes a dtype."
    ),
    why="The launcher checks extents and dtypes against the tensors that it is given.",
    failing=edit(COPY, ("X: LM.gmem1d[LM.f32]", "X: LM.gmem1d[LM.f33]")),
    passing=COPY,
)
