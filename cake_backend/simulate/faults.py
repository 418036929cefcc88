"""What the simulator reports: one code a kind of failure, all with the letter X (execution)."""

from __future__ import annotations

from cake_ir.fault import Fault
from cake_ir.program import Op
from cake_ir.span import NOWHERE, Span

MEANING: dict[str, str] = {
    "X001": "no warp can go on and no asynchronous work is left that could release one",
    "X002": "more arrivals reached a barrier in one phase than it expects",
    "X003": "asynchronous work was still in flight, or was never waited for, when its CTA ended",
    "X004": "shared memory was accessed while asynchronous work on the same bytes was in flight",
    "X005": "registers were read or written while a matrix multiplication that uses them was in flight",
    "X006": "an access left its tensor or view",
    "X007": "data that nobody had written reached an output",
    "X008": "the async proxy read bytes whose generic write it cannot see yet",
    "X009": "two CTAs wrote different values to one element of a tensor",
    "X010": "the run took more steps than it was allowed",
    "X011": "the program uses something that this simulator does not execute",
    "X012": "the warps of one warpgroup issued different collective operations",
    "X013": "an argument is missing or has another rank or dtype than the program says",
    "X014": "data of the upstream kernel was touched before `lm.pdl_wait`",
    "X015": "an address is not the multiple of bytes that its use needs",
    "X016": "the copy engine or the tensor core cannot address a view as it is used",
}


HELP: dict[str, str] = {
    "X001": "the trace says what each role waits for; look for an arrival that is missing, counted differently or sent to another stage",
    "X002": "an arrival belongs to one phase: arrive once a slot use, and only after waiting for the slot",
    "X003": "wait for it before the role ends: a barrier wait for copies in, `lm.store_wait(pending=0)` for copies out, `lm.mma_wait(pending=0)` for MMAs",
    "X004": "wait for the work in flight first, and let other roles touch the slot only after they waited for its release",
    "X005": "move the access behind `lm.mma_wait`, or compute into another name",
    "X006": "mask or clip the access, or correct its coordinates",
    "X007": "the related place reads the data before anything wrote it: check its wait, its stage and the first `init`",
    "X008": "every thread that wrote calls `lm.fence_proxy()`, then the threads meet, then one of them issues",
    "X009": "give every output element to one CTA, or combine with an atomic or a reduction",
    "X012": "all warps of a warpgroup must reach the same `lm.mma` in the same order: conditions around it must be uniform over the member",
    "X015": "a swizzled view starts where its pattern repeats, a bulk copy or cp.async on 16 bytes, a row of a copied tensor too",
    "X016": "declare the view with a swizzle, slice it in whole 8-row atoms and panels, and start its boxes on 128 bytes",
    "X014": "call `lm.pdl_wait()` in every role before its first access of data that is not `.const`",
}


class Abort(Exception):
    """The run cannot go on: the machine's state says nothing any more."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class NotSimulated(Exception):
    """The program uses something outside the simulator; `span` says where."""

    def __init__(self, what: str, span: Span = NOWHERE) -> None:
        super().__init__(what)
        self.span = span

    @property
    def fault(self) -> Fault:
        """The refusal as a fault of the run."""
        return Fault("X011", f"{self.args[0]} is not simulated", self.span)


def label(op: Op) -> str:
    """An operation as a reader of the schedule would name it: its spelling and what it acts on."""
    view = op.operands.get("view")
    of = getattr(getattr(view, "type", None), "view", None)
    if of is not None:
        return f"`{of}.{op.name}`"
    thing = op.attrs.get("barrier") or op.attrs.get("tensor")
    return f"`lm.{op.name}({thing})`" if thing else f"`lm.{op.name}`"
