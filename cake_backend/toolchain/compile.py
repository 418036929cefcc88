"""`compile_cuda`: one string of CUDA C++ to a cubin for an exact target, on any machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path

from cake_backend.executors.process import run_group
from cake_backend.toolchain.build import Build, Remark
from cake_backend.toolchain.cache import BuildCache, build_key, default_folder
from cake_backend.toolchain.report import parse_remarks, parse_resources

TARGET = re.compile(r"sm_\d{2,3}[af]?")
DEFAULT_TIMEOUT = 120.0


@lru_cache(maxsize=1)
def nvrtc_version() -> str:
    """The compiler's name and exact release, or "nvrtc unavailable"; read from the wheel's metadata, so nothing is loaded."""
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12"):
        try:
            return f"nvrtc {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "nvrtc unavailable"


def compile_options(target: str, *, maxreg: int | None = None, defines: dict[str, str] | None = None) -> tuple[str, ...]:
    """The complete option list for a target such as "sm_90a"."""
    if not TARGET.fullmatch(target):
        raise ValueError(f"expected a target such as sm_90a, found {target!r}")
    options = [
        f"--gpu-architecture={target}",
        "--std=c++17",
        "-default-device",
        "-lineinfo",
        "--ptxas-options=-v",
        "--diag-suppress=177",  # declared but never referenced: generated code names every ring it derives
    ]
    if maxreg is not None:
        options.append(f"--maxrregcount={maxreg}")
    options += [f"--define-macro={name}={value}" for name, value in sorted((defines or {}).items())]
    return tuple(options)


def compile_cuda(
    source: str,
    target: str,
    *,
    maxreg: int | None = None,
    defines: dict[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    cache: BuildCache | bool | None = True,
) -> Build:
    """Compile CUDA C++ text for `target` in a child process that is killed after `timeout` seconds.

    `cache` is a BuildCache, True for the user's own, or False/None for none. Only finished compilations (good or refused) are
    kept: a time-out says more about the machine than about the text. Raises ValueError for a target that is no target.
    """
    options = compile_options(target, maxreg=maxreg, defines=defines)
    compiler = nvrtc_version()
    key = build_key(source, options, compiler)
    store = BuildCache(default_folder()) if cache is True else (cache or None)
    if store is not None and (hit := store.get(key)) is not None:
        return hit

    def failed(status: str, log: str, seconds: float) -> Build:
        remark = Remark(status, log.strip().splitlines()[-1] if log.strip() else status, severity="error")
        return Build(False, status, target, options, compiler, log=log, seconds=seconds, remarks=(remark,), key=key)

    with tempfile.TemporaryDirectory(prefix="cake-nvrtc-") as name:
        folder = Path(name)
        (folder / "source.cu").write_text(source)
        (folder / "options.json").write_text(json.dumps(options))
        start = time.monotonic()
        ended = run_group(
            [sys.executable, "-m", "cake_backend.toolchain.child", name], timeout=timeout, env=_child_environment()
        )
        seconds = time.monotonic() - start
        if ended.timed_out:
            return failed("timeout", f"the compiler did not finish within {timeout:g} s", seconds)
        if not (folder / "done.json").exists():
            output = ended.output_tail
            missing = "DynamicLibNotFound" in output or "ModuleNotFoundError" in output
            log = output or f"the compiler's process ended with {ended.describe()}"
            return failed("unavailable" if missing else "crash", log, seconds)
        done = json.loads((folder / "done.json").read_text())
        log = (folder / "log.txt").read_text(errors="replace")
        ptx = (folder / "kernel.ptx").read_text(errors="replace")
        ok = done["status"] == 0
        remarks = parse_remarks(log, ptx)
        if not ok and not any(r.severity == "error" for r in remarks):
            remarks += (Remark("error", _last_line(log) or done["name"], severity="error"),)
        build = Build(
            ok=ok,
            status="ok" if ok else "error",
            target=target,
            options=options,
            compiler=compiler,
            log=log,
            seconds=done["seconds"],
            cubin=(folder / "kernel.cubin").read_bytes() if ok else None,
            entries=parse_resources(log),
            remarks=remarks,
            key=key,
        )
    if store is not None:
        store.put(key, build)
    return build


def _child_environment() -> dict[str, str]:
    """The parent's environment with this very copy of the packages first on the child's path."""
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root + (os.pathsep + inherited if inherited else "")}


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
