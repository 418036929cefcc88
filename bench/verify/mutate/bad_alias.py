"""A view lies on top of another one whose bytes are in use."""

from bench.verify.mutate.subject import Subject
from cake_ir.dtypes import DTYPES
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    views = s.program.views
    for name, call in s.declared("view"):
        offset = option(call, "offset")
        if offset is None:
            continue
        others = [v for v in views.values() if v.name != name and v.pool == views[name].pool]
        for v in others[:3]:
            if v.offset != views[name].offset:
                s.mutant("bad-alias", f"`{name}` at the offset of `{v.name}`", (offset, str(v.offset)), roles=s.users(name) | s.users(v.name), truth=s.of_one_warp(name, v.name))
        mine = views[name]
        rows, cols = (1, *mine.shape)[-2:]
        size = (mine.stage_bytes or rows * cols * DTYPES[mine.dtype].bits // 8) * mine.stages
        for back in (size // 2, 1024):
            if back % 1024 == 0 and 0 < back <= mine.offset:
                s.mutant("bad-alias", f"`{name}` {back} bytes lower", (offset, str(mine.offset - back)), roles=frozenset(s.program.roles))
