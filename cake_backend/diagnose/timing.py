"""Findings about time: what binds, what the grid loses, and whether prediction and measurement agree."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from cake_backend.cost.prediction import Prediction
from cake_backend.diagnose.finding import Finding, Gain
from cake_backend.diagnose.what_if import WhatIf
from cake_ir.derive.structure import sites
from cake_ir.program import Program
from cake_ir.targets import target as target_named

_WORTH = 0.01
_POWER_CAP = 0x4 | 0x80  # NVML: software power cap, hardware power brake


def timing_findings(prediction: Prediction, what_if: WhatIf | None, shape: Mapping[str, Any] | None) -> list[Finding]:
    """Findings for one shape: `shape` is its measured entry in the record, None where nothing was measured."""
    out: list[Finding] = []
    if shape is not None:
        out += _measured(prediction, shape)
    if what_if is not None and prediction.ratio is not None:
        busy = _busy(prediction)
        out += _bound(prediction, what_if, busy)
        out += _grid(prediction, what_if)
    if any(w.code == "R02" for w in prediction.withheld):
        w = next(w for w in prediction.withheld if w.code == "R02")
        out.append(Finding("B23", f"{w.text}: the time lies between free overlap and none", "cost model",
                           "run the co-run microbenchmark of MMAs beside the loop's ALU work, or measure the candidate; a `turn` released after `mma_wait` is worth a try",
                           "a calibrated overlap puts the time at one end of the interval", line=w.line,
                           numbers={"overlap": round(prediction.overlap, 3), "cycles": prediction.cycles.to_json() if prediction.cycles else None},
                           basis=("predicted",), absent=("overlap constants",)))  # fmt: skip
    return out


def _busy(p: Prediction) -> float:
    return next((u.share for u in p.units if u.unit == "tensor"), 0.0)


def _bound(p: Prediction, what_if: WhatIf, busy: float) -> list[Finding]:
    program = what_if.setting.subject.program
    label = ("predicted",)
    if busy >= 0.95:
        return [_tensor(p, busy, "no wait is worth removing")]
    out = []
    latency = what_if.load_latency()
    if latency >= _WORTH and p.binding.startswith("latency"):
        out.append(_ring(p, what_if, program, latency))
    for id_, unit, gain, edit in (
        ("B06", "fill", what_if.fill(), "move fewer bytes into each SM: a larger tile, more consumers a tile, or multicast along the shared axis"),
        ("B05", "L2 (all SMs)", what_if.l2(), "read less from L2: multicast along the shared axis, a larger tile, or a grouped raster"),
        ("B07", "HBM (all SMs)", what_if.hbm(), "fuse with a neighbour, use a smaller dtype, or group the raster; else the floor is reached"),
    ):
        share = next((u.share for u in p.units if u.unit == unit), 0.0)
        if gain >= 0.03 and share >= 0.85:
            out.append(Finding(id_, f"`{program.name}` waits for {unit}, busy {share:.0%}, with the tensor core at {busy:.0%}", "candidate", edit,
                               f"{unit} is far from its limit in a profile", numbers={"unit": round(share, 3), "tensor busy": round(busy, 3)}, basis=label,
                               gain=Gain(gain, "re-simulation with that unit unlimited")))  # fmt: skip
    for id_, pipe, unit in (("B18", "alu", "ALU"), ("B17", "mufu", "special-function unit")):
        share = next((u.share for u in p.units if u.unit == pipe), 0.0)
        if share >= 0.5 and (gain := what_if.pipe(pipe)) >= 0.03:
            out.append(Finding(id_, f"the {unit} is busy {share:.0%} of the reading, the tensor core {busy:.0%}", "candidate",
                               "take masks out of the steady loop, keep local bests and merge once a chunk, fold scales into one multiply-add",
                               "the profile shows the pipe idle", numbers={pipe: round(share, 3), "tensor busy": round(busy, 3)}, basis=label,
                               gain=Gain(gain, "re-simulation with that pipe free, overlap taken as free")))  # fmt: skip
    if (gain := what_if.store_read()) >= _WORTH:
        line = next((s.op.span.line for s in sites(program) if s.op.name == "store_wait"), None)
        out.append(Finding("B26", "the epilogue waits until its staging slots have been read", "candidate",
                           "one more staging slot (`pending` one higher), or larger slices", "the wait at this line is short in a profile", line=line,
                           numbers={"wait": round(sum(w.share for w in p.waits if w.what == "store_wait"), 4)}, basis=label,
                           gain=Gain(gain, "re-simulation with stores read at once")))  # fmt: skip
    if (gain := what_if.remote()) >= _WORTH:
        out.append(Finding("B29", "releases from peer blocks arrive late", "candidate", "cluster size 1: multicast saves little here",
                           "the time is the same without the cluster", line=program.launch.span.line, numbers={"cluster": list(program.launch.cluster)},
                           basis=label, gain=Gain(gain, "re-simulation with local latency")))  # fmt: skip
    if not out and p.binding == "tensor":  # nothing else explains the rest, which is spread over fills, epilogues and the tail
        out.append(_tensor(p, busy, "no single wait explains the rest"))
    return out


def _tensor(p: Prediction, busy: float, rest: str) -> Finding:
    return Finding("B01", f"the tensor core is busy {busy:.0%} of the predicted time: {rest}", "candidate",
                   "do less work or cheaper work: 8-bit operands, fewer operand bytes a flop (larger tile, multicast), another algorithm",
                   "the slowest block takes much longer than the prediction", numbers={"tensor busy": round(busy, 4), "ratio to floor": p.ratio},
                   basis=("predicted",), gain=Gain(1 - busy, "all cycles without tensor work"))  # fmt: skip


def _ring(p: Prediction, what_if: WhatIf, program: Program, gain: float) -> Finding:
    name = p.binding.split("`")[1] if "`" in p.binding else next(iter(program.rings), "")
    ring = program.rings[name]
    depth = max((q.pending for d in what_if.setting.subject.demands.values() for q in d.pieces if q.kind == "drain" and q.name == "wgmma"), default=0)
    stage_bytes = sum(_view_bytes(program, v.name) for v in program.views.values() if v.stages == ring.stages and _loads_into(program, v.name, name))
    limit = target_named(what_if.setting.device.target).smem_optin
    used = sum(pool.nbytes for pool in program.pools.values())
    tunable = next((n for n, v in program.tunables.items() if v == ring.stages and "STAGE" in n.upper()), None)
    knob = f"`{tunable}={ring.stages + 1}`" if tunable else f"one more stage for `{name}`"
    room = f"{used + stage_bytes} of {limit} bytes of shared memory" if used + stage_bytes <= limit else ""
    edit = f"{knob} ({room})" if room else f"there is no room for {knob} ({used} + {stage_bytes} > {limit} bytes): a smaller k tile, then more stages"
    shallow = ring.stages <= depth + 1
    claim = f"ring `{name}` has {ring.stages} slots and {depth + 1} of them are held by MMAs: " + ("no load runs ahead" if shallow else "loads do not run far enough ahead")
    share = {w.what: round(w.share, 3) for w in p.waits[:3]}
    return Finding("B04" if shallow else "B03", claim, "candidate", edit, f"the time does not change with {ring.stages + 1} slots", line=ring.span.line,
                   numbers={"slots": ring.stages, "held": depth + 1, "waits": share, "tensor busy": round(_busy(p), 3)}, basis=("predicted",),
                   gain=Gain(gain, "re-simulation with all load latency gone"))  # fmt: skip


def _view_bytes(program: Program, view: str) -> int:
    from cake_ir.layout import view_bytes
    from cake_ir.placement import view_layout

    return view_bytes(view_layout(program.views[view]))


def _loads_into(program: Program, view: str, ring: str) -> bool:
    for op in program.ops:
        operand = op.operands.get("view")
        barrier = program.barriers.get(str(op.attrs.get("barrier")))
        if barrier is not None and barrier.pipeline == ring and getattr(getattr(operand, "type", None), "view", None) == view:
            return True
    return False


def _grid(p: Prediction, what_if: WhatIf) -> list[Finding]:
    out, g = [], p.grid
    if g is None:
        return out
    sms = what_if.setting.device.sm_count or 1
    program = what_if.setting.subject.program
    scheduler = next((program.schedulers[n] for n in what_if.setting.grid.orders), None)
    line = scheduler.span.line if scheduler else program.launch.span.line
    if g.tiles < sms:
        out.append(Finding("B10", f"{g.tiles} tiles for {sms} SMs: {sms - g.tiles} of them have nothing to do", "candidate",
                           "a smaller tile, or split the sum over blocks", "the launch shows as many blocks as SMs", line=line,
                           numbers={"tiles": g.tiles, "SMs": sms}, basis=("predicted",), gain=Gain(1 - g.tiles / sms, "idle SMs")))  # fmt: skip
    elif g.balance < 0.95:
        out.append(Finding("B09", f"the slowest slot does {g.rounds:g} tiles where the mean is {g.rounds * g.balance:.2f}", "candidate",
                           "another tile size, a finer last round, or a sum split over blocks", "the blocks end together in a profile", line=line,
                           numbers={"rounds": g.rounds, "balance": round(g.balance, 4)}, basis=("predicted",), gain=Gain(1 - g.balance, "mean over maximum")))  # fmt: skip
    laid = what_if.setting.grid
    if laid.size > 1 and (held := laid.slots * laid.size) < 0.95 * sms * g.resident and g.tiles > held:
        out.append(Finding("B10", f"{laid.slots} clusters of {laid.size} run at once, {held} blocks where the SMs have room for {sms * g.resident}: a cluster stays in one group of SMs", "candidate",
                           "smaller clusters: those of two leave no SM out", "the driver's `cuOccupancyMaxActiveClusters` says another number", line=program.launch.span.line,
                           numbers={"clusters": laid.slots, "size": laid.size, "SMs": sms}, basis=("predicted",), gain=Gain(1 - held / (sms * g.resident), "idle SMs")))  # fmt: skip
    if g.limit:
        out.append(Finding("B11", f"an SM holds {g.resident} blocks where `ctas_per_sm={program.launch.ctas_per_sm}` asks for more: {g.limit} is the limit", "candidate",
                           f"take less {g.limit} a block", "the launch reports another limit", line=program.launch.span.line,
                           numbers={"resident": g.resident, "asked": program.launch.ctas_per_sm}, basis=("predicted",), certain=True))  # fmt: skip
    if (gain := what_if.prologue()) >= 0.1:
        out.append(Finding("B12", f"{gain:.0%} of the predicted cycles are the kernel's start", "candidate", "fuse with a neighbour, or let it start early (`lm.pdl_wait`)",
                           "the time does not grow with the number of barriers", numbers={"prologue": what_if.constants().prologue}, basis=("predicted",),
                           gain=Gain(gain, "re-simulation without the prologue")))  # fmt: skip
    return out


def _measured(p: Prediction, shape: Mapping[str, Any]) -> list[Finding]:
    out: list[Finding] = []
    seconds = shape.get("seconds")
    if not isinstance(seconds, (int, float)):
        return out
    graphed, called = dict(shape.get("graph") or {}), dict(shape.get("eager") or {})
    best = graphed if graphed.get("median_s") else called
    spread = best.get("relative_ci")
    if isinstance(spread, (int, float)) and spread > 0.03:
        out.append(Finding("B37", f"the interval of the median of `{shape.get('shape')}` is {spread:.1%} wide: smaller differences say nothing", "environment",
                           "more rounds on a quiet machine; do not edit for less than that", "the interval shrinks and the median stays",
                           numbers={"relative interval": spread, "rounds": best.get("rounds")}, basis=("measured",), certain=True))  # fmt: skip
    eager, graph = called.get("median_s"), graphed.get("median_s")
    if eager and graph and eager > 1.2 * graph:
        out.append(Finding("B39", f"a call takes {eager / graph:.2f}x the kernel's own time", "environment", "launch from a graph, or fuse the launches",
                           "the gap is gone with a graph", numbers={"call": eager, "kernel": graph}, basis=("measured",),
                           gain=Gain(1 - graph / eager, "call time less kernel time"), certain=True))  # fmt: skip
    samples = [t for t in shape.get("telemetry") or () if isinstance(t, dict)]
    clocks = [t["sm_mhz"] for t in samples if t.get("sm_mhz")]
    capped = [t for t in samples if int(t.get("throttle_reasons", 0)) & _POWER_CAP]
    if capped and clocks:
        out.append(Finding("B02", f"the chip ran at {median(clocks):.0f} MHz against its power limit in {len(capped)} of {len(samples)} samples", "candidate",
                           "fewer operand bytes a flop: a larger tile, multicast, operands in registers; compare candidates in cycles", "the clock is at its maximum",
                           numbers={"MHz": median(clocks), "watts": median([t.get("power_mw", 0) / 1e3 for t in capped])}, basis=("measured",), certain=True))  # fmt: skip
    out += _agreement(p, seconds, clocks, str(shape.get("shape")))
    return out


def _agreement(p: Prediction, seconds: float, clocks: list[int], shape: str) -> list[Finding]:
    """Whether the measured time lies where the prediction says; in cycles where the clock was read."""
    if not p.covered or p.cycles is None:
        return []
    if clocks:
        low, high, found, unit = p.cycles.low, p.cycles.high, seconds * median(clocks) * 1e6, "cycles"
        slack = 0.1  # the clock is sampled, and drops between samples
        missing: tuple[str, ...] = ("cycle counter of the slowest block: the clock was sampled",)
    elif p.seconds is not None:
        low, high, found, unit, slack = p.seconds.low, p.seconds.high, seconds, "seconds", 0.0
        missing = ("cycles", "clock")
    else:
        return []
    if low * (1 - slack) <= found <= high * (1 + slack):
        return []
    ratio = found / (p.cycles.mid if unit == "cycles" else p.seconds.mid if p.seconds else found)
    return [Finding("B40", f"`{shape}` took {ratio:.2f}x the predicted {unit}, outside the interval", "cost model",
                    "repeat the run; if it is outside again, propose a calibration with both runs as evidence", "a second run lies inside",
                    numbers={"found": found, "low": low, "high": high, "unit": unit}, basis=("measured", "predicted"), absent=missing)]  # fmt: skip
