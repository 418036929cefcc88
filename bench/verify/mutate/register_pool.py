"""A role asks for more registers than the others leave, or for a number that does not exist."""

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("role"):
        value = option(call, "regs")
        if value is None:
            continue
        regs = s.program.roles[name].regs or 0
        for new in (regs + 8, regs + 40, regs + 4, 264):
            s.mutant("register-pool", f"`{name}` with {new} registers", (value, str(new)), roles=frozenset({name}))
