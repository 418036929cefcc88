"""N015: not a target."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N015",
    title="not a target",
    statement="Targets are sm_80, sm_89, sm_90a, sm_100a, sm_103a, sm_120a and sm_121a.",
    why="The suffix matters: an image for sm_90 lacks what sm_90a has.",
    failing=edit(COPY, ("sm_90a", "sm_91a")),
    passing=COPY,
)
