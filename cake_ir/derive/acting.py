"""Operations by what they do: the sites of each kind of effect, so that who asks for one kind need not look at all of them."""

from __future__ import annotations

from cake_ir.derive.structure import Site, sites
from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue
from cake_ir.program import Program


@fact
def acting(program: Program) -> dict[type, tuple[Site, ...]]:
    """The operations with at least one effect of a kind, by the effect's class, in text order."""
    found: dict[type, list[Site]] = {}
    for site in sites(program):
        effects = effects_of(site.op, program)
        for kind in {type(e) for e in effects} if len(effects) > 1 else [type(e) for e in effects]:
            found.setdefault(kind, []).append(site)
    return {kind: tuple(where) for kind, where in found.items()}


@fact
def tx_loads(program: Program) -> dict[int, Site]:
    """Asynchronous copies that complete by bytes on a barrier of this CTA, which they arm, by operation."""
    out = {}
    for site in acting(program).get(Issue, ()):
        for e in effects_of(site.op, program):
            if isinstance(e, Issue) and e.done == "tx" and e.engine != "st_async":
                out[site.op.id] = site
    return out
