"""Which tensors a program reads and which it writes."""

from __future__ import annotations

from cake_ir.program import Program

_WRITES = {"tma_store": "w", "bulk_store": "w", "store": "w", "tma_reduce": "rw", "atomic": "rw", "signal": "w"}


def modes(program: Program) -> dict[str, str]:
    """How each tensor is used: `in`, `out`, `inout` or `const`."""
    used: dict[str, set[str]] = {name: set() for name in program.tensors}
    for op in program.ops:
        tensor = op.attrs.get("tensor") or op.attrs.get("flags")
        if isinstance(tensor, str) and tensor in used:
            used[tensor] |= set(_WRITES.get(op.name, "r"))
    for s in program.schedulers.values():
        if s.counter is not None:
            used[s.counter] |= {"r", "w"}
    out = {}
    for name, how in used.items():
        written = "out" if "r" not in how else "inout"
        out[name] = written if "w" in how else "const" if program.tensors[name].const else "in"
    return out
