"""What the launcher hands to the tensor-map encoder."""

from __future__ import annotations

from typing import Any

import pytest

from cake_backend.judge.device import launcher


class Names:
    """Stands for a module of the bindings: every name is itself, types keep their value."""

    def __getattr__(self, name: str) -> Any:
        return (lambda value: value) if name.startswith("cuuint") else name if name.startswith("CU_") else Names()


@pytest.mark.parametrize(("dims", "strides", "given"), [((640,), (), (16,)), ((640, 8), (2560,), (2560,))], ids=["one dimension", "two"])
def test_the_encoder_is_never_given_an_empty_list_of_strides(
    monkeypatch: pytest.MonkeyPatch, dims: tuple[int, ...], strides: tuple[int, ...], given: tuple[int, ...]
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(launcher, "bindings", Names)
    monkeypatch.setattr(launcher, "call", lambda *arguments: seen.extend(arguments))
    box = (4,) * len(dims)
    launcher.encode_map({"dims": dims, "strides": strides, "box": box, "dtype": "f32", "swizzle": "none", "l2": 256, "fill": "zero"}, 4096)
    assert (seen[2], seen[4], seen[5], seen[6]) == (len(dims), list(dims), list(given), list(box))
