"""From what the machine met to a fault: the report for each kind."""

from __future__ import annotations

from collections.abc import Callable

from cake_ir.fault import Fault
from cake_verify.analyses import report_barrier as barrier
from cake_verify.analyses import report_deadlock as deadlock
from cake_verify.analyses import report_race as race
from cake_verify.analyses import report_use as use
from cake_verify.analyses.declarations import blame
from cake_verify.analyses.replay import Replay
from cake_verify.analyses.report_pair import unjoined
from cake_verify.analyses.state import Found

_REPORTS: dict[str, Callable[[Replay, Found], Fault]] = {
    "S001": barrier.left_open, "S003": race.race, "S004": race.race, "S005": use.in_flight, "S006": use.unfenced, "S007": use.tensor_overlap, "S010": barrier.named,
    "S011": barrier.stores_at_exit, "S013": barrier.rows_left, "S015": barrier.turns, "S016": use.too_early, "S018": barrier.left_open, "S019": barrier.early_pass,
    "S020": barrier.late_pass, "S021": barrier.unstable, "S022": barrier.over_arrival, "S025": barrier.never_waited, "S027": use.uninitialised,
    "S029": use.undefined, "S030": barrier.coordinates, "S031": barrier.before_step, "S032": barrier.outside_view,
    "S038": barrier.outside_cluster,
}  # fmt: skip


def report(r: Replay) -> Fault | None:
    """The fault of a replayed run; None if it ran through."""
    if r.found is not None:
        return unjoined(r, blame(r, _REPORTS[r.found.code](r, r.found)))
    return unjoined(r, blame(r, deadlock.deadlock(r))) if r.stuck else None
