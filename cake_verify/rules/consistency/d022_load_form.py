"""D022: a form that this load cannot fill."""

from cake_verify.rule import Page
from cake_verify.rules.examples import SYNC_MMA, edit

PAGE = Page(
    code="D022",
    title="a form that this load cannot fill",
    statement=(
        "Memory is loaded into acc, a, b, rows, vec, rowvec or colvec; a matrix load fills acc, a and b; tensor memory fills "
        "rows and acc."
    ),
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(
        SYNC_MMA,
        ("x = a.cols(16 * k, 16).ldmatrix(form=\"a\", like=acc)", "x = a.cols(16 * k, 16).ldmatrix(form=\"rows\", like=acc)"),
    ),
    passing=SYNC_MMA,
)
