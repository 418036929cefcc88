"""Ids that a person can read aloud and an agent can copy without error."""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping

# Crockford's alphabet in lower case: no i, l, o, u.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_SHORT = 8


def digest(*parts: str) -> str:
    """SHA-256 of the parts, in hexadecimal, with their lengths mixed in so that no two splits collide."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def text_hash(text: str) -> str:
    """Hash of a candidate's text as it was sent, byte for byte."""
    return digest(text)


def named(prefix: str, key: str, taken: Callable[[str], str | None]) -> str:
    """Id derived from `key` (hexadecimal): equal keys give equal ids.

    `taken(id)` gives the key an id already stands for, or None. Two keys that agree in their first characters get longer ids.
    """
    number = int(key, 16)
    letters = "".join(_ALPHABET[(number >> (5 * i)) & 31] for i in range(len(key) * 4 // 5))
    for length in range(_SHORT, len(letters) + 1):
        identifier = f"{prefix}_{letters[:length]}"
        owner = taken(identifier)
        if owner is None or owner == key:
            return identifier
    raise AssertionError("two different keys with equal digests")


def fresh(prefix: str) -> str:
    """A new random id."""
    return f"{prefix}_" + "".join(secrets.choice(_ALPHABET) for _ in range(_SHORT))


def job_key(text: str, params: Mapping[str, object], plan_hash: str, device: str) -> str:
    """What makes two evaluations the same work: text hash, parameters, plan and device."""
    return digest(text_hash(text), canonical_json(dict(params)), plan_hash, device)
