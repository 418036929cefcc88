"""A barrier starts complete that should not, or the other way round."""

from bench.verify.mutate.subject import Subject, with_option, without
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("barrier"):
        if option(call, "primed") is not None:
            s.mutant("primed-flip", f"`{name}` not primed", (call, without(s, call, "primed")), roles=s.users(name))
        else:
            s.mutant("primed-flip", f"`{name}` primed", (call, with_option(s, call, "primed", "True")), roles=s.users(name))
