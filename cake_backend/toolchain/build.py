"""What one compilation produced: the cubin, the resources of each kernel and the assembler's remarks."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes from a multiprocessor, as the assembler reports it (bytes unless said).

    `registers` is the launch value per thread; a kernel with `setmaxnreg` may use more in some warps.
    """

    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    static_smem: int = 0
    barriers: int = 0

    def worst(self, other: Resources) -> Resources:
        """The larger of both in every field."""
        return Resources(*(max(getattr(self, f), getattr(other, f)) for f in self.__slots__))

    def to_json(self) -> dict[str, int]:
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True)
class Remark:
    """One finding of the compiler or the assembler.

    `code` is the assembler's own ("C7510") or one of ours for what it says without a code ("spill", "error", "warning").
    `generated_line` counts from 1 in the text that was compiled; None where the compiler named no place.
    `line` is the schedule's line where the finder knows it by itself. `serialises` marks the family after which asynchronous MMAs run one
    at a time.
    """

    code: str
    text: str
    severity: str = "note"
    entry: str | None = None
    generated_line: int | None = None
    serialises: bool = False
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True)
class Build:
    """The outcome of `compile_cuda`; a compile that was refused or ran out of time is a Build with `ok` false, not an exception.

    `status` is one of "ok", "error" (the compiler refused), "timeout", "crash" (the compiler's process died) and
    "unavailable" (no NVRTC on this machine).
    """

    ok: bool
    status: str
    target: str
    options: tuple[str, ...]
    compiler: str
    log: str = ""
    seconds: float = 0.0
    cubin: bytes | None = None
    entries: dict[str, Resources] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    cached: bool = False
    key: str = ""

    @property
    def resources(self) -> Resources:
        """The worst over all kernels of the module."""
        out = Resources()
        for entry in self.entries.values():
            out = out.worst(entry)
        return out

    @property
    def serialised(self) -> bool:
        """Whether some asynchronous MMA was serialised; such a build is right but slow, and must never be timed silently."""
        return any(r.serialises for r in self.remarks)

    def with_cached(self) -> Build:
        return replace(self, cached=True)

    def to_json(self, *, with_cubin: bool = False) -> dict[str, Any]:
        """A JSON value; the cubin (base64) only on request."""
        out: dict[str, Any] = {
            "ok": self.ok,
            "status": self.status,
            "target": self.target,
            "options": list(self.options),
            "compiler": self.compiler,
            "log": self.log,
            "seconds": self.seconds,
            "entries": {name: entry.to_json() for name, entry in self.entries.items()},
            "resources": self.resources.to_json(),
            "remarks": [r.to_json() for r in self.remarks],
            "serialised": self.serialised,
            "cached": self.cached,
            "key": self.key,
            "cubin_bytes": len(self.cubin) if self.cubin is not None else None,
        }
        if with_cubin:
            out["cubin"] = base64.b64encode(self.cubin).decode() if self.cubin is not None else None
        return out

    @staticmethod
    def from_json(data: dict[str, Any]) -> Build:
        """The inverse of `to_json(with_cubin=True)`."""
        cubin = data.get("cubin")
        return Build(
            ok=data["ok"],
            status=data["status"],
            target=data["target"],
            options=tuple(data["options"]),
            compiler=data["compiler"],
            log=data["log"],
            seconds=data["seconds"],
            cubin=base64.b64decode(cubin) if cubin is not None else None,
            entries={name: Resources(**entry) for name, entry in data["entries"].items()},
            remarks=tuple(Remark(**r) for r in data["remarks"]),
            cached=data["cached"],
            key=data["key"],
        )
