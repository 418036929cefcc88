"""One setting: the concrete arguments of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Setting:
    """Arguments by scalar name, group sizes by offset tensor, the grid in clusters and the cluster walked.

    `telling` marks the setting whose run shows what every value means: it has several tiles along each axis.
    """

    args: dict[str, Any]
    lengths: dict[str, tuple[int, ...]] = field(default_factory=dict)
    clusters: int = 1
    cluster: int = 0
    tiles: int = 0
    trips: tuple[int, ...] = ()
    mixed: bool = False
    telling: bool = False

    def __str__(self) -> str:
        parts = [f"{k} = {v}" for k, v in self.args.items() if not isinstance(v, float)]
        parts += [f"lengths by {k} = {list(v)}" for k, v in self.lengths.items()]
        return ", ".join([*parts, f"grid of {self.clusters} cluster{'s' if self.clusters != 1 else ''}"])


def own_index(tensor: str, i: int) -> int:
    """What an element holds where nothing is known of it: its own place, so that elements differ."""
    return i
