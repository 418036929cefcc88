"""Settings in which the tiles of a grid share unevenly what their loops count: only then one tile ends where another one goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cake_verify.analyses.setting import Setting
from cake_verify.analyses.trips import resolver_of

if TYPE_CHECKING:
    from cake_verify.analyses.settings import Settings

SHARES = (3, 5)
"""Tiles that hardly any length is a multiple of, beside one less and one more than there are."""


def uneven(search: Settings, settings: list[Setting]) -> Iterator[Setting]:
    """Every setting again with other numbers of tiles, where arguments alone say what there is to do and the first tile still has some of all of it; the least first."""
    s = search.scheduler
    if s is None or search.read or s.kind in ("grid", "grouped"):
        return
    resolve = resolver_of(search.program, "")
    names = dict.fromkeys(str(n.attrs["name"]) for e in s.tiles for n in resolve(e).parts() if n.op == "param" and n.attrs["name"] in search.candidates)
    found: dict[tuple[int, ...], tuple[int, dict[str, int]]] = {}
    for setting in settings:
        base = {n: int(setting.args[n]) for n in search.candidates}
        for name in names:
            for value in (*SHARES, base[name] - 1, base[name] + 1):
                choice = {**base, name: value}
                profile = search.profile(choice) if value > 0 and value != base[name] else None
                if profile is not None and profile[0] > 1 and all(n or not before for n, before in zip(profile[1], setting.trips, strict=True)):
                    found.setdefault(tuple(choice.values()), (profile[0] * max(1, *profile[1]) if profile[1] else profile[0], choice))
    for _, choice in sorted(found.values(), key=lambda x: x[0]):
        profile = search.profile(choice)
        assert profile is not None  # it was kept
        env = search.environment(choice)
        yield Setting({p: env[p] for p in search.program.scalars}, {}, profile[0], 0, 1, profile[1])
