"""Strict reading of JSON values: every key is asked for by name and type, and what is left over is an error."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, overload

_MISSING: Any = object()


class ManifestError(ValueError):
    """The manifest does not say what it must; the message names the place."""


class Reader:
    """One JSON object being read; `where` is its path for messages."""

    def __init__(self, data: object, where: str) -> None:
        self._value = data
        self.where = where
        self._left: dict[str, Any] = dict(data) if isinstance(data, dict) else {}
        self._is_object = isinstance(data, dict)

    def _take(self, key: str, default: Any = _MISSING) -> Any:
        if not self._is_object:
            raise ManifestError(f"{self.where} is {type(self._value).__name__}, expected an object")
        if key in self._left:
            return self._left.pop(key)
        if default is _MISSING:
            raise ManifestError(f"{self.where} lacks `{key}`")
        return default

    def _wrong(self, key: str, expected: str, found: object) -> ManifestError:
        return ManifestError(f"{self.where}.{key}: expected {expected}, found {str(found)[:80]!r}")

    def close(self) -> None:
        """Refuse keys that nobody asked for."""
        if self._left:
            raise ManifestError(f"{self.where} has an unknown key `{str(min(self._left))[:80]}`")

    def text(self, key: str) -> str:
        value = self._take(key)
        if not isinstance(value, str):
            raise self._wrong(key, "text", value)
        return value

    @overload
    def integer(self, key: str, *, optional: bool, least: int = 0, most: int = 2**40) -> int | None: ...

    @overload
    def integer(self, key: str, *, default: int = ..., least: int = 0, most: int = 2**40) -> int: ...

    def integer(
        self, key: str, *, default: Any = _MISSING, optional: bool = False, least: int = 0, most: int = 2**40
    ) -> int | None:
        value = self._take(key, None if optional else default)
        if value is None and optional:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(key, f"an integer from {least} to {most}", value)
        return value

    def integers(self, key: str, *, default: Any = _MISSING, least: int = 0) -> tuple[int, ...]:
        values = self._take(key, default)
        if not isinstance(values, list | tuple) or not all(
            isinstance(v, int) and not isinstance(v, bool) and v >= least for v in values
        ):
            raise self._wrong(key, f"integers of at least {least}", values)
        return tuple(values)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def choice(self, key: str, choices: Collection[str], default: Any = _MISSING) -> str:
        value = self._take(key, default)
        if not isinstance(value, str) or value not in choices:
            raise self._wrong(key, "one of " + ", ".join(choices), value)
        return value

    def choice_value(self, choices: Collection[str]) -> str:
        """This very value, as one of `choices`."""
        if not isinstance(self._value, str) or self._value not in choices:
            raise ManifestError(f"{self.where}: expected one of {', '.join(choices)}, found {str(self._value)[:80]!r}")
        return self._value

    def expression(self, key: str) -> str | int:
        value = self._take(key)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self._wrong(key, "an expression", value)
        return value

    def expressions(self, key: str) -> tuple[str | int, ...]:
        values = self._take(key)
        if not isinstance(values, list | tuple) or any(isinstance(v, bool) or not isinstance(v, str | int) for v in values):
            raise self._wrong(key, "a list of expressions", values)
        return tuple(values)

    def texts(self, key: str) -> tuple[str, ...]:
        """An optional list of texts."""
        values = self._take(key, [])
        if not isinstance(values, list | tuple) or any(not isinstance(v, str) for v in values):
            raise self._wrong(key, "a list of texts", values)
        return tuple(values)

    def child(self, key: str) -> Reader:
        return Reader(self._take(key), f"{self.where}.{key}")

    def items(self, key: str, *, default: bool = False) -> list[Reader]:
        values = self._take(key, [] if default else _MISSING)
        if not isinstance(values, list | tuple):
            raise self._wrong(key, "a list", values)
        return [Reader(v, f"{self.where}.{key}[{i}]") for i, v in enumerate(values)]

    def closed_items(self, key: str) -> Iterator[Reader]:
        """The items of an optional list; each must have been read completely when the next is asked for."""
        for item in self.items(key, default=True):
            yield item
            item.close()

    def entries(self, key: str) -> list[tuple[str, Reader]]:
        values = self._take(key, {})
        if not isinstance(values, dict):
            raise self._wrong(key, "an object", values)
        return [(n, Reader(v, f"{self.where}.{key}.{n}")) for n, v in values.items()]
