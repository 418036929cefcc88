"""Steps from an empty file to the present schema, one file a step, applied in the order of their names.

A step that has been released is never edited: a change is a new file.
"""

import importlib
import pkgutil

from sqlite_utils import Migrations


def _collect() -> Migrations:
    steps = Migrations("cake")
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        steps(name=module)(importlib.import_module(f"{__name__}.{module}").apply)
    return steps


MIGRATIONS = _collect()
