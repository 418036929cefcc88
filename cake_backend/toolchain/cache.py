"""A folder of finished builds, keyed by everything that decides them: source, options and compiler version."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

from cake_backend.toolchain.build import Build


def build_key(source: str, options: tuple[str, ...], compiler: str) -> str:
    """The hash under which a build is kept (64 hexadecimal digits)."""
    h = hashlib.sha256()
    for part in (compiler, *options, source):
        data = part.encode()
        h.update(len(data).to_bytes(8, "little"))  # lengths keep ("a", "bc") apart from ("ab", "c")
        h.update(data)
    return h.hexdigest()


def default_folder() -> Path:
    """`$CAKE_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get("CAKE_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cake" / "builds"


class BuildCache:
    """Builds on disk; safe for several processes, because a file appears whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Build | None:
        """The stored build, or None where there is none or it cannot be read (a damaged entry is compiled again)."""
        try:
            return Build.from_json(json.loads(self.path(key).read_text())).with_cached()
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, build: Build) -> None:
        """Store a build; a full or read-only disk loses the entry, not the build."""
        path = self.path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(fd, "w") as f:
                json.dump(build.to_json(with_cubin=True), f)
            os.replace(temporary, path)
        except OSError:
            return
