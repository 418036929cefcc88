"""`python -m cake_backend.judge.probe`: the CUDA devices of this machine as JSON, found out in a process that ends at once."""

from __future__ import annotations

import json
import sys

from cake_backend.judge.device.driver import DriverError, NoDriver, call, describe, device_count


def probe() -> dict[str, object]:
    """`devices` as `describe` gives them, or `reason` for having none."""
    try:
        return {"devices": [describe(call("cuDeviceGet", i), i) for i in range(device_count())], "reason": ""}
    except (NoDriver, DriverError) as error:
        return {"devices": [], "reason": str(error)}


if __name__ == "__main__":
    json.dump(probe(), sys.stdout)
