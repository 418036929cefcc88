"""`cake tune TASK --schedule FILE --params NAME=V1,V2 ..`: search parameter variants of a schedule, and keep everything it finds."""

import argparse
import ast
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import workspace as workspaces
from ..operations.misuse import Misuse
from .arguments import BAD_USAGE, Parser, add_program_options, add_workspace_option, assignments, read_text

if TYPE_CHECKING:
    from ..operations.tune import Tuned

_BAR = 24
_SHOWN = 16
_INTERRUPTED = 130


def main(argv: Sequence[str]) -> int:
    """Exit status: 0 something is left at the end, 1 nothing is, 3 bad usage, 130 interrupted (what was measured is kept)."""
    parser = Parser(
        prog="cake tune",
        description="Search parameter variants: drop what the gates reject, rank (ties stay), compile in parallel, time the survivors with "
        "successive halving, and judge the fastest in full. Without a GPU it ends after the compiler; the order is then a prediction.",
    )
    parser.add_argument("task", help="what the schedule computes: a task of the corpus or of the workspace")
    parser.add_argument("--schedule", required=True, metavar="FILE", help="the schedule; - reads standard input")
    parser.add_argument("--params", nargs="+", default=[], metavar="NAME=V1,V2", help="values to try for a compile-time parameter")
    parser.add_argument("--shape", help="shape of the task to tune for; default: its largest timed one")
    parser.add_argument("--device", default="auto", help="auto, gpu, gpu:N, or none to stop after the compiler")
    parser.add_argument("--board", help="board to predict for, such as H200-SXM; default: the GPU that is here")
    parser.add_argument("--budget-gpu-s", type=_positive, default=120.0, metavar="S", help="seconds of GPU time to spend at most (120)")
    parser.add_argument("--most", type=int, default=48, metavar="N", help="compile at most so many variants, chosen by the ranking (48)")
    parser.add_argument("--keep", type=int, default=3, metavar="N", help="how many to time to the end, ties besides (3)")
    parser.add_argument("--no-confirm", action="store_true", help="do not judge the fastest on all cases at the end")
    parser.add_argument("--fresh", action="store_true", help="time those too of whom an earlier search knows that they are wrong or far behind")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_program_options(parser)
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    if options.most < 1 or options.keep < 1:
        parser.error("--most and --keep are at least 1")
    try:
        text = read_text(options.schedule)
        grid = dict(_values(pair) for pair in options.params)
        if len(grid) != len(options.params):
            parser.error("a parameter is given twice in --params")
        fixed = assignments(options.param)
        workspace = workspaces.locate_or_create(options.workspace)
        return _tune(workspace, text, grid, fixed, options)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"{options.schedule}: {error.strerror}")
    except KeyboardInterrupt:
        print("cake tune: interrupted before anything was measured; the variants proposed so far are in the workspace", file=sys.stderr)
        return _INTERRUPTED
    except (Misuse, UnicodeDecodeError, workspaces.WorkspaceError) as error:
        print(f"cake tune: {error}", file=sys.stderr)
        return BAD_USAGE


def _tune(workspace: workspaces.Workspace, text: str, grid: dict[str, list[Any]], fixed: dict[str, Any], options: argparse.Namespace) -> int:
    from ..operations.tune import Choice, tune
    from ..operations.variants import Family
    from ..store.encoding import plain

    family = Family(text, options.task, grid, fixed, options.target or "", "command line")
    choice = Choice(
        shape=options.shape, device=options.device, board=options.board, budget_gpu_s=options.budget_gpu_s, most=options.most, keep=options.keep,
        confirmed=not options.no_confirm, fresh=options.fresh,
    )  # fmt: skip
    progress = Progress()
    try:
        found = tune(workspace, family, choice, progress)
    finally:
        progress.close()
    if options.format == "json":
        print(json.dumps(plain(found.to_json()), ensure_ascii=False, indent=2))
    else:
        print(table(found))
        print(f"kept in {workspace.root}")
    if found.interrupted:
        return _INTERRUPTED
    return 0 if found.standing() else 1


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError("a positive number of seconds is expected")
    return value


def _values(pair: str) -> tuple[str, list[Any]]:
    """NAME and its values: Python literals between commas (tuples in parentheses), or else texts."""
    name, equals, values = pair.partition("=")
    if not equals or not values or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"`{pair[:60]}` is not NAME=V1,V2,..")
    try:
        return name, list(ast.literal_eval(f"[{values}]"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, [assignments([f"{name}={value}"])[name] for value in values.split(",")]


class Progress:
    """What is being done, on standard error: one line that is rewritten on a terminal, one line a stage and second elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._stage, self._last, self._open = "", 0.0, False

    def __call__(self, stage: str, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        ends = done >= total
        if stage == self._stage and not ends and now - self._last < (0.1 if self._terminal else 2.0):
            return
        if self._terminal and self._open and stage != self._stage:
            print(file=sys.stderr)
        self._stage, self._last, self._open = stage, now, True
        filled = _BAR * done // total if total else _BAR
        line = f"{stage:<8} [{'#' * filled}{'.' * (_BAR - filled)}] {done}/{total} {note}"
        if self._terminal:
            print(f"\r\x1b[2K{line[:150]}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._terminal and self._open:
            print(file=sys.stderr)


def table(found: "Tuned") -> str:
    """The answer as text: what was searched, who is left in order, and why the others are not."""
    body = found.to_json()
    rows, counts = body["table"], body["counts"]
    axes = ", ".join(f"{name}={value}" for name, value in body["axes"].items())
    lines = [f"{body['task']} {body['shape']} ({axes}): {counts['combinations']} combination{'s' if counts['combinations'] != 1 else ''}, {len(rows)} remain{'s' if len(rows) == 1 else ''}"]
    lines += [f"  {number:>5} dropped at {stage}{_codes(counts) if stage == 'verify' else ''}" for stage, number in counts["left"].items()]
    if body["evidence"] == "measured":
        lines.append(f"measured on {body['gpu']}: {body['gpu_s']:.1f} of {body['budget_gpu_s']:g} GPU-seconds, {len(body['rungs'])} rungs")
    else:
        lines.append(f"predicted for {body['board']}; nothing was run: {body['why_untimed'] or body['ended'] or 'nothing was left'}")
    if body["ended"] and body["evidence"] == "measured":
        lines.append(body["ended"])
    lines += [f"trouble: {fault}" for fault in body["faults"]]
    lines += ["", _line(("#", "parameters", "measured us (95 %)", "rounds", "floor", "predicted", "regs", "spill", "smem", "candidate"))]
    for r in rows:
        place = f"{r['place']}{'*' if r['confirmed'] else ''}"
        figures = (_measured(r), r["rounds"] or "", _fraction(r["floor_over_time"]), _predicted(r), r["registers"], r["spill_bytes"], r["smem"])
        lines.append(_line((place, r["label"], *("" if f is None else str(f) for f in figures), r["candidate_id"])))
    if any(r["confirmed"] for r in rows):
        lines.append("* passed the full evaluation")
    lines += ["", "dropped:"] if body["dropped"] else []
    lines += [f"  {gone['stage']:<9} {_label(gone)}: {_reason(gone)}" for gone in body["dropped"][:_SHOWN]]
    if len(body["dropped"]) > _SHOWN:
        lines.append(f"  and {len(body['dropped']) - _SHOWN} more (--format json)")
    lines += ["", _sum(body)]
    return "\n".join(lines)


def _sum(body: dict[str, Any]) -> str:
    """The search in one line."""
    counts = body["counts"]
    known = f", {counts['known']} known from earlier searches" if counts["known"] else ""
    return (
        f"{counts['combinations']} variant{'s' if counts['combinations'] != 1 else ''}: {counts['rejected']} rejected{_codes(counts)}, {counts['compiled']} compiled{known}, {counts['timed']} timed; "
        f"{body['gpu_s']:.1f} GPU-seconds"
    )


def _label(gone: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in gone["params"].items())


def _reason(gone: dict[str, Any]) -> str:
    return (f"[{gone['code']}] " if gone["code"] else "") + str(gone["reason"])


def _codes(counts: dict[str, Any]) -> str:
    found = ", ".join(f"{code} {number}" for code, number in counts["rejected_by_code"].items())
    return f" ({found})" if found else ""


def _line(cells: Sequence[str]) -> str:
    place, label, measured, rounds, floor, predicted, registers, spills, smem, candidate = cells
    figures = f"{measured:<24} {rounds:>6} {floor:>6}  {predicted:<18} {registers:>4} {spills:>5} {smem:>7}"
    return f"{place:>4}  {label:<36}  {figures}  {candidate}".rstrip()


def _measured(r: dict[str, Any]) -> str:
    if r["measured_s"] is None:
        return "-"
    low, high = (r["ci95_s"] or [r["measured_s"]] * 2)[:2]
    return f"{r['measured_s'] * 1e6:.2f} ({low * 1e6:.2f}..{high * 1e6:.2f})"


def _predicted(r: dict[str, Any]) -> str:
    if r["predicted_group"] is None:
        return "unranked"
    if r["predicted_s"]:
        figure = f" {r['predicted_s'] * 1e6:.1f} us"
    else:
        figure = f" {r['predicted_cycles'] / 1e3:.0f} kcycles" if r["predicted_cycles"] else ""
    return f"group {r['predicted_group']}{figure}"


def _fraction(value: float | None) -> str:
    return f"{value:.3f}" if value else ""
