"""One SQLite file, shared by every server and job of a workspace.

Durability: WAL with `synchronous=FULL`, so a transaction is on disk before the call that made it returns; a server that is killed at any
moment loses nothing it had answered. Writers take the write lock when they begin (`BEGIN IMMEDIATE`), so a transaction never fails half way
for want of it; they wait for each other up to `BUSY_SECONDS`.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # imported where it is used: it pulls in numpy, which a starting server has no use for
    import sqlite_utils
    from sqlite_utils.db import Table

BUSY_SECONDS = 12.0  # below the 20 s within which every tool answers


class StoreBusy(Exception):
    """Another process held the write lock for longer than a call may wait."""


class Database:
    """Connections to one file: one per thread, opened when first used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._migrate()

    def here(self) -> "sqlite_utils.Database":
        """The calling thread's connection."""
        held: _Held | None = getattr(self._local, "held", None)
        if held is None:
            held = self._local.held = _Held(_open(self.path))
        return held.database

    def table(self, name: str) -> "Table":
        """A table on the calling thread's connection."""
        return cast("Table", self.here()[name])

    @contextlib.contextmanager
    def write(self) -> "Iterator[sqlite_utils.Database]":
        """A transaction that holds the write lock from its first statement; nested use joins the outer one.

        Raises `StoreBusy` if the lock is not to be had within `BUSY_SECONDS`.
        """
        database = self.here()
        if database.conn.in_transaction:
            yield database
            return
        try:
            database.conn.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise StoreBusy(f"the workspace's store was locked by another process for {BUSY_SECONDS:.0f} s") from error
            raise
        try:
            yield database
        except BaseException:
            database.conn.execute("ROLLBACK")
            raise
        database.conn.execute("COMMIT")

    def close(self) -> None:
        """Close the calling thread's connection."""
        self._local.held = None

    def _migrate(self) -> None:
        from .migrations import MIGRATIONS

        database = self.here()
        if not MIGRATIONS.pending(database):
            return
        with self.write():  # one of several servers that start together migrates, the others find nothing pending
            MIGRATIONS.apply(database)


class _Held:
    """A connection that is closed when its thread ends, or with the last reference to its `Database`."""

    __slots__ = ("database",)

    def __init__(self, database: "sqlite_utils.Database") -> None:
        self.database = database

    def __del__(self) -> None:
        self.database.close()


def _open(path: Path) -> "sqlite_utils.Database":
    import sqlite_utils

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            # Switching to WAL does not wait for the busy timeout: it fails at once while another process opens the file.
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        return sqlite_utils.Database(connection, execute_plugins=False, strict=True)
