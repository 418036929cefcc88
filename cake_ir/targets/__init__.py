"""GPU architectures and boards: what each one has, and what one instruction form is worth on it.

Limits are Python literals (checked against the measured tables by a test), so importing this costs next to nothing; the
instruction table is parsed the first time ``instruction`` is called.
"""

from __future__ import annotations

from functools import cache

from cake_ir.targets import sm_80, sm_89, sm_90a, sm_100a, sm_103a, sm_120a, sm_121a
from cake_ir.targets.architecture import Device, Target
from cake_ir.targets.devices import DEVICES
from cake_ir.targets.instructions import Verdict, instruction

__all__ = [
    "DEVICES", "TARGETS", "Device", "Target", "UnknownDevice", "UnknownTarget", "Verdict", "device", "instruction", "strictest", "target",
    "targets_with",
]  # fmt: skip

_ALL = tuple(module.TARGET for module in (sm_80, sm_89, sm_90a, sm_100a, sm_103a, sm_120a, sm_121a))

TARGETS: tuple[str, ...] = tuple(t.name for t in _ALL)

_BY_NAME = {t.name: t for t in _ALL}

# What people write for an architecture: product names, and the plain spelling whose cubin lacks the `a` instructions.
_NICKNAMES = {
    "ampere": "sm_80", "a100": "sm_80", "ada": "sm_89", "l40s": "sm_89", "hopper": "sm_90a", "h100": "sm_90a", "h200": "sm_90a",
    "sm_90": "sm_90a", "sm90": "sm_90a", "sm90a": "sm_90a", "blackwell": "sm_100a", "b200": "sm_100a", "sm_100": "sm_100a",
    "sm100": "sm_100a", "b300": "sm_103a", "sm_103": "sm_103a", "sm103": "sm_103a", "sm_120": "sm_120a", "sm120": "sm_120a",
    "sm_121": "sm_121a", "sm121": "sm_121a", "sm80": "sm_80", "sm89": "sm_89", "sm_86": "sm_80", "sm_110a": "sm_100a",
}  # fmt: skip


class UnknownTarget(KeyError):
    """A target outside the seven; ``nearest`` is the closest name or ``None``."""

    def __init__(self, name: str) -> None:
        import difflib

        self.name = name
        low = name.lower()
        close = difflib.get_close_matches(low, [*TARGETS, *_NICKNAMES], n=1, cutoff=0.5)
        self.nearest = _NICKNAMES.get(low) or (_NICKNAMES.get(close[0], close[0]) if close else None)
        hint = f", did you mean {self.nearest}" if self.nearest else ""
        super().__init__(f"unknown target {name}{hint}; the targets are {', '.join(TARGETS)}")

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownDevice(KeyError):
    """A board outside the table; ``nearest`` is the closest name or ``None``."""

    def __init__(self, name: str) -> None:
        import difflib

        self.name = name
        close = difflib.get_close_matches(name.upper(), DEVICES, n=1, cutoff=0.4)
        self.nearest = close[0] if close else None
        hint = f", did you mean {self.nearest}" if self.nearest else ""
        super().__init__(f"unknown device {name}{hint}; the devices are {', '.join(DEVICES)}")

    def __str__(self) -> str:
        return str(self.args[0])


def target(name: str) -> Target:
    """The architecture called ``name``; raises ``UnknownTarget`` with the nearest name."""
    found = _BY_NAME.get(name)
    if found is None:
        raise UnknownTarget(name)
    return found


def device(name: str) -> Device:
    """The board called ``name``; raises ``UnknownDevice`` with the nearest name."""
    found = DEVICES.get(name)
    if found is None:
        raise UnknownDevice(name)
    return found


@cache
def targets_with(feature: str) -> tuple[str, ...]:
    """Names of the targets that have ``feature``, oldest first: what a refusal offers."""
    return tuple(t.name for t in _ALL if feature in t.features)


_TIGHTEN = (
    "smem_per_sm", "smem_optin", "max_regs", "max_threads", "threads_per_sm", "warps_per_sm", "blocks_per_sm", "named_barriers",
    "named_barriers_per_sm", "cluster_max", "cluster_max_nonportable", "tmem_columns", "tmem_lanes", "param_bytes", "vector_bytes",
)  # fmt: skip


def strictest(names: tuple[str, ...], limit: str) -> tuple[int, str]:
    """The smallest value of ``limit`` among the targets ``names`` and the target it comes from.

    For schedules written for several targets at once: a diagnostic names the one that refuses. Raises ``ValueError`` for
    a field that is not a limit.
    """
    if limit not in _TIGHTEN:
        raise ValueError(f"{limit} is not a limit of a target")
    value, name = min((getattr(target(n), limit), i) for i, n in enumerate(names))
    return value, names[name]
