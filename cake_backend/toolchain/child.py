"""The process in which NVRTC runs: `python -m cake_backend.toolchain.child REQUEST`.

REQUEST is a folder with `source.cu` and `options.json`; the child writes `log.txt`, `kernel.cubin`, `kernel.ptx` and,
last, `done.json`. A compiler that hangs or crashes thus costs one process, never the server.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def compile_folder(folder: Path) -> None:
    """Compile `folder/source.cu` with the options of `folder/options.json`."""
    nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")  # a compiled module without stubs

    def get(size_of: Any, read: Any, program: Any) -> bytes:
        status, size = size_of(program)
        if int(status) != 0 or size == 0:
            return b""
        buffer = b" " * size
        return buffer if int(read(program, buffer)[0]) == 0 else b""

    options = [o.encode() for o in json.loads((folder / "options.json").read_text())]
    source = (folder / "source.cu").read_bytes()
    start = time.monotonic()
    status, program = nvrtc.nvrtcCreateProgram(source, b"kernel.cu", 0, [], [])
    if int(status) != 0:
        raise RuntimeError(f"nvrtcCreateProgram: {status!r}")
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    seconds = time.monotonic() - start
    log = get(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    (folder / "log.txt").write_bytes(log.rstrip(b"\0 \n"))
    (folder / "kernel.ptx").write_bytes(get(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0"))
    if int(status) == 0:
        (folder / "kernel.cubin").write_bytes(get(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program))
    (folder / "done.json").write_text(json.dumps({"status": int(status), "name": status.name, "seconds": seconds}))


if __name__ == "__main__":
    compile_folder(Path(sys.argv[1]))
