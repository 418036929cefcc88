"""Predicted against measured SM cycles, from the file that `bench.cycles` wrote: the table of `docs/cost-model.md`, and the fit behind it.

`python -m bench.predicted` prints the table; `--fit` fits the inferred constants to the launches in `FITTED` and prints what they come to.
The launches that are not in `FITTED` only ever judge.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cake_kernels
from cake_backend.cost.calibration import Calibration
from cake_backend.cost.predict import Setting, setting
from cake_ir.frontend import parse, specialise
from cake_ir.program import Program

RESULTS = Path(__file__).parent / "results" / "gemm-cycles.json"
FITTED = {
    ("square_8192", name)
    for name in ("cake_gemm", "cake_gemm_stages2", "cake_gemm_stages3", "cake_gemm_bn128", "cake_gemm_depth0", "cake_gemm_group1", "cake_gemm_group16")
} | {("square_4096", "cake_gemm")}  # a second size parts what a tile costs from what a launch costs
# What is fitted: a value to start from and how far the evidence before these launches lets it move (one sigma).
PRIORS = {"fill_bytes": (52.0, 30.0), "load_wait": (0.3, 0.3), "store_read": (500.0, 250.0), "fence_proxy": (100.0, 400.0),
          "prologue": (4000.0, 1500.0)}  # fmt: skip
_SIGMA = 0.01  # relative error of one launch that is as bad as one sigma of a constant


@dataclass(frozen=True, slots=True)
class Launch:
    """One candidate at one shape: its program, and the median of the cycles that its slowest SM took."""

    shape: str
    name: str
    program: Program
    axes: dict[str, int]
    cycles: float
    spread: float
    tensor_percent: float
    l2_bytes: float
    seconds: float

    @property
    def fitted(self) -> bool:
        """Whether constants were fitted to it."""
        return (self.shape, self.name) in FITTED


def launches(path: Path = RESULTS) -> list[Launch]:
    """The launches of schedules that the cost model covers (wgmma), in the order of the file. `spread` is (max - min) over the median."""
    record = json.loads(path.read_text())
    text = next(s.text for s in cake_kernels.schedules() if s.family == record["family"] and "gemm_ws" in s.text)
    shapes = {s.name: s.axes for s in cake_kernels.tasks()[record["family"]].shapes}
    out = []
    for row in record["rows"]:
        if "MEMBERS" not in row["params"]:
            continue
        program = specialise(parse(text).schedules[0], dict(row["params"]), "sm_90a").program
        assert program is not None, row["candidate"]
        cycles = [launch["cycles"] for launch in row["launches"]]
        middle = {name: statistics.median(launch[name] for launch in row["launches"]) for name in ("cycles", "tensor_percent", "l2_bytes", "nanoseconds")}
        out.append(Launch(row["shape"], row["candidate"], program, dict(shapes[row["shape"]]), middle["cycles"], (max(cycles) - min(cycles)) / middle["cycles"],
                          middle["tensor_percent"], middle["l2_bytes"], middle["nanoseconds"] * 1e-9))  # fmt: skip
    return out


def prepared(launch: Launch, device: str = "H200-SXM") -> Setting:
    """The launch, ready to be read."""
    found = setting(launch.program, launch.axes, device=device)
    assert isinstance(found, Setting), found
    return found


def table(found: Sequence[Launch], predicted: Sequence[float]) -> str:
    """The comparison as a Markdown table."""
    lines = ["| 8192^3 or 4096^3 | what | predicted | measured | error | ratio to base, predicted / measured |", "|---|---|---|---|---|---|"]
    for launch, cycles in zip(found, predicted, strict=True):
        base, mid = next((b.cycles, c) for b, c in zip(found, predicted, strict=True) if b.shape == launch.shape and b.name == "cake_gemm")
        what = launch.name.removeprefix("cake_gemm").removeprefix("_").replace("_", " ") or "base"
        lines.append(f"| {launch.shape.removeprefix('square_')} | {what}{'' if launch.fitted else ' (held out)'} | {cycles:,.0f} | {launch.cycles:,.0f} "
                     f"| {cycles / launch.cycles - 1:+.1%} | {cycles / mid:.3f} / {launch.cycles / base:.3f} |")  # fmt: skip
    return "\n".join(lines)


def tensor_rate(found: Sequence[Launch], sms: int) -> list[float]:
    """Flop per busy cycle of an SM's tensor core, launch by launch."""
    return [2.0 * x.axes["M"] * x.axes["N"] * x.axes["K"] / sms / (x.cycles * x.tensor_percent / 100) for x in found]


def l2_share(launch: Launch, s: Setting) -> float:
    """Bytes at the L2 over bytes that all SMs asked for and wrote: neighbours that ask for the same lines at the same time are served together."""
    asked = s.traffic.l2_bytes(s.cycles(s.calibration.constants())[1].runs, s.blocks, 1.0)
    return (launch.l2_bytes - launch.axes["M"] * launch.axes["N"] * 2) / asked


def step_bytes(launch: Launch, s: Setting) -> float:
    """Bytes a cycle that an SM got, if it had got them without a pause from the first cycle to the last: what its copies can do at the least."""
    return s.cycles(s.calibration.constants())[1].bytes["own"] / launch.cycles


def fit(found: Sequence[Launch], calibration: Calibration, rounds: int = 6) -> dict[str, float]:
    """Regularised least squares on relative errors of the fitted launches, by Gauss-Newton steps that are kept if they help."""
    import numpy as np

    settings = [(prepared(x), x.cycles) for x in found if x.fitted]
    names = list(PRIORS)

    def residuals(values: Any) -> Any:
        constants = calibration.constants("nominal", **dict(zip(names, values, strict=True)))
        errors = [(s.cycles(constants)[0] / cycles - 1) / _SIGMA for s, cycles in settings]
        return np.array(errors + [(v - PRIORS[n][0]) / PRIORS[n][1] for n, v in zip(names, values, strict=True)])

    at = np.array([PRIORS[n][0] for n in names])
    step = np.array([0.1 * PRIORS[n][1] for n in names])
    now = residuals(at)
    for _ in range(rounds):
        slopes = np.stack([(residuals(at + step * (np.arange(len(at)) == k)) - now) / step[k] for k in range(len(at))], axis=1)
        move = -np.linalg.lstsq(slopes, now, rcond=None)[0]
        at, now = _shortened(at, move, now, residuals)
    return {n: float(v) for n, v in zip(names, at, strict=True)}


def _shortened(at: Any, move: Any, now: Any, residuals: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The point along `move` that is better, halving it up to five times."""
    for halving in range(6):
        there = at + move / 2**halving
        then = residuals(there)
        if (then**2).sum() < (now**2).sum():
            return there, then
    return at, now


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--fit", action="store_true", help="fit the inferred constants and print them")
    arguments = parser.parse_args()
    found = launches(arguments.results)
    settings = [prepared(x) for x in found]
    calibration = settings[0].calibration
    changes: dict[str, float] = {}
    if arguments.fit:
        changes = fit(found, calibration)
        rates = sorted(tensor_rate(found, settings[0].device.sm_count or 1))
        print(f"tensor core, flop per busy cycle: {rates[0]:.0f} to {rates[-1]:.0f}, median {statistics.median(rates):.0f}")
        print(f"copies into one SM, at the least: {max(step_bytes(x, s) for x, s in zip(found, settings, strict=True)):.1f} bytes a cycle")
        for x, s in zip(found, settings, strict=True):
            print(f"{x.shape} {x.name}: {l2_share(x, s):.2f} of what is asked for reaches the L2, {x.l2_bytes / x.seconds / 1e12:.2f} TB/s, {x.cycles / x.seconds / 1e9:.2f} GHz")
        print("fitted:", ", ".join(f"{n} {v:.4g}" for n, v in changes.items()), "\n")
    predicted = [s.cycles(calibration.constants("nominal", **changes))[0] for s in settings]
    print(table(found, predicted))
    for which, kept in (("fitted", True), ("held out", False)):
        errors = [abs(c / x.cycles - 1) for x, c in zip(found, predicted, strict=True) if x.fitted == kept]
        print(f"\n{which}: {len(errors)} launches, error {statistics.median(errors):.1%} in the median, {max(errors):.1%} at most", end="")
    print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
