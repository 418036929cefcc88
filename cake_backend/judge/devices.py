"""Which GPUs are here? Asked in a child process, because whoever initialises CUDA cannot undo it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cake_backend.executors.local import worker_environment
from cake_backend.executors.process import run_group

PROBE_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Found:
    """The devices (see `cake_backend.judge.device.driver.describe`), or why there are none."""

    devices: tuple[dict[str, Any], ...]
    reason: str


@lru_cache(maxsize=1)
def find_devices() -> Found:
    """The devices of this machine; asked once per process."""
    ended = run_group([sys.executable, "-m", "cake_backend.judge.probe"], timeout=PROBE_TIMEOUT, env=worker_environment())
    try:
        answer = json.loads(ended.output_tail.strip().splitlines()[-1])
        return Found(tuple(answer["devices"]), str(answer["reason"]))
    except (ValueError, KeyError, IndexError, TypeError):
        return Found((), f"the probe ended with {ended.describe()}")


def target_of(device: dict[str, Any]) -> str:
    """The exact architecture of a device, such as "sm_90a" (the `a` forms exist from 9.0 on)."""
    major, minor = device["capability"]
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def runs_on(target: str, device: dict[str, Any]) -> bool:
    """Whether a cubin for `target` loads on the device: the same architecture, or an older minor one of the same major without suffix."""
    own = target_of(device)
    if target.rstrip("af") == target:
        digits = target.removeprefix("sm_")
        return int(digits[:-1]) == device["capability"][0] and int(digits[-1]) <= device["capability"][1]
    return target.rstrip("af") == own.rstrip("af")
