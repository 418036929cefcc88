"""Another number of lanes is elected to arrive than the work of the slot needs."""

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("barrier"):
        value = option(call, "arrive")
        if value is None:
            continue
        for kind in ("warp", "member", "thread", "tx", "cp_async", "mma"):
            # Who arrives for bytes is one thread that need not have met the others: a simulation runs the lanes of a warp in step.
            truth = "contract" if kind == "tx" and s.source(value).strip('"') in ("warp", "member", "thread") else "simulation"
            if f'"{kind}"' != s.source(value):
                s.mutant("arrive-kind", f'`{name}` with arrive="{kind}"', (value, f'"{kind}"'), roles=s.users(name), truth=truth)
