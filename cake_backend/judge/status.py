"""The closed set of outcomes of an evaluation, and what each means outside Cake."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """One outcome. Values are stable names used in the store, in tools and in exports."""

    PASSED = "PASSED"
    PASSED_UNTIMED = "PASSED_UNTIMED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    INPUT_MODIFIED = "INPUT_MODIFIED"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    STATIC_REJECT = "STATIC_REJECT"
    UNDECIDED = "UNDECIDED"
    NOT_LOWERED = "NOT_LOWERED"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    HANG = "HANG"
    TIMEOUT = "TIMEOUT"
    REWARD_HACK = "REWARD_HACK"
    DEFERRED_WORK = "DEFERRED_WORK"
    INVALID_REFERENCE = "INVALID_REFERENCE"
    WORKLOAD_REJECTED = "WORKLOAD_REJECTED"
    PHYSICS_FLOOR = "PHYSICS_FLOOR"
    TIMING_UNTRUSTED = "TIMING_UNTRUSTED"
    INFRA_ERROR = "INFRA_ERROR"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"

    @property
    def meaning(self) -> Meaning:
        return MEANINGS[self]

    @property
    def good(self) -> bool:
        """Whether nothing was found wrong with the candidate."""
        return self in (Status.PASSED, Status.PASSED_UNTIMED)

    @property
    def blames_candidate(self) -> bool:
        """Whether this counts against the candidate (and not against the machine, the task or Cake)."""
        return self.meaning.blames_candidate


@dataclass(frozen=True, slots=True)
class Meaning:
    """One sentence, the FlashInfer-Bench and SOL-ExecBench names (None where not exportable), and who is to blame."""

    text: str
    flashinfer: str | None
    sol: str | None
    blames_candidate: bool


def _m(text: str, flashinfer: str | None = None, sol: str | None = None, blames: bool = True) -> Meaning:
    return Meaning(text, flashinfer, sol if sol is not None or flashinfer is None else flashinfer, blames)


MEANINGS: dict[Status, Meaning] = {
    Status.PASSED: _m("right on every case and timed on a GPU", "PASSED", blames=False),
    Status.PASSED_UNTIMED: _m("right on every case; not timed, or only simulated (the record says which)", blames=False),
    Status.INCORRECT_SHAPE: _m("an output has the wrong shape", "INCORRECT_SHAPE"),
    Status.INCORRECT_DTYPE: _m("an output has the wrong element type", "INCORRECT_DTYPE"),
    Status.INCORRECT_NUMERICAL: _m("an output is further from the oracle than the task allows", "INCORRECT_NUMERICAL"),
    Status.NONDETERMINISTIC: _m("two runs on the same data differ in some bit", "INCORRECT_NUMERICAL"),
    Status.INPUT_MODIFIED: _m("the kernel wrote to an input", "RUNTIME_ERROR"),
    Status.OUT_OF_BOUNDS: _m("the kernel wrote outside its buffers", "RUNTIME_ERROR"),
    Status.STATIC_REJECT: _m("a gate found a fault before anything was compiled", "COMPILE_ERROR"),
    Status.UNDECIDED: _m("a gate could not decide, and running undecided schedules was not allowed", "COMPILE_ERROR"),
    Status.NOT_LOWERED: _m("the gates accept the schedule, this build cannot lower it yet", blames=False),
    Status.COMPILE_ERROR: _m("the compiler refused what the gates had accepted; this counts as a fault of Cake", "COMPILE_ERROR"),
    Status.RUNTIME_ERROR: _m("the driver reported an error", "RUNTIME_ERROR"),
    Status.HANG: _m("a wait did not end; the report names role, barrier, stage and phase", "TIMEOUT"),
    Status.TIMEOUT: _m("no answer within the time limit, and no wait was reported", "TIMEOUT"),
    Status.REWARD_HACK: _m("the result was not obtained by doing the work", "RUNTIME_ERROR", "REWARD_HACK"),
    Status.DEFERRED_WORK: _m("work went on after the kernel had been counted as finished", "RUNTIME_ERROR", "REWARD_HACK"),
    Status.INVALID_REFERENCE: _m("the task's own oracle cannot be trusted on this data", blames=False),
    Status.WORKLOAD_REJECTED: _m("the task would accept a trivial answer, so nothing is judged with it", blames=False),
    Status.PHYSICS_FLOOR: _m("the time is below what the chip can do at all; the measurement is wrong"),
    Status.TIMING_UNTRUSTED: _m("right, but the clocks disagree or the spread is too large to give a time", blames=False),
    Status.INFRA_ERROR: _m("the machine or Cake failed; nothing is known about the candidate", blames=False),
    Status.SKIPPED: _m("the device cannot run this target", blames=False),
    Status.CANCELLED: _m("stopped on request", blames=False),
}
assert set(MEANINGS) == set(Status)
