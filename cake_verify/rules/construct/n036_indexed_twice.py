"""N036: a slot of a slot."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N036",
    title="a slot of a slot",
    statement="A view with several stages is indexed once, by a ring position.",
    why="`view[s]` is one slot; there are no slots in it.",
    failing=edit(LOOP, ("a[s], b[s], init", "a[s][s], b[s], init")),
    passing=LOOP,
)
