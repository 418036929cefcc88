"""A wait for asynchronous groups leaves one group more in flight, or waits for the other kind."""

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("mma_wait", "cp_wait", "store_wait"):
            assert p.call is not None
            pending = option(p.call, "pending")
            if pending is not None:
                s.mutant("weaken-async-wait", f"{s.source(p.node)} with one more pending", (pending, f"{s.source(pending)} + 1"), at=p)
        if p.calls("tmem_wait"):
            assert p.call is not None
            what = p.call.args[0]
            s.mutant("weaken-async-wait", "tmem_wait for the other kind", (what, '"st"' if "ld" in s.source(what) else '"ld"'), at=p)
