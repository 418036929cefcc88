"""A ring, or a view that rides one, has one slot more or less than what it belongs to."""

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for kind, count in (("pipeline", "stages"), ("view", "stage")):
        for name, call in s.declared(kind):
            value = option(call, count)
            if value is None:
                continue
            for delta in ("+ 1", "- 1"):
                s.mutant("stages-off-by-one", f"`{name}` with {s.source(value)} {delta}", (value, f"{s.source(value)} {delta}"), roles=s.users(name))
