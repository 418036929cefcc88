"""Records that nobody changes: frozen where the type checker looks, plain slots where they are made by the thousand.

A verification makes a few thousand spans, expressions and types. `dataclass(frozen=True)` stores each field through `object.__setattr__`,
which takes four times as long as an assignment; that a record is never assigned to is checked statically instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, eq: bool = True, order: bool = False) -> Callable[[type[T]], type[T]]:
    """A class decorator: a slotted dataclass whose instances are values. Without `eq`, two records are equal only where they are one."""

    def make(cls: type[T]) -> type[T]:
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = _shown  # one for all: each that `dataclass` writes is compiled anew in every process
        return dataclass(slots=True, repr=False, eq=eq, order=order, unsafe_hash=eq)(cls)

    return make


def _shown(self: Any) -> str:
    """A record as `dataclass` shows it."""
    return f"{type(self).__qualname__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in fields(self) if f.repr)})"
