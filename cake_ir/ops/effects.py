"""What an operation does, as data: the only thing that gates, simulator and cost model know of it.

An operation's spec lists its effects in the order in which they happen. Names in these records are operand or attribute names of the
operation (`"view"`, `"barrier"`, ..), `"result"` for the places it binds. Register reads and writes of fragment operands and results
follow from their expressions and need no record, except where an asynchronous engine holds the registers (`Issue`).
"""

from __future__ import annotations

from typing import Literal

from cake_ir.record import record

Space = Literal["smem", "gmem", "tmem", "reg"]
Engine = Literal["tma", "bulk", "wgmma", "tcgen05", "cp_async", "st_async", "tmem_ld", "tmem_st"]


@record()
class Touch:
    """An access of `operand`: `mode` r, w or rw; through the generic or the async proxy; by all lanes of the member or one elected thread."""

    operand: str
    mode: Literal["r", "w", "rw"]
    space: Space
    proxy: Literal["generic", "async"] = "generic"
    lanes: Literal["all", "one"] = "all"


@record()
class Issue:
    """Start asynchronous work: its accesses happen at any time between the issue and its observed completion.

    `done` says by what it is observed: `tx` bytes on attribute `barrier`, a `group` of the issuing thread(s), or a `commit`.
    """

    engine: Engine
    touches: tuple[Touch, ...]
    done: Literal["tx", "group", "commit"]
    lanes: Literal["all", "one"] = "one"


@record()
class Wait:
    """Block until the phase of attribute `barrier` that belongs to operand `stage` is complete."""


@record()
class Arrive:
    """Arrive on attribute `barrier` at operand `stage`, with the kind that the barrier declares."""


@record()
class Commit:
    """Close the open group of `engine`; for tcgen05, arrive on attribute `barrier` when it has completed."""

    engine: Engine


@record()
class Drain:
    """Block until at most operand `pending` groups of `engine` are in flight; `read`: only their source reads are done."""

    engine: Engine
    read: bool = False


@record()
class FenceProxy:
    """Order this thread's earlier generic accesses to shared memory before later async-proxy ones."""


@record()
class Sync:
    """Meet all participants of attribute `barrier` (a named barrier)."""


@record()
class ClusterSync:
    """Meet all threads of the cluster."""


@record()
class Turn:
    """Wait for, or pass on, the turn of attribute `barrier`: orders issue only."""

    kind: Literal["wait", "arrive"]


@record()
class GridDependency:
    """`wait`: the upstream kernel's data may be read from here on. `launch`: the dependent grid may start."""

    kind: Literal["wait", "launch"]


@record()
class Flag:
    """Release-store (`signal`) or acquire-poll (`spin`) a word of global memory between CTAs of one launch."""

    kind: Literal["signal", "spin"]


Effect = Touch | Issue | Wait | Arrive | Commit | Drain | FenceProxy | Sync | ClusterSync | Turn | GridDependency | Flag
