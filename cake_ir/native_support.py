"""What compiled modules call where the compiler does less than Python: written into their text by `cake_verify.native.expand`, never compiled."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Any, TypeVar

from cake_ir.record import shown

__all__ = ["backwards", "fielded", "interpreted", "shown"]
T = TypeVar("T")

backwards: Any = reversed
"""`reversed`, which the compiler cannot follow over a sequence of unknown type."""


def interpreted(cls: type[T]) -> type[T]:
    """The class as it is: a decorator the compiler does not know keeps it from compiling a subclass of a built-in type."""
    return cls


def fielded(cls: Any, specs: tuple[tuple[str, bool, bool, bool], ...]) -> None:
    """Give a compiled record what `dataclasses.fields` and `replace` ask a class for: name, in `__init__`, shown, compared."""
    made = make_dataclass(cls.__name__, [(name, Any, field(default=None, init=init, repr=told, compare=compared)) for name, init, told, compared in specs])
    cls.__dataclass_fields__ = made.__dataclass_fields__  # type: ignore[attr-defined]  # what makes it a dataclass
    cls.__dataclass_params__ = made.__dataclass_params__  # type: ignore[attr-defined]  # likewise
    cls.__match_args__ = tuple(name for name, init, _, _ in specs if init)
