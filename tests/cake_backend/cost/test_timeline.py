"""The predicted timeline: bars of one track never overlap, lines are the schedule's, and repetitions are left out."""

import itertools
import json
from collections import defaultdict
from collections.abc import Callable

from cake_backend.cost.predict import Setting, setting
from cake_backend.cost.timeline import timeline
from cake_ir.program import Program


def test_bars_of_a_track_do_not_overlap_and_are_few(variant: Callable[[str], Program]) -> None:
    program = variant("base")
    s = setting(program, {"M": 8192, "N": 8192, "K": 8192})
    assert isinstance(s, Setting)
    trace = timeline(s)
    text = json.dumps(trace)
    assert len(text) < 2_000_000 and trace["otherData"] == {"label": "predicted", "left_out": 0}
    tracks = defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            assert e["dur"] > 0
            tracks[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    assert len(tracks) == 4  # two consumers, the producer, the tensor core
    for bars in tracks.values():
        bars.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(bars))
    lines = {e["args"]["line"] for e in trace["traceEvents"] if e["ph"] == "X" and "line" in e["args"]}
    assert lines <= {op.span.line for op in program.ops}
