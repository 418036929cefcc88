"""What a text declares, as far as it parses: its schedules, their parameters, and the hash of its program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Outline:
    """Names of the schedules, parameter values in force by name, and the content hash (None while the text does not specialise)."""

    schedules: tuple[str, ...] = ()
    params: dict[str, Any] = field(default_factory=dict)
    content_hash: str | None = None


def outline(text: str, *, params: Mapping[str, Any], target: str | None) -> Outline:
    """The outline of a text; an empty one where it does not parse. Never raises for a fault of the text."""
    raise NotImplementedError
