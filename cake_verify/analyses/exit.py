"""What has to be true when every member has ended: nothing in flight, no phase half given."""

from __future__ import annotations

from itertools import chain

from cake_verify.analyses.plan import Plan
from cake_verify.analyses.state import Found, World


def check_exit(plan: Plan, world: World) -> None:
    """Raise the first thing that is left over."""
    for m in world.members:
        for _, op in m.bulk[:1]:
            raise _by(Found("S011", op=op, exit=True), m)
        for group in m.mma[:1]:
            raise _by(Found("S025", op=group[3], engine="wgmma", count=len(m.mma)), m)
        for bits, op in (*m.cp, *m.cp_open):
            if bits & ~m.tracked:
                raise _by(Found("S025", op=op, engine="cp_async", count=1), m)
        for _, op in m.tc_open[:1]:
            raise _by(Found("S025", op=op, engine="tcgen05", count=len(m.tc_open)), m)
        for access in m.tmem[:1]:
            raise _by(Found("S025", op=access[3], engine=access[2], count=len(m.tmem)), m)
    for name in plan.followed:
        for cta in world.ctas:
            for bar in cta.bars[plan.number[name]]:
                if bar.n > bar.waited:
                    raise Found("S025", bar=bar, engine="cp_async arrival", op=-1, count=bar.n - bar.waited)
    for cta in world.ctas:
        half = None
        for bar in chain.from_iterable(cta.bars):
            if bar.loaded >> bar.waited:
                raise Found("S025", bar=bar, engine="tma", op=-1, count=bar.loaded.bit_length() - bar.waited)
            if half is None and bar.open:
                half = bar
        if half is not None:
            raise Found("S018" if half.tx and not half.pend else "S001", bar=half, phase=half.n)
        for name, turns in cta.turns.items():
            if [t[0] - t[1] for t in turns] != [1] + [0] * (len(turns) - 1):
                raise Found("S015", turns=name, held=True, taken=[t[1] for t in turns])


def _by(found: Found, member: object) -> Found:
    found.member = member  # type: ignore[assignment]  # members are not imported here
    return found
