"""A workspace: one folder with the store and the files that people review and version."""

import os
import stat
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .store import Store

FOLDER = ".cake"
DATABASE = "cake.db"
SETTINGS = "cake.toml"
# What people own (reviewed and versioned like code) and what machines write.
KNOWLEDGE = ("rules", "tactics", "calibrations", "primitives", "tasks")
EVIDENCE = ("runs", "jobs")

_SETTINGS_TEXT = """\
# Defaults of this workspace; every tool and command takes its own `target` and `device` too.
# target = "sm_90a"       # decides what is legal, for schedules that do not say
# device = "H200-SXM"     # decides the calibration of predictions
parallel_jobs = 1         # evaluations at the same time, over all servers of this workspace
job_seconds = 900         # an evaluation that takes longer is ended
"""

_IGNORED = (
    "# Evidence stays on this machine; rules/ tactics/ calibrations/ primitives/ tasks/ are meant to be shared.\ncake.db*\nruns/\njobs/\n"
)


class WorkspaceError(Exception):
    """The folder cannot serve as a workspace; the message says why."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a workspace presumes when a call does not say."""

    target: str | None = None
    device: str | None = None
    parallel_jobs: int = 1
    job_seconds: float = 900.0


@dataclass(frozen=True)
class Workspace:
    """An existing workspace folder."""

    root: Path
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def store(self) -> "Store":
        """The store, opened when first asked for."""
        from .store import Store

        return Store(self.root / DATABASE)

    def folder(self, name: str) -> Path:
        """One of the workspace's folders, made if it is not there."""
        if name not in (*KNOWLEDGE, *EVIDENCE):
            raise ValueError(f"a workspace has no folder {name}")
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path


def create(root: Path) -> Workspace:
    """Make `root` a workspace, keeping whatever is there already. The store is made when it is first used.

    Raises `WorkspaceError` if the folder cannot be written.
    """
    try:
        for name in (*KNOWLEDGE, *EVIDENCE):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name, text in ((SETTINGS, _SETTINGS_TEXT), (".gitignore", _IGNORED)):
            if not (root / name).exists():
                (root / name).write_text(text, "utf-8")
    except OSError as error:
        raise WorkspaceError(f"cannot make a workspace in {root}: {error.strerror}") from error
    return load(root)


def load(root: Path) -> Workspace:
    """The workspace in `root`. Raises `WorkspaceError` if it is none or its settings do not parse."""
    if not root.is_dir():
        raise WorkspaceError(f"{root} is not a workspace: run `cake init`")
    path = root / SETTINGS
    if not path.exists():
        return Workspace(root)
    import tomllib  # here, not above: `cake verify` needs no workspace

    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"{path}: {error}") from error
    known = {name: kind for name, kind in (("target", str), ("device", str), ("parallel_jobs", int), ("job_seconds", (int, float)))}
    for name, value in values.items():
        if name not in known:
            raise WorkspaceError(f"{path}: unknown setting `{name}`; known are {', '.join(known)}")
        if not isinstance(value, known[name]):
            raise WorkspaceError(f"{path}: setting `{name}` has the wrong type")
    if not 1 <= values.get("parallel_jobs", 1) <= 64:
        raise WorkspaceError(f"{path}: parallel_jobs must lie between 1 and 64")
    return Workspace(root, Settings(**values))


def locate(explicit: Path | None = None, start: Path | None = None) -> Path | None:
    """The workspace to use: the given one, `$CAKE_WORKSPACE`, or the nearest `.cake` from `start` upwards; None if there is none.

    Above `start`, a folder that everyone may write (`/tmp`, say) is passed over: what lies there is somebody's, and its rules are not ours.
    """
    if explicit is not None:
        return explicit
    if named := os.environ.get("CAKE_WORKSPACE"):
        return Path(named)
    here = (start or Path.cwd()).resolve()
    folders = (here, *(folder for folder in here.parents if not folder.stat().st_mode & stat.S_IWOTH))
    return next((folder / FOLDER for folder in folders if (folder / FOLDER).is_dir()), None)


def locate_or_create(explicit: Path | None = None) -> Workspace:
    """The workspace to serve; made where none exists: in the given folder, else in `.cake` of the current one.

    Raises `WorkspaceError` if it can be neither found nor made.
    """
    return create(locate(explicit) or Path.cwd() / FOLDER)
