"""The tasks candidates are judged on: the corpus, and the workspace's own files, which are trusted because a person put them there."""

import hashlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from ..workspace import Workspace
from .misuse import Misuse, unknown

if TYPE_CHECKING:
    from cake_backend.task import Task


def known(workspace: Workspace | None) -> "dict[str, Task]":
    """Every task by name; those of the workspace's `tasks/` folder win over the corpus. Files that do not load are left out."""
    return _known(workspace)[0]


def get(workspace: Workspace | None, name: str) -> "Task":
    """The task of that name. Raises `Misuse`, naming the nearest or the file that does not load, if there is none."""
    tasks, faults = _known(workspace)
    if name in tasks:
        return tasks[name]
    broken = next((fault for path, fault in faults.items() if path.stem == name), None)
    if broken is not None:
        raise Misuse(f"task `{name}` of the workspace does not load: {broken}")
    raise unknown("task", name, tasks)


def digest(task: "Task") -> str:
    """A digest of what the task asks: its data, and the sources of the files that define its oracle and its inputs."""
    state = hashlib.sha256()
    plain = (
        task.name,
        task.axes,
        task.tensors,
        task.scalars,
        task.shapes,
        task.tolerances,
        task.domain,
        task.row_dims,
        task.flops,
        task.unit,
    )
    state.update(repr(plain).encode())
    functions = [task.oracle, *task.witness.values(), *(distribution.make for distribution in task.distributions)]
    for path in sorted({inspect.getsourcefile(inspect.unwrap(function)) or "" for function in functions if inspect.isfunction(function)}):
        if path and Path(path).exists():
            state.update(Path(path).read_bytes())
    return state.hexdigest()


def _known(workspace: Workspace | None) -> "tuple[dict[str, Task], dict[Path, str]]":
    import cake_kernels

    found: dict[str, Task] = dict(cake_kernels.tasks())
    faults: dict[Path, str] = {}
    if workspace is not None:
        from cake_backend.task_files import load_tasks

        own, faults = load_tasks(workspace.root / "tasks")
        found.update(own)
    return found, faults
