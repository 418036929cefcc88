"""Records that nobody changes: frozen where the type checker looks, plain slots where they are made by the thousand.

A verification makes a few thousand spans, expressions and types. `dataclass(frozen=True)` stores each field through `object.__setattr__`,
which takes four times as long as an assignment; that a record is never assigned to is checked statically instead. It also writes and
compiles seven functions a class, which a process that answers once pays for a hundred classes: here only `__init__` is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, eq: bool = True, order: bool = False) -> Callable[[type[T]], type[T]]:
    """A class decorator: a slotted dataclass whose instances are values. Without `eq`, two records are equal only where they are one."""

    def make(cls: type[T]) -> type[T]:
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = shown
        made = dataclass(slots=True, repr=False, eq=False)(cls)
        for name, function in _comparisons(made, order).items() if eq else ():
            if name not in cls.__dict__:
                setattr(made, name, function)
        return made

    return make


def unmade(cls: type[T]) -> T:
    """A record whose fields are all still to be put."""
    return cls.__new__(cls)


def _comparisons(cls: type[Any], order: bool) -> dict[str, Callable[..., Any]]:
    """What compares two records of a class: their fields, in order."""
    names = [f.name for f in fields(cls) if f.compare]
    values: Callable[[Any], Any] = attrgetter(*names) if names else lambda self: ()

    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __lt__(self: Any, other: object) -> Any:
        return values(self) < values(other) if other.__class__ is self.__class__ else NotImplemented

    def __le__(self: Any, other: object) -> Any:
        return values(self) <= values(other) if other.__class__ is self.__class__ else NotImplemented

    def __gt__(self: Any, other: object) -> Any:
        return values(self) > values(other) if other.__class__ is self.__class__ else NotImplemented

    def __ge__(self: Any, other: object) -> Any:
        return values(self) >= values(other) if other.__class__ is self.__class__ else NotImplemented

    found: dict[str, Callable[..., Any]] = {"__eq__": __eq__, "__hash__": lambda self: hash(values(self))}
    return {**found, "__lt__": __lt__, "__le__": __le__, "__gt__": __gt__, "__ge__": __ge__} if order else found


def shown(self: Any) -> str:
    """A record as `dataclass` shows it."""
    return f"{type(self).__qualname__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in fields(self) if f.repr)})"
