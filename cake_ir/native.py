"""The compiled form of `cake_ir` and `cake_verify`, taken in the place of their Python only where it was built from exactly these files.

`python -m cake_verify.native` compiles most modules of both packages into one extension module in the folder `_native` and writes beside it
what it was built from: the interpreter, and the hash of every file of both packages. The finder below stands in front of Python's own only
where all of that still holds, to the last byte of the last file. Otherwise, and where nothing was built or `CAKE_NATIVE=0` is set, it is not there
at all, and the Python files run as if there were no other form: slower, with the same verdicts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = ("cake_ir", "cake_verify")
LIBRARY = "cake__mypyc"
"""The extension module that holds all compiled modules; its name is the compiler's choice for a group called `cake`."""
FOLDER = Path(__file__).with_name("_native")
TRIAL = FOLDER.with_name("_native_trial")
"""Where a build lies until it has answered as the Python does; taken only with `CAKE_NATIVE=trial`."""


def stamp(root: Path) -> dict[str, Any]:
    """What a built form belongs to: the interpreter's binary interface and the hash of every Python file of both packages."""
    files = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {
        "suffix": EXTENSION_SUFFIXES[0],
        "python": sys.version,
        "files": {path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files},
    }


def library(folder: Path = FOLDER) -> Path:
    """Where the extension module lies once it is built."""
    return folder / (LIBRARY + EXTENSION_SUFFIXES[0])


def read(folder: Path = FOLDER) -> tuple[dict[str, Any], str]:
    """The record of what was built and, where it may not be used, why."""
    try:
        built = json.loads((folder / "built.json").read_text("utf-8"))
        now = stamp(Path(__file__).resolve().parents[1])
        stale = [name for name in now if built[name] != now[name]]
        if stale == ["files"]:
            changed = sorted(f for f in {*built["files"], *now["files"]} if built["files"].get(f) != now["files"].get(f))
            return built, f"{changed[0]} is not what it was built from"
        if stale:
            return built, f"built for another interpreter, {built['python'].split()[0]}"
        return built, "" if sha256(library(folder).read_bytes()).hexdigest() == built["library"] else "the extension module is not the one that was built"
    except (OSError, ValueError, KeyError, TypeError):
        return {}, "nothing was built"


class Finder(MetaPathFinder, Loader):
    """Finds the modules that were compiled, in the extension module that holds them all."""

    def __init__(self, modules: Sequence[str], path: Path) -> None:
        spec = spec_from_file_location(LIBRARY, path, loader=ExtensionFileLoader(LIBRARY, str(path)))
        assert spec is not None
        self.modules, self.path = frozenset(modules), str(path)
        self.library = sys.modules[LIBRARY] = module_from_spec(spec)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in self.modules:
            return None
        return spec_from_loader(fullname, self, origin=self.path)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Call the module's own initialiser, which the compiler left in a capsule; it makes the module and runs it."""
        import ctypes

        api, name = ctypes.pythonapi, "init_" + spec.name.replace(".", "___")
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
        return ctypes.PYFUNCTYPE(ctypes.py_object)(pointer(getattr(self.library, name), f"{LIBRARY}.{name}".encode()))()

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it ran when it was made."""


def form() -> str:
    """Which form of the verifier runs in this process."""
    return "native" if any(isinstance(each, Finder) for each in sys.meta_path) else "python"


def install() -> None:
    """Put the compiled form in front where there is one of exactly these files; say on stderr that a stale one is left alone."""
    wanted = os.environ.get("CAKE_NATIVE", "")
    folder = TRIAL if wanted == "trial" else FOLDER
    if wanted == "0" or not (folder / "built.json").exists():
        return
    built, reason = read(folder)
    try:
        if not reason:
            sys.meta_path.insert(0, Finder(built["modules"], library(folder)))
    except ImportError as e:
        reason = f"it does not load: {e}"
    if reason:
        print(f"cake: the compiled verifier is not used: {reason}; `python -m cake_verify.native` builds it again", file=sys.stderr)
