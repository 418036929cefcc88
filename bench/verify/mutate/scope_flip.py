"""A barrier counts arrivals of its own CTA where the cluster's are meant, or the other way round."""

from bench.verify.mutate.subject import Subject, with_option, without
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    if s.program.launch.cluster == (1, 1):
        return
    for name, call in s.declared("barrier"):
        if option(call, "scope") is not None:
            s.mutant("scope-flip", f"`{name}` within the CTA", (call, without(s, call, "scope")), roles=s.users(name))
        else:
            s.mutant("scope-flip", f"`{name}` over the cluster", (call, with_option(s, call, "scope", '"cluster"')), roles=s.users(name))
