"""N048: no such option."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N048",
    title="no such option",
    statement="A call uses the options that the operation or declaration has.",
    why="An option that is silently ignored would be believed.",
    failing=edit(COPY, ("shape=(512,))", "shape=(512,), pad=1)")),
    passing=COPY,
)
