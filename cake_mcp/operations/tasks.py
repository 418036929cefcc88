"""The tasks candidates are judged on: the corpus, and the workspace's own files, which are trusted because a person put them there."""

import hashlib
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..workspace import Workspace
from .misuse import Misuse, unknown

if TYPE_CHECKING:
    from cake_backend.task import Task


def known(workspace: Workspace | None) -> dict[str, "Task"]:
    """Every task by name. A workspace file `tasks/NAME.py` defines `task` or `tasks`; its names win over the corpus.

    Raises `Misuse` if a file of the workspace does not define a task.
    """
    import cake_kernels

    found: dict[str, Task] = dict(cake_kernels.tasks())
    if workspace is not None and (workspace.root / "tasks").is_dir():
        for path in sorted((workspace.root / "tasks").glob("*.py")):
            found.update(_from_file(path))
    return found


def get(workspace: Workspace | None, name: str) -> "Task":
    """The task of that name. Raises `Misuse`, naming the nearest, if there is none."""
    tasks = known(workspace)
    if name not in tasks:
        raise unknown("task", name, tasks)
    return tasks[name]


def digest(task: "Task") -> str:
    """A digest of what the task asks: equal tasks, equal digest."""
    described = getattr(task, "digest", None)
    if callable(described):
        return str(described())
    return hashlib.sha256(repr(task).encode()).hexdigest()


def _from_file(path: Path) -> dict[str, "Task"]:
    from cake_backend.task import Task

    try:
        names: dict[str, Any] = runpy.run_path(str(path))
    except Exception as error:  # the user's own code, at the boundary where it is loaded
        raise Misuse(f"tasks/{path.name} of the workspace could not be loaded: {type(error).__name__}: {error}") from error
    tasks = [value for value in (names.get("task"), *names.get("tasks", ())) if isinstance(value, Task)]
    if not tasks:
        raise Misuse(f"tasks/{path.name} of the workspace defines no `task`")
    return {task.name: task for task in tasks}
