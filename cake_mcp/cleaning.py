"""Text that others wrote (kernels, compilers, drivers) on its way into an answer: no control characters, never endless."""

import re
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def clip(text: str, limit: int) -> str:
    """At most `limit` characters of the text without control and direction-changing characters; says how much was left out."""
    text = _CONTROL.sub("�", text)
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [.. {len(text) - limit:,} more characters]"


def clip_all(value: Any, limit: int, items: int = 100) -> Any:
    """`value` with every string clipped and every list cut to `items`, saying so in its last item."""
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, dict):
        return {clip(str(key), 120): clip_all(item, limit, items) for key, item in value.items()}
    if isinstance(value, list | tuple):
        cut = [clip_all(item, limit, items) for item in value[:items]]
        return [*cut, f"[.. {len(value) - items} more]"] if len(value) > items else cut
    return value
