"""The walk: role programs executed for concrete parameters, yielding evaluated operations to a reading.

`compile_roles` turns a program into generators; an `Agent` is one of them with its place; `drive` advances agents in the canonical order
(each until it blocks), asking a machine to execute every step. The machine owns all synchronisation state.
"""

from cake_ir.walk.agents import Agent, Machine, Stuck, WalkLimit, drive
from cake_ir.walk.code import Context, Event, OpCode, RoleCode, compile_roles

__all__ = ["Agent", "Context", "Event", "Machine", "OpCode", "RoleCode", "Stuck", "WalkLimit", "compile_roles", "drive"]
