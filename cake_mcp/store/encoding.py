"""Values to JSON text and back, for a strict parser.

NaN and the infinities are not JSON: they become the strings "nan", "inf" and "-inf", everywhere and always.
"""

import json
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def plain(value: Any) -> Any:
    """`value` as what a strict JSON writer accepts: str keys, finite numbers, lists; other objects by their text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "item") and callable(value.item) and getattr(value, "shape", None) == ():  # a NumPy scalar
        return plain(value.item())
    if hasattr(value, "tolist"):  # a NumPy array
        return plain(value.tolist())
    return str(value)


def to_json(value: Any) -> str:
    """JSON text of `value`."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_json(text: str | None, default: Any = None) -> Any:
    """The value of JSON text; `default` for None."""
    return default if text is None else json.loads(text)
