"""A request that cannot be carried out as it was made, in words that let the caller make it right."""

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 12


class Misuse(Exception):
    """The caller's mistake: the message names what was found, what was expected, and the next call. Never a fault of a kernel."""


def unknown(kind: str, name: str, known: Iterable[str], *, then: str = "") -> Misuse:
    """`name` is none of the `known` names of that kind; the nearest one is offered, else they are listed."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.55)
    if near:
        offer = f"did you mean `{near[0]}`?"
    elif names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        offer = "there are: " + ", ".join(f"`{n}`" for n in names[:_SHOWN]) + more
    else:
        offer = "there is none"
    return Misuse(f"no {kind} `{name[:80]}`; {offer}" + (f"; {then}" if then else ""))
