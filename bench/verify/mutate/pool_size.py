"""The pool is too small for its views, or a view reaches past it."""

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("smem"):
        size = call.args[0]
        for less in (16, 1024):
            s.mutant("pool-size", f"`{name}` {less} bytes smaller", (size, f"{s.source(size)} - {less}"), roles=frozenset(s.program.roles))
    for name, call in s.declared("view"):
        offset = option(call, "offset")
        view = s.program.views[name]
        if offset is not None:
            last = s.program.pools[view.pool].nbytes
            s.mutant("pool-size", f"`{name}` past the end", (offset, str(last - last % 1024)), roles=s.users(name))
