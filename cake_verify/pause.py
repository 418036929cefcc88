"""Python's cycle collector held still while a text is verified, and freed memory kept for the next one.

A verification makes some ten thousand small records and drops them all at its end; looking for cycles among them meanwhile costs a tenth of
its time and finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

bytes(8 << 20)
"""Never touched, and freed at once: from then on the C library keeps blocks of this size for itself. The parser wants half a MB for a long
text; given back to the system after each, it comes in again page by page, which takes a tenth as long as parsing."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect nothing inside; what another pause around this one, or the process, has chosen stays as it is."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
