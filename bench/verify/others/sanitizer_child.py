"""One mutant, launched once on its first setting: what compute-sanitizer watches. `python3 -m bench.verify.others.sanitizer_child ROOT NAME`."""

from __future__ import annotations

import json
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.verify.silicon_child import Setting
from bench.verify.silicon_compare import differs
from cake_backend.judge.device.buffers import poison_pattern
from cake_backend.judge.device.driver import DriverError, Gpu
from cake_backend.judge.device.launcher import LaunchRefused, Module


def main() -> None:
    root, name = Path(sys.argv[1]), sys.argv[2]
    found: dict[str, Any]
    try:
        spec = json.loads((root / name / "case.json").read_text())
        gpu = Gpu.open(0)
        module = Module(gpu, lzma.decompress((root / name / "kernel.cubin.xz").read_bytes()))
        with np.load(root / "arguments" / f"{spec['subject']}.npz") as arguments:
            setting = Setting(gpu, module, spec["settings"][0], 0, arguments, poison_pattern(7))
        setting.reset()
        for launch in setting.launches:
            launch.enqueue(0)
        gpu.synchronize()
        wrong = differs(setting.outputs(), setting.want, spec["tolerance"]) or setting.damage()
        found = {"outcome": "mismatch" if wrong else "clean", "detail": wrong}
    except LaunchRefused as error:
        found = {"outcome": "refused", "detail": str(error)}
    except DriverError as error:
        found = {"outcome": "fault", "detail": str(error)}
    print("RESULT " + json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
