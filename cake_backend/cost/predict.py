"""`predict`: one program, its arguments and a board, to a prediction."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cake_backend.cost.calibration import CORNERS, Calibration, Constants, calibrations
from cake_backend.cost.compiled import Compiled, compiled
from cake_backend.cost.coverage import OVERLAP, Withheld, abstentions, family, hot_fences
from cake_backend.cost.grid import Grid, lay_out, makespan, own_tiles
from cake_backend.cost.machine import Evidence
from cake_backend.cost.prediction import Clock, GridView, Prediction, Share, Span3, WaitShare
from cake_backend.cost.reading import Reading, Subject, Unreadable, prepare, read
from cake_backend.cost.scalars import NoValue
from cake_backend.cost.traffic import Traffic, one_wave
from cake_ir.program import Program
from cake_ir.targets import Device
from cake_ir.targets import device as device_named
from cake_verify.rules.conformance.h015_mma_registers import check as serialised_mmas

_STAND_IN = "H200-SXM"
_BOUND = 0.85
_LOADED = 0.8
_LONG_WALK = 12_000  # events beyond which a walk is read once only


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Everything that one reading needs, so that it can be repeated with other constants or evidence."""

    subject: Subject
    calibration: Calibration
    device: Device
    args: dict[str, Any]
    extents: dict[tuple[str, int], int]
    data: dict[str, Sequence[int]]
    grid: Grid
    traffic: Traffic
    build: Compiled | None

    def cycles(self, constants: Constants, evidence: Evidence | None = None) -> tuple[float, Reading]:
        """Cycles of the whole launch, and the reading of its slowest SM. Raises `Unreadable`."""
        program, grid = self.subject.program, self.grid
        known = evidence or self.evidence()
        reading = read(
            self.subject, constants, self.args, lambda name: own_tiles(grid, program, name), blocks=self.blocks, evidence=known,
            extents=self.extents, data=self.data,
        )  # fmt: skip
        total = reading.cycles + constants.prologue
        if not grid.persistent:
            total = makespan(total, -(-grid.tiles // self.blocks), max(1, grid.slots * grid.size // self.blocks))
        return max(total, self.shared(constants, reading)), reading

    @property
    def blocks(self) -> int:
        """Blocks that share the SM that is read."""
        running = self.grid.clusters * self.grid.size
        sms = max(1, self.grid.slots * self.grid.size // self.grid.resident)
        return max(1, min(self.grid.resident, -(-running // sms)))

    def evidence(self, worst: bool = False) -> Evidence:
        """What is known beyond the text; with `worst` a phase waits for HBM twice as often as the raster says."""
        miss = {op: min(1.0, 2 * share) if worst else share for op, share in self.traffic.miss.items()}
        load = min(1.0, self.grid.clusters * self.grid.size / (self.device.sm_count or 1))
        return Evidence(serialised=bool(self.build and self.build.serialised), fences=bool(self.build and self.build.fences), load=load, miss=miss)

    def shared(self, constants: Constants, reading: Reading) -> float:
        """The least cycles that L2 and HBM allow."""
        return max(self.memory(constants, reading))

    def memory(self, constants: Constants, reading: Reading) -> tuple[float, float]:
        """Cycles that L2 and HBM need for the whole launch, all SMs together, at the clock of a loaded chip."""
        waves = 1.0 if self.grid.persistent else self.grid.rounds
        l2 = self.traffic.l2_bytes(reading.runs, self.blocks, constants.l2_merge) * waves / (constants.l2_tb_s * 1e12)
        hbm = self.traffic.hbm_bytes(reading.runs, self.blocks) * waves / (constants.hbm_tb_s * 1e12)
        return l2 * constants.ghz_capped * 1e9, hbm * constants.ghz_capped * 1e9


def predict(program: Program, bindings: Mapping[str, Any], *, device: str = "H200-SXM", build: Any = None,
            extents: Mapping[tuple[str, int], int] | None = None) -> Prediction:  # fmt: skip
    """Predict one launch of `program` on `device`.

    bindings: scalar arguments by name, and lists of integers for tensors that `lm.ld` reads. build: a `Build` or the compile section of a
    run record, for the compiled tier. Never raises for what the program or the arguments are: the reason is in `withheld`. Raises
    `UnknownDevice` for a board that is none.
    """
    start = time.perf_counter()
    board = device_named(device)
    report = compiled(build)
    found = setting(program, bindings, device=device, build=build, extents=extents)
    if isinstance(found, Withheld):
        return _nothing(program, board.name, "spec" if report is None else "compiled", (found,), start)
    try:
        return _predict(found, start)
    except Unreadable as reason:
        return _nothing(program, board.name, "spec" if report is None else "compiled", (Withheld(reason.code, str(reason)),), start)


def setting(program: Program, bindings: Mapping[str, Any], *, device: str = "H200-SXM", build: Any = None,
            extents: Mapping[tuple[str, int], int] | None = None) -> Setting | Withheld:  # fmt: skip
    """Prepare readings of one launch, or say why there can be none."""
    board = device_named(device)
    calibration = calibrations().get(device) or (calibrations()[_STAND_IN] if board.target == calibrations()[_STAND_IN].target else None)
    if calibration is None or board.sm_count is None:
        return Withheld("R01", f"{device} has no calibration, and no calibrated board has its architecture")
    missing = [name for name in program.scalars if name not in bindings]
    if missing:
        return Withheld("R06", f"scalar `{missing[0]}` has no value")
    args = {name: bindings[name] for name in program.scalars}
    data = {name: bindings[name] for name in program.tensors if name in bindings}
    report = compiled(build)
    try:
        grid = lay_out(program, args, extents or {}, board, report.registers if report else None)
    except NoValue as reason:
        return Withheld("R06", str(reason))
    subject = prepare(program)
    traffic = one_wave(subject, grid, args, extents or {})
    return Setting(subject, calibration, board, args, dict(extents or {}), data, grid, traffic, report)


def _predict(s: Setting, start: float) -> Prediction:
    nominal = s.calibration.constants()
    withheld, overlap = abstentions(s.subject, nominal, s.calibration, s.build)
    mid, reading = s.cycles(nominal)
    calibrated = s.device.name == s.calibration.device
    if not calibrated:
        withheld.insert(0, Withheld("R01", f"{s.device.name} has no calibration: only the ratio to its floor is given"))
    if not reading.settled:
        withheld.append(Withheld("R03", "the walk reached no steady state, the mean of its last iterations was taken"))
    if reading.events >= _LONG_WALK:
        withheld.append(Withheld("R03", f"the walk repeats itself too seldom: {reading.events} steps for one reading"))
    corners = {"nominal": mid}
    rankable = not {w.code for w in withheld} & {"R01", "R03", "R07"}
    for corner in CORNERS[1:] if rankable else ():
        corners[corner] = s.cycles(s.calibration.constants(corner), s.evidence(worst=corner in ("pessimistic", "long latency")))[0]
    floor, unit = _floor(s, nominal, reading)
    residual = s.calibration.residual
    cycles: Span3 | None = Span3(min(corners.values()) * (1 - residual), mid, max(corners.values()) * (1 + residual))
    if cycles is not None and overlap > OVERLAP:  # from free overlap to none at all
        cycles = replace(cycles, high=cycles.high + min(reading.busy["tensor"], _cuda(reading)))
    codes = {w.code for w in withheld}
    if codes & {"R01", "R03", "R06", "R07"}:
        cycles = None
    clock, seconds = _time(s, nominal, reading, mid, cycles)
    if cycles is not None and clock is None:
        withheld.append(Withheld("R09", "the clock under this load is not known: cycles only"))
    units = _units(s, nominal, reading, mid)
    return Prediction(
        schedule=s.subject.program.name, device=s.device.name, tier="spec" if s.build is None else "compiled",
        family="fused" if overlap > OVERLAP else family(s.subject), calibration=s.calibration.name if calibrated else f"{s.calibration.name} as a stand-in",
        cycles=cycles, seconds=seconds, clock=clock, floor=floor, floor_unit=unit, ratio=mid / floor if floor else None,
        binding=_binding(s, reading, units), units=units, waits=_waits(s, reading),
        grid=GridView(s.grid.clusters * s.grid.size, s.grid.tiles, s.grid.resident, s.grid.rounds, s.grid.balance, s.grid.limit),
        withheld=tuple(withheld), last=_last(s), settled=reading.settled, overlap=overlap, corners=corners,
        milliseconds=(time.perf_counter() - start) * 1e3, reading=reading,
    )  # fmt: skip


def _nothing(program: Program, device: str, tier: str, withheld: tuple[Withheld, ...], start: float) -> Prediction:
    return Prediction(program.name, device, tier, "", "", None, None, None, None, "", None, "", (), (), None, withheld, "", False, 0.0, {},
                      (time.perf_counter() - start) * 1e3)  # fmt: skip


def _cuda(reading: Reading) -> float:
    return max(reading.busy[unit] for unit in ("alu", "fma", "mufu", "shfl", "issue"))


def _floor(s: Setting, c: Constants, reading: Reading) -> tuple[float | None, str]:
    """The work of the busiest kind alone, spread evenly over all SMs."""
    read_tiles = sum(len(own_tiles(s.grid, s.subject.program, name)) for name in s.grid.orders) or 1
    spread = s.grid.tiles / (read_tiles * s.blocks) / (s.device.sm_count or 1)
    if any(p.kind == "unknown" for d in s.subject.demands.values() for p in d.pieces):
        return None, ""
    tensor, memory = reading.busy["tensor"] * spread, reading.busy["hbm"] * spread
    if tensor <= 0 and memory <= 0:
        return None, ""
    return (tensor, "tensor") if tensor >= memory else (memory, "HBM")


def _time(s: Setting, c: Constants, reading: Reading, mid: float, cycles: Span3 | None) -> tuple[Clock | None, Span3 | None]:
    """Seconds, where the clock under this load has been seen: tensor cores of all SMs busy nearly all the time, at the power cap."""
    if cycles is None or reading.busy["tensor"] < 0.9 * reading.cycles or s.grid.tiles < _LOADED * (s.device.sm_count or 1):
        return None, None
    e = s.calibration.entries["ghz_capped"]
    clock = Clock(e.low, e.value, e.high, "power-capped, as seen with tensor cores 98 % busy; a cooler or less loaded chip is faster")
    return clock, Span3(cycles.low / e.high / 1e9, cycles.mid / e.value / 1e9, cycles.high / e.low / 1e9)


def _units(s: Setting, c: Constants, reading: Reading, mid: float) -> tuple[Share, ...]:
    span = max(1.0, reading.cycles)
    shares = [Share(unit, cycles / span) for unit, cycles in reading.busy.items() if cycles > 0]
    l2, hbm = s.memory(c, reading)
    if l2:
        shares += [Share("L2 (all SMs)", l2 / mid), Share("HBM (all SMs)", hbm / mid)]
    port = (reading.bytes["operands"] + reading.bytes["landed"]) / c.smem_bytes
    if port:
        shares.append(Share("shared-memory port", port / span, binding=False))
    return tuple(sorted(shares, key=lambda u: (not u.binding, -round(u.share, 2), "(" in u.unit)))


def _waits(s: Setting, reading: Reading) -> tuple[WaitShare, ...]:
    out = []
    for m in reading.members:
        for op_id, cycles in m.waits.items():
            op = s.subject.demands[op_id].op
            what = str(op.attrs.get("barrier") or op.name)
            out.append(WaitShare(m.role, m.index, op.span.line, what, cycles / max(1.0, m.cycles)))
    return tuple(sorted((w for w in out if w.share >= 0.005), key=lambda w: -w.share)[:12])


def _binding(s: Setting, reading: Reading, units: tuple[Share, ...]) -> str:
    """The unit that is busy nearly all the time, or the chain of waits where none is."""
    best = next((u for u in units if u.binding), None)
    if best is not None and best.share >= _BOUND:
        return best.unit
    rings: dict[str, float] = {}
    for m in reading.members:
        for op_id, cycles in m.waits.items():
            barrier = s.subject.program.barriers.get(str(s.subject.demands[op_id].op.attrs.get("barrier")))
            if barrier is not None:
                rings[barrier.pipeline] = rings.get(barrier.pipeline, 0.0) + cycles / max(1.0, m.cycles)
    if rings:
        ring = max(rings, key=lambda r: rings[r])
        return f"latency of ring `{ring}`"
    return f"{best.unit}, busy {best.share:.0%}" if best is not None else "nothing measured here"


def _last(s: Setting) -> str:
    if s.build is not None and s.build.serialised:
        return "the assembler serialises its MMA groups"
    if s.build is None and any(serialised_mmas(s.subject.program)):
        return "the assembler will serialise its MMA groups"
    if s.build is not None and s.build.fences:
        return "a device-wide memory barrier in the hot loop"
    line = hot_fences(s.subject.program)
    if line is not None:
        return f'`order="cluster"` at line {line} puts a device-wide memory barrier into the hot loop'
    if s.build is not None and s.build.spilled:
        return f"{s.build.spilled} bytes of registers are spilled"
    return ""
