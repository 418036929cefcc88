"""The tensor maps that a kernel takes: one for each distinct (tensor, box, swizzle), numbered by first use."""

from __future__ import annotations

from cake_backend.cuda.emitter import Names
from cake_backend.manifest import TensorMap


class MapTable:
    """Collects tensor maps while the body is emitted."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.maps: list[TensorMap] = []
        self.params: list[str] = []

    def use(self, tensor: str, dtype: str, box: tuple[int, ...], swizzle: str | None) -> str:
        """The C name of the map with this box (innermost first), made at its first use."""
        wanted = TensorMap(tensor, dtype, len(box), box, swizzle or "none")
        if wanted not in self.maps:
            self.maps.append(wanted)
            self.params.append(self._names.take(f"{tensor}_map"))
        return self.params[self.maps.index(wanted)]
