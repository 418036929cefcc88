"""`cake verify FILE...`: the gates, from the command line. Exit status: 0 pass, 1 fail, 2 undecided, 3 bad usage."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .arguments import BAD_USAGE, Parser, add_program_options, add_workspace_option, assignments, read_text

_STATUS = {"pass": 0, "undecided": 2, "fail": 1}
_WORST = (1, 2, 0)  # fail, then undecided, then pass


def main(argv: Sequence[str]) -> int:
    """Verify each file; the exit status of the worst."""
    parser = Parser(prog="cake verify", description="Prove schedules safe, or say what is wrong and where.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a schedule; - reads standard input")
    parser.add_argument("--format", choices=("text", "json", "jsonl"), default="text", help="jsonl prints one object a file and line")
    parser.add_argument("--extent", action="append", default=[], metavar="NAME=VALUE", help="extent of a runtime argument; may be repeated")
    parser.add_argument("--strict", action="store_true", help="report what is merely unusual too")
    parser.add_argument("--targets", metavar="all|NAME,..", help="on which of these targets would it run, why not on the others, and the smallest change")
    parser.add_argument("--repair", action="store_true", help="look for small edits under which a failing schedule verifies")
    parser.add_argument("--repair-seconds", type=float, default=2.0, metavar="S", help="processor time of that search (default 2, at most 60)")
    add_program_options(parser)
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    try:
        params, extents = assignments(options.param), assignments(options.extent)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    if wrong := [name for name, value in extents.items() if not isinstance(value, int) or isinstance(value, bool)]:
        parser.error(f"--extent {wrong[0]} must be an integer")
    if not 0 < options.repair_seconds <= 60:
        parser.error("--repair-seconds must be more than 0 and at most 60")
    rules, default_target = _workspace(options.workspace, options.target)
    statuses: list[int] = []
    for path in options.files:
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else f"not UTF-8: {error.reason} at byte {error.start}"
            print(f"cake verify: {path}: {reason}", file=sys.stderr)
            return BAD_USAGE
        if unknown := _not_declared(text, extents):
            print(f"cake verify: {path}: {unknown}", file=sys.stderr)
            return BAD_USAGE
        if options.targets:
            statuses.append(_ported(text, path, params, options))
        else:
            statuses.append(_verify(text, path, params, extents, options, rules, default_target))
    return next(status for status in (BAD_USAGE, *_WORST) if status in statuses)


def _not_declared(text: str, extents: dict[str, int]) -> str:
    """What is wrong with the names of `--extent`: every one is a run-time argument of some schedule of the text."""
    if not extents:
        return ""
    from cake_ir import parse
    from cake_ir.fault import did_you_mean

    module = parse(text)
    known = {p.name for t in (*module.schedules, *([module.plan] if module.plan else [])) for p in t.params if p.kind == "scalar"}
    wrong = next((name for name in extents if name not in known), None)
    if wrong is None or not module.schedules:
        return ""
    return f"--extent {wrong}: the schedule has no such run-time argument; {did_you_mean(wrong, sorted(known), 'argument')}"


def _verify(
    text: str,
    path: str,
    params: dict[str, Any],
    extents: dict[str, int],
    options: argparse.Namespace,
    rules: Any,
    default_target: str | None,
) -> int:
    import cake_verify

    def accept(new: str) -> bool:
        return rules is None or rules({"verdict": "pass", "diagnostics": []}, new, params, path)[0]["verdict"] == "pass"

    verdict = cake_verify.verify_text(
        text, params=params, target=options.target, default_target=default_target, extents=extents, filename=path, strict=options.strict,
        repair=options.repair, repair_seconds=options.repair_seconds, accept=accept,
    )  # fmt: skip
    body, rendered = verdict.to_json(), None
    if rules is not None:
        body, rendered = rules(body, text, params, path)
    if options.format == "text":
        print(verdict.to_text() + (f"\n{rendered}" if rendered else ""))
    else:
        json.dump(body, sys.stdout, ensure_ascii=False, allow_nan=False, indent=None if options.format == "jsonl" else 2)
        print()
    return _STATUS[body["verdict"]]


def _ported(text: str, path: str, params: dict[str, Any], options: argparse.Namespace) -> int:
    """The portability report of one file; the status of its worst target."""
    from cake_ir.targets import TARGETS, UnknownTarget, target
    from cake_verify import porting

    names = TARGETS if options.targets == "all" else tuple(name.strip() for name in options.targets.split(","))
    try:
        for name in names:
            target(name)
    except UnknownTarget as error:
        print(f"cake verify: {error}", file=sys.stderr)
        return BAD_USAGE
    found = porting.ports(text, params=params, filename=path, targets=names)
    if options.format == "text":
        print("\n".join(porting.lines(found, path)))
    else:
        body = {"file": path, "targets": {p.target: p.to_json() for p in found}}
        json.dump(body, sys.stdout, ensure_ascii=False, allow_nan=False, indent=None if options.format == "jsonl" else 2)
        print()
    return next(status for status in _WORST if status in {_STATUS[p.verdict.verdict] for p in found})


def _workspace(explicit: Path | None, target: str | None) -> tuple[Any, str | None]:
    """How to apply the approved rules of the workspace, if there is one with rules; and its default target."""
    from .. import workspace as workspaces

    root = workspaces.locate(explicit)
    if root is None or not root.is_dir():
        if explicit is not None:
            raise SystemExit(_no_workspace(explicit))
        return None, None
    try:
        workspace = workspaces.load(root)
    except workspaces.WorkspaceError as error:
        print(f"cake verify: {error}", file=sys.stderr)
        raise SystemExit(BAD_USAGE) from error
    if not any((root / "rules").glob("*.json")):
        return None, workspace.settings.target
    from ..operations import rules

    return rules.for_command(workspace, target), workspace.settings.target


def _no_workspace(path: Path) -> int:
    print(f"cake verify: {path} is not a workspace: run `cake init`", file=sys.stderr)
    return BAD_USAGE
