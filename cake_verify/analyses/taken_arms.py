"""A program as the tiles see it that take one arm of what memory decides: there the arm stands under no condition.

`if lm.ld(target, t.r) != IGNORE:` hides from a rule that looks at unconditional accesses that the loop in the arm ends a round early. What
is wrong where every tile takes the arm is wrong: nobody says that memory forbids it.
"""

from __future__ import annotations

from dataclasses import replace

from cake_ir.fact import fact
from cake_ir.program import For, If, Program, Stmt, statements
from cake_verify.analyses.trips import conditions


@fact
def taken_arms(program: Program) -> tuple[Program, ...]:
    """The program with the first arm of every branch of a tile that memory decides, and with the second where there is one; operations keep their numbers."""
    read = [s for _, s, cond in conditions(program) if any(n.op == "ld" for n in cond.parts())]
    if not read:
        return ()
    inside = {id(s) for block in program.body for x in statements(block.body) if isinstance(x, For) and x.kind != "tiles" for s in statements(x.body)}
    decided = {id(s): s for s in read if id(s) not in inside}
    arms = [True, *([False] if any(s.orelse for s in decided.values()) else [])] if decided else []
    return tuple([replace(program, body=tuple([replace(b, body=_taken(b.body, decided, arm)) for b in program.body])) for arm in arms])


def _taken(body: tuple[Stmt, ...], decided: dict[int, If], arm: bool) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, If) and id(s) in decided:
            out += _taken(s.then if arm else s.orelse, decided, arm)
        elif isinstance(s, If):
            out.append(replace(s, then=_taken(s.then, decided, arm), orelse=_taken(s.orelse, decided, arm)))
        elif isinstance(s, For) and s.kind == "tiles":
            out.append(replace(s, body=_taken(s.body, decided, arm)))
        else:
            out.append(s)
    return tuple(out)


__all__ = ["taken_arms"]
