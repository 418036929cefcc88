"""Tasks as Python files: those that ship with Cake, and those a person keeps in the `tasks/` folder of a workspace.

Task files are trusted code of the workspace's owner. No tool writes them.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from cake_backend.task import Task, TaskError


def load_task_file(path: Path) -> Task:
    """Execute one file and return the `Task` it binds to the name `TASK`; TaskError says what is wrong with the file."""
    module_name = f"cake_workspace_task_{path.stem}_{abs(hash(str(path.resolve()))):x}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise TaskError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickling look a module up by its name
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may raise anything, and one bad file must not hide the others
        del sys.modules[module_name]
        raise TaskError(f"{path}: {type(error).__name__}: {error}") from error
    task = getattr(module, "TASK", None)
    if not isinstance(task, Task):
        raise TaskError(f"{path}: expected a `Task` under the name `TASK`, found {type(task).__name__}")
    return task


def load_tasks(folder: Path) -> tuple[dict[str, Task], dict[Path, str]]:
    """All tasks of a folder by name, and what is wrong with the files that could not be loaded."""
    tasks: dict[str, Task] = {}
    faults: dict[Path, str] = {}
    for path in sorted(folder.glob("*.py")) if folder.is_dir() else ():
        if path.name.startswith("_"):
            continue
        try:
            task = load_task_file(path)
        except TaskError as error:
            faults[path] = str(error)
            continue
        if task.name in tasks:
            faults[path] = f"{path}: a second task named `{task.name}`"
        else:
            tasks[task.name] = task
    return tasks, faults
