"""Which Cake answered: part of every key under which an answer is kept."""

import functools
import hashlib
from pathlib import Path

from .. import __version__


@functools.cache
def engine_version() -> str:
    """The release, and for a checkout a digest of what can change between releases: language, gates, backend."""
    root = Path(__file__).resolve().parents[2]
    state = hashlib.sha256()
    for package in ("cake_ir", "cake_verify", "cake_backend"):
        for path in sorted((root / package).rglob("*.py")):
            stat = path.stat()
            state.update(f"{path.relative_to(root)}:{stat.st_size}:{stat.st_mtime_ns}\n".encode())
    return f"{__version__}+{state.hexdigest()[:8]}"
