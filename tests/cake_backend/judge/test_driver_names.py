"""Every name that the device code asks the driver bindings for exists in the installed bindings; no GPU is needed to know that."""

from __future__ import annotations

import ast
import ctypes
from pathlib import Path

import pytest

import cake_backend.judge.device as device
from cake_backend.judge.device.driver import _ATTRIBUTES, bindings
from cake_backend.judge.device.launcher import _CTYPES, _MAP_TYPES
from cake_backend.manifest import CTYPES, DTYPE_BYTES

d = bindings()
SOURCES = [*Path(device.__path__[0]).glob("*.py"), Path(device.__path__[0]).parent / "worker.py", Path(device.__path__[0]).parent / "probe.py"]


def called() -> set[str]:
    """First arguments of `call(...)` in the device code, loops over names included."""
    names = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cu") and node.value[2:3].isupper():
                names.add(node.value)
    return names


def test_every_driver_function_exists() -> None:
    names = called()
    assert {"cuInit", "cuMemAlloc", "cuTensorMapEncodeTiled", "cuGraphLaunch", "cuOccupancyMaxActiveClusters"} <= names
    assert not [n for n in names if not hasattr(d, n)]


def test_every_attribute_and_enumerator_exists() -> None:
    wanted = [(d.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{a}") for a in (*_ATTRIBUTES.values(), "COMPUTE_CAPABILITY_MAJOR")]
    wanted += [(d.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{t}") for t in _MAP_TYPES.values()]
    wanted += [(d.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{s}") for s in ("NONE", "32B", "64B", "128B")]
    wanted += [(d.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{s}") for s in ("NONE", "L2_64B", "L2_128B", "L2_256B")]
    wanted += [(d.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{s}") for s in ("NONE", "NAN_REQUEST_ZERO_FMA")]
    wanted += [(d.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{a}") for a in ("NUM_REGS", "LOCAL_SIZE_BYTES", "SHARED_SIZE_BYTES")]
    wanted += [(d.CUlimit, "CU_LIMIT_PERSISTING_L2_CACHE_SIZE"), (d.CUstreamCaptureMode, "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL")]
    assert not [name for enum, name in wanted if not hasattr(enum, name)]
    assert set(_MAP_TYPES) == set(DTYPE_BYTES) and set(_CTYPES) == set(CTYPES)


def test_a_launch_configuration_takes_its_attributes() -> None:
    config, attribute = d.CUlaunchConfig(), d.CUlaunchAttribute()
    attribute.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = 2, 1, 1
    config.attrs, config.numAttrs = [attribute], 1
    config.gridDimX, config.sharedMemBytes, config.hStream = 264, 230464, 7
    assert (config.numAttrs, config.attrs[0].value.clusterDim.x, config.gridDimX, int(config.hStream)) == (1, 2, 264, 7)


def test_a_tensor_map_has_the_size_and_alignment_of_its_parameter() -> None:
    tensor_map = d.CUtensorMap()
    assert int(tensor_map.getPtr()) > 0
    assert ctypes.sizeof(ctypes.c_uint64) * 16 == 128


@pytest.mark.parametrize("name", ["cuda.bindings.driver", "cuda.bindings.nvrtc"])
def test_bindings_import_without_a_driver(name: str) -> None:
    import importlib

    assert importlib.import_module(name)
