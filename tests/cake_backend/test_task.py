"""Tasks as such: binding by exact names, shapes, and files of a workspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import cake_kernels
from cake_backend.task import Distribution, Scalar, Shape, Task, TaskError, Tensor, Tolerance, numpy_dtype
from cake_backend.task_files import load_task_file, load_tasks

GEMM = cake_kernels.tasks()["gemm"]
KMEANS = cake_kernels.tasks()["kmeans_assign"]


@dataclass(frozen=True)
class P:
    name: str
    kind: str = "tma"
    rank: int = 2
    dtype: str | None = "bf16"


GOOD = [P("A"), P("B"), P("C", "gmem"), P("M", "scalar", 0, "i32"), P("N", "scalar", 0, "i32"), P("K", "scalar", 0, "i32")]


def test_exact_names_bind() -> None:
    assert GEMM.check_parameters(GOOD) == ()
    assert GEMM.check_parameters([*GOOD[:2], replace(GOOD[2], dtype=None), *GOOD[3:]]) == (), "an undeclared dtype is the task's"


def test_only_a_floating_input_widens() -> None:
    assert Tensor((4,), "bf16", widens=True).widens and GEMM.tensors["A"].widens
    for dtype, mode in (("i32", "in"), ("bf16", "out"), ("e4m3", "in")):
        with pytest.raises(TaskError, match="only a floating input does"):
            Tensor((4,), dtype, mode, widens=True)


@pytest.mark.parametrize(
    ("change", "message", "nearest"),
    [
        (P("a"), "unknown parameter `a` for task `gemm`, nearest is `A`", "A"),
        (P("C_out", "gmem"), "unknown parameter `C_out` for task `gemm`, nearest is `C`", "C"),
        (P("A", rank=3), "`A` has rank 2 in task `gemm`, found rank 3", None),
        (P("A", dtype="f16"), "`A` is bf16 in task `gemm`, found f16", None),
        (P("A", "scalar", 0, "i32"), "`A` is a tensor of rank 2 in task `gemm`, found a scalar", None),
        (P("M"), "`M` is a scalar of type i32 in task `gemm`, found a tensor", None),
        (P("M", "scalar", 0, "f32"), "`M` is i32 in task `gemm`, found f32", None),
    ],
)
def test_a_parameter_that_does_not_fit_is_named_with_what_was_expected(change: P, message: str, nearest: str | None) -> None:
    (fault,) = GEMM.check_parameters([p for p in GOOD if p.name != change.name] + [change])
    assert (fault.message, fault.nearest, fault.parameter) == (message, nearest, change.name)


def test_an_output_that_is_missing_is_named_unless_it_is_optional() -> None:
    (fault,) = GEMM.check_parameters([p for p in GOOD if p.name != "C"])
    assert fault.message == "no parameter `C`, an output of task `gemm`"
    given = [P("X", rank=3), P("MU", rank=3), P("MU_SQ", dtype="f32"), P("IDX", "gmem", 2, "i32")]
    assert KMEANS.check_parameters(given) == (), "DIST may be left out"


def test_an_input_that_is_not_used_is_no_fault() -> None:
    assert GEMM.check_parameters([p for p in GOOD if p.name != "B"]) == ()


def test_compile_time_axes_exclude_shapes() -> None:
    rms = cake_kernels.tasks()["rmsnorm"]
    kept = rms.specialised({"D": 4096, "WARPS": 4})
    assert kept and all(s.axes["D"] == 4096 for s in kept) and len(kept) < len(rms.shapes)
    assert GEMM.specialised({"BM": 128, "N": 3}) == GEMM.shapes, "N is a run-time scalar: a tunable of that name says nothing"


def test_work_counts_bytes_once() -> None:
    assert GEMM.work({"M": 4, "N": 8, "K": 16}) == {"flops": 1024, "bytes_read": 2 * (64 + 128), "bytes_written": 64}


def test_a_generator_that_returns_something_else_is_refused() -> None:
    wrong = Distribution("wrong", lambda rng, axes: {"A": np.zeros((2, 2)), "B": np.zeros((2, 2))})
    with pytest.raises(TaskError, match=r"makes `A` as float64\[2, 2\], expected bfloat16\[4, 16\]"):
        GEMM.inputs({"M": 4, "N": 8, "K": 16}, wrong, 0)
    with pytest.raises(TaskError, match="expected \\['A', 'B'\\]"):
        GEMM.inputs({"M": 4, "N": 8, "K": 16}, Distribution("none", lambda rng, axes: {}), 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerances": {}}, "tolerances for"),
        ({"shapes": (Shape("s", {"M": 1}),)}, "axes are"),
        ({"shapes": ()}, "needs a shape"),
        ({"tolerances": {"C": Tolerance(reason="x", compare="argmin")}}, "no witness"),
        ({"scalars": {"M": Scalar("i32", "Q")}}, "unknown name `Q`"),
    ],
)
def test_a_task_that_contradicts_itself_is_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(GEMM, **change)


def test_unknown_names_of_shapes_come_with_the_nearest() -> None:
    with pytest.raises(TaskError, match="unknown shape `square_4095`, nearest is `square_4096`"):
        GEMM.shape("square_4095")


@pytest.mark.parametrize("name", ["bool", "i8", "u8", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "e4m3", "e5m2", "ue8m0"])
def test_every_dtype_has_a_numpy_twin_of_its_size(name: str) -> None:
    from cake_backend.manifest import DTYPE_BYTES

    assert numpy_dtype(name).itemsize == DTYPE_BYTES[name]


SCALE = '''
"""y = 2 x"""
import numpy as np
from cake_backend.task import Distribution, Scalar, Shape, Task, Tensor, Tolerance

TASK = Task(
    name="double",
    doc="y = 2 x",
    axes=("N",),
    tensors={"X": Tensor(("N",), "f32"), "Y": Tensor(("N",), "f32", "out")},
    scalars={"N": Scalar("i32", "N")},
    shapes=(Shape("small", {"N": 100}, "sim"),),
    distributions=(Distribution("normal", lambda rng, axes: {"X": rng.standard_normal(axes["N"], np.float32)}),),
    tolerances={"Y": Tolerance(reason="doubling is exact", compare="exact")},
    oracle=lambda inputs, axes, rows: {"Y": 2.0 * (inputs["X"] if rows is None else inputs["X"][rows]).astype(np.float64)},
    flops="N",
)
'''


def test_a_file_of_a_workspace_is_a_task(tmp_path: Path) -> None:
    (tmp_path / "double.py").write_text(SCALE)
    (tmp_path / "_private.py").write_text("raise SystemExit")
    (tmp_path / "broken.py").write_text("import nothing_of_that_name")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "twice.py").write_text(SCALE)
    tasks, faults = load_tasks(tmp_path)
    assert set(tasks) == {"double"} and isinstance(tasks["double"], Task)
    assert {p.name for p in faults} == {"broken.py", "empty.py", "twice.py"}
    assert "nothing_of_that_name" in faults[tmp_path / "broken.py"]
    assert "expected a `Task` under the name `TASK`" in faults[tmp_path / "empty.py"]


def test_a_folder_that_is_not_there_has_no_tasks(tmp_path: Path) -> None:
    assert load_tasks(tmp_path / "none") == ({}, {})


def test_a_task_file_can_be_admitted(tmp_path: Path) -> None:
    from cake_backend.judge.admission import admit

    (tmp_path / "double.py").write_text(SCALE)
    task = load_task_file(tmp_path / "double.py")
    assert admit(task).ok


def test_a_task_whose_data_make_the_answer_trivial_is_not_admitted(tmp_path: Path) -> None:
    from cake_backend.judge.admission import admit

    (tmp_path / "double.py").write_text(SCALE)
    task = load_task_file(tmp_path / "double.py")
    zero = replace(task, distributions=(Distribution("zeros", lambda rng, axes: {"X": np.zeros(axes["N"], np.float32)}),))
    assert any("all zeros would pass" in fault for fault in admit(zero).faults)
    loose = replace(task, tolerances={"Y": Tolerance(reason="wide open", atol=100.0)})
    assert len(admit(loose).faults) >= 5


def test_tensor_declarations_are_checked() -> None:
    with pytest.raises(TaskError):
        Tensor(("N",), "float32")
    with pytest.raises(TaskError):
        Tensor(("N",), "f32", "output")
