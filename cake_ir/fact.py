"""What follows from a program, worked out once and kept with it.

Facts live in `Program.facts` and go when the program goes: a server that verifies all day holds none of them, and nothing that is looked
up can belong to another program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from cake_ir.program import Program

P = ParamSpec("P")
R = TypeVar("R")


def fact(work_out: Callable[Concatenate[Program, P], R]) -> Callable[Concatenate[Program, P], R]:
    """A function of a program (and of hashable things beside it) whose answers are kept with the program.

    It may not depend on the target: the programs of one schedule for several targets share their facts.
    """

    parameters = _parameters(work_out)
    if parameters == 1:  # as most have

        @wraps(work_out)
        def known_of(program: Program) -> R:
            found = program.facts.get(work_out, program)  # a program is no fact of itself, so it can stand for "not known"
            if found is program:
                found = program.facts[work_out] = work_out(program)  # type: ignore[call-arg]  # it takes nothing else
            return found  # type: ignore[return-value]  # what was put in under this key

        return known_of  # type: ignore[return-value]  # as above

    if parameters == 2:  # as nearly all others have: neither arguments nor options have to be gathered

        @wraps(work_out)
        def known_beside(program: Program, beside: object) -> R:
            key = (work_out, beside)
            found = program.facts.get(key, program)  # as above
            if found is program:
                found = program.facts[key] = work_out(program, beside)  # type: ignore[call-arg]  # it takes one thing more
            return found  # type: ignore[return-value]  # what was put in under this key

        return known_beside  # type: ignore[return-value]  # as above

    @wraps(work_out)
    def known(program: Program, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (work_out, *args)
        found = program.facts.get(key, program)  # as above
        if found is program:
            found = program.facts[key] = work_out(program, *args, **kwargs)
        return found  # type: ignore[return-value]  # what was put in under this key

    return known


def _parameters(work_out: Callable[..., object]) -> int:
    """How many parameters a function has; a compiled one has no code to ask, but tells its signature."""
    code = getattr(work_out, "__code__", None)
    if code is not None:
        return int(code.co_argcount)
    signature = getattr(work_out, "__text_signature__", None)
    return sum([p.strip().isidentifier() for p in signature.strip("()").split(",")]) if isinstance(signature, str) else 0
