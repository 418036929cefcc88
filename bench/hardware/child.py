"""The process of one case: `python3 -m bench.hardware.child CUBIN QUESTION CASE` prints its answer as one JSON line."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from bench.hardware.device import Bench, Hanging
from bench.hardware.questions import questions
from cake_backend.judge.device.driver import DriverError


def main() -> None:
    cubin, name, case = sys.argv[1:4]
    found: dict[str, Any] = {}
    try:
        bench = Bench(Path(cubin).read_bytes())
        found = {"gpu": bench.gpu.info["name"], **questions()[name].answer(bench, case)}
    except Hanging as error:
        found |= {"hangs": str(error)}
    except DriverError as error:
        found |= {"fault": error.code, "in": error.call}
    print(json.dumps(found), flush=True)
    os._exit(0)  # a kernel that never ends would hold the interpreter's own end


if __name__ == "__main__":
    main()
