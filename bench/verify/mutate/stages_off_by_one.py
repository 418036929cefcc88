"""A ring, or a view that rides one, has one slot more or less than what it belongs to."""

from bench.verify.mutate.subject import Subject
from cake_ir.layout import end_offset, stage_stride
from cake_ir.placement import view_layout
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for kind, count in (("pipeline", "stages"), ("view", "stage")):
        for name, call in s.declared(kind):
            value = option(call, count)
            if value is None:
                continue
            for delta in ("+ 1", "- 1"):
                past = kind == "view" and delta == "+ 1" and _leaves_pool(s, name)  # which no run shows: nobody takes the slot
                s.mutant("stages-off-by-one", f"`{name}` with {s.source(value)} {delta}", (value, f"{s.source(value)} {delta}"), roles=s.users(name),
                         truth="contract" if past else "simulation")


def _leaves_pool(s: Subject, name: str) -> bool:
    """Whether one slot more of a view ends behind its pool."""
    view = s.program.views[name]
    layout = view_layout(view)
    return end_offset(layout) + stage_stride(layout) > s.program.pools[view.pool].nbytes
