"""D012: tensor and view disagree about the dtype."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D012",
    title="tensor and view disagree about the dtype",
    statement="A tensor that names its dtype is copied to and from views of that dtype.",
    why="A copy moves bytes: another dtype would read them as other numbers.",
    failing=edit(TILE, ("A: LM.tma2d[LM.bf16]", "A: LM.tma2d[LM.f16]")),
    passing=TILE,
)
