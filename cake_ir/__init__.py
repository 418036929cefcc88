"""Cake IR: a typed, hardware-explicit language for GPU schedules. Knows no CUDA, no SQLite and no MCP."""

from cake_ir import native

native.install()  # before anything that may come from it

from cake_ir.frontend import Module, Specialised, Template, parse, specialise  # noqa: E402 - behind the line above

__all__ = ["Module", "Specialised", "Template", "parse", "specialise"]
