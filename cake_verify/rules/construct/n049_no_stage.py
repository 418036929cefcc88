"""N049: no stage chosen."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N049",
    title="no stage chosen",
    statement="An operation on a view with several stages, or on a barrier, says which slot: `view[s]` or `stage=s`.",
    why="There is one buffer and one barrier object a stage.",
    failing=edit(LOOP, ("lm.wait(full, stage=s)", "lm.wait(full)")),
    passing=LOOP,
)
