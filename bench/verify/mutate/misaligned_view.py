"""A view starts off the boundary that its swizzle, copies or matrix loads need."""

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("view"):
        offset = option(call, "offset")
        if offset is None:
            continue
        for step in (8, 128, 512):
            at = s.program.views[name].offset
            where = at - step if at >= step else at + step
            s.mutant("misaligned-view", f"`{name}` at {where}", (offset, str(where)), roles=s.users(name))
