"""A product starts from what was left in the accumulator, or throws away what was summed."""

from bench.verify.mutate.subject import Subject, with_option, without
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("mma"):
            assert p.call is not None
            init = option(p.call, "init")
            if init is None:
                s.mutant("mma-init", f"{s.source(p.node)} from zero", (p.node, with_option(s, p.call, "init", "True")), at=p)
                continue
            s.mutant("mma-init", f"{s.source(p.node)} without init", (p.node, without(s, p.call, "init")), at=p)
            s.mutant("mma-init", f"{s.source(p.node)} always from zero", (init, "True"), at=p)
