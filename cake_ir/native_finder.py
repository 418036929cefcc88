"""The finder of compiled modules, and what a build belongs to: asked only where there is one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from cake_ir.native import FOLDER, RECORD

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cake_ir", "cake_verify")
LIBRARY = "cake__mypyc"
"""The extension module that holds all compiled modules; its name is the compiler's choice for a group called `cake`."""


def stamp(root: Path) -> dict[str, Any]:
    """What a built form belongs to: the interpreter's binary interface and the hash of every Python file of both packages."""
    files = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {
        "suffix": EXTENSION_SUFFIXES[0],
        "python": sys.version,
        "files": {path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files},
    }


def library(folder: Path = Path(FOLDER)) -> Path:
    """Where the extension module lies once it is built."""
    return folder / (LIBRARY + EXTENSION_SUFFIXES[0])


def read(folder: Path = Path(FOLDER)) -> tuple[dict[str, Any], str]:
    """The record of what was built and, where it may not be used, why."""
    try:
        built = json.loads((folder / RECORD).read_text("utf-8"))
        now = stamp(ROOT)
        stale = [name for name in now if built[name] != now[name]]
        if stale == ["files"]:
            changed = sorted(f for f in {*built["files"], *now["files"]} if built["files"].get(f) != now["files"].get(f))
            return built, f"{changed[0]} is not what it was built from"
        if stale:
            return built, f"built for another interpreter, {built['python'].split()[0]}"
        return built, "" if sha256(library(folder).read_bytes()).hexdigest() == built["library"] else "the extension module is not the one that was built"
    except (OSError, ValueError, KeyError, TypeError):
        return {}, "nothing was built"


class Finder:
    """Finds the modules that were compiled, in the extension module that holds them all."""

    def __init__(self, modules: Sequence[str], path: Path) -> None:
        spec = spec_from_file_location(LIBRARY, path, loader=ExtensionFileLoader(LIBRARY, str(path)))
        assert spec is not None
        self.modules, self.path = frozenset(modules), str(path)
        self.library = sys.modules[LIBRARY] = module_from_spec(spec)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in self.modules:
            return None
        return spec_from_loader(fullname, cast(Any, self), origin=self.path)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Call the module's own initialiser, which the compiler left in a capsule; it makes the module and runs it."""
        import ctypes

        api, name = ctypes.pythonapi, "init_" + spec.name.replace(".", "___")
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
        return ctypes.PYFUNCTYPE(ctypes.py_object)(pointer(getattr(self.library, name), f"{LIBRARY}.{name}".encode()))()

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it ran when it was made."""


def take(folder: str) -> str:
    """Put the finder of a build in front, or say why not."""
    built, reason = read(Path(folder))
    if reason:
        return reason
    try:
        sys.meta_path.insert(0, Finder(built["modules"], library(Path(folder))))
    except ImportError as e:
        return f"it does not load: {e}"
    return ""
