"""Cake IR: a typed, hardware-explicit language for GPU schedules. Knows no CUDA, no SQLite and no MCP."""

from cake_ir.frontend import Module, Specialised, Template, parse, specialise

__all__ = ["Module", "Specialised", "Template", "parse", "specialise"]
