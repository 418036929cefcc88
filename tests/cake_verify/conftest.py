"""The benchmark's corpus lies outside the installed packages: its root has to be importable."""

import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)


class TooLong(BaseException):
    """More processor time than was allowed; nothing that catches exceptions swallows it."""


@pytest.fixture
def bounded() -> Callable[[float, int], Any]:
    """A context in which only so many processor seconds and so many more bytes are to be had, so that what hangs or grows fails alone."""

    def late(*_: object) -> None:
        raise TooLong

    @contextmanager
    def limits(seconds: float = 2, memory: int = 200_000_000) -> Iterator[None]:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGPROF, late)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, before[1]))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, before)
            signal.signal(signal.SIGPROF, handler)

    return limits
