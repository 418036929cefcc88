"""The cost model's figures for a task's benchmark shapes, always labelled as predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cake_backend.judge.routine import Routine
from cake_backend.task import Task

PREFERRED = ("H200-SXM", "A100-SXM4-80GB", "L40S", "B200-SXM", "RTX-5090")


def board_for(target: str, gpu_name: str | None = None) -> str | None:
    """The board to predict for: the GPU that is here if it is known by name, else a common one of the target's architecture."""
    from cake_ir.targets.devices import DEVICES

    if gpu_name is not None:
        short = gpu_name.removeprefix("NVIDIA ").replace("GeForce ", "").replace(" ", "-")
        for name, board in DEVICES.items():
            if board.target == target and (name == short or name.startswith(short + "-")):
                return name
    ranked = sorted(DEVICES, key=lambda n: PREFERRED.index(n) if n in PREFERRED else len(PREFERRED))
    return next((name for name in ranked if DEVICES[name].target == target), None)


def predict_shapes(
    routine: Routine, task: Task, compiled: Mapping[str, Any], *, device: str | None, gpu_name: str | None = None
) -> tuple[dict[str, Any] | None, str | None]:
    """(prediction, finding). The first is None where there is nothing to predict for; the finding says what was withheld and why."""
    from cake_backend.cost.predict import predict

    program = routine.program
    if program is None:
        return None, f"the {len(routine.calls)} launches of a plan are not predicted in this build"
    board = device or board_for(program.target, gpu_name)
    shapes = [s for s in task.specialised(program.tunables) if s.kind == "bench"] or list(task.specialised(program.tunables))[:1]
    if board is None:
        return None, f"no board with architecture {program.target} is known, so nothing is predicted"
    if not shapes:
        return None, "the parameters leave no shape of the task to predict"
    rows, withheld = [], ""
    for shape in shapes:
        layouts = task.layouts(shape.axes)
        extents = {(name, d): n for name in program.tensors if name in layouts for d, n in enumerate(layouts[name].shape)}
        made = predict(program, task.scalar_values(shape.axes), device=board, build=compiled, extents=extents)
        row = {"shape": shape.name, "axes": dict(shape.axes), **made.to_json()}
        rows.append(row)
        if not made.covered and not withheld:
            withheld = "; ".join(w.text if hasattr(w, "text") else str(w) for w in made.withheld[:2])
    head = max(rows, key=lambda r: ((r.get("seconds") or {}).get("mid") or 0.0, r["shape"]))
    seconds = head.get("seconds") or {}
    out = {
        "label": "predicted",
        "device": board,
        "shape": head["shape"],
        "seconds": seconds.get("mid"),
        "seconds_low": seconds.get("low"),
        "seconds_high": seconds.get("high"),
        "binding": head.get("binding"),
        "covered": all(r.get("covered") for r in rows),
        "shapes": rows,
    }
    return out, f"the cost model withholds a rank: {withheld}" if withheld else None
