"""A process that asks cases in turn: `python3 -m bench.hardware.child CUBIN QUESTION CASE..` prints each answer as one JSON line.

It ends at the first fault or kernel that does not end: what the device does then in this process says nothing any more.
"""

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
    cubin, name, *cases = sys.argv[1:]
    bench = None
    for case in cases:
        found: dict[str, Any] = {"case": case}
        try:
            bench = bench or Bench(Path(cubin).read_bytes())
            found |= {"gpu": bench.gpu.info["name"], **questions()[name].answer(bench, case)}
        except Hanging as error:
            found |= {"hangs": str(error)}
        except DriverError as error:
            found |= {"fault": error.code, "in": error.call}
        print(json.dumps(found), flush=True)
        if "hangs" in found or "fault" in found:
            break
    os._exit(0)  # a kernel that never ends would hold the interpreter's own end


if __name__ == "__main__":
    main()
