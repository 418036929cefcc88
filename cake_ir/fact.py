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

    if _of_the_program_alone(work_out):  # as most are

        @wraps(work_out)
        def known_of(program: Program) -> R:
            found = program.facts.get(work_out, program)  # a program is no fact of itself, so it can stand for "not known"
            if found is program:
                found = program.facts[work_out] = work_out(program)  # type: ignore[call-arg]  # it takes nothing else
            return found  # type: ignore[return-value]  # what was put in under this key

        return known_of  # type: ignore[return-value]  # as above

    @wraps(work_out)
    def known(program: Program, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (work_out, *args)
        found = program.facts.get(key, program)  # as above
        if found is program:
            found = program.facts[key] = work_out(program, *args, **kwargs)
        return found  # type: ignore[return-value]  # what was put in under this key

    return known


def _of_the_program_alone(work_out: Callable[..., object]) -> bool:
    """Whether a function has one parameter; a compiled one has no code to ask, but tells its signature."""
    code = getattr(work_out, "__code__", None)
    return code.co_argcount == 1 if code is not None else "," not in str(getattr(work_out, "__text_signature__", ","))
