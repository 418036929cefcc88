"""`cake rank FILE... --task TASK`: order schedules, or parameter variants of one, by predicted time."""

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import workspace as workspaces
from ..operations.misuse import Misuse
from .arguments import BAD_USAGE, Parser, add_program_options, add_workspace_option, assignments, read_text


def main(argv: Sequence[str]) -> int:
    """Exit status: 0 if something was ranked, 1 if nothing could be, 3 bad usage."""
    parser = Parser(prog="cake rank", description="Order schedules by predicted time; nothing is run. Works without a workspace.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a schedule")
    parser.add_argument("--task", required=True, help="what they compute")
    parser.add_argument("--shape", help="a shape of the task; default: its largest timed one")
    parser.add_argument("--device", help="board, such as H200-SXM")
    parser.add_argument(
        "--sweep", action="append", default=[], metavar="NAME=V1,V2,..", help="try every value of a parameter; may be repeated"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_program_options(parser)
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    root = workspaces.locate(options.workspace)
    try:
        with tempfile.TemporaryDirectory(prefix="cake-rank-") as scratch:
            workspace = workspaces.load(root) if root is not None and root.is_dir() else workspaces.create(Path(scratch) / ".cake")
            return _rank(workspace, options)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    except (Misuse, OSError, UnicodeDecodeError, workspaces.WorkspaceError) as error:
        print(f"cake rank: {error}", file=sys.stderr)
        return BAD_USAGE


def _rank(workspace: workspaces.Workspace, options: argparse.Namespace) -> int:
    from ..operations import rank
    from ..operations.propose import Proposal, propose
    from ..store.encoding import plain

    names: dict[str, str] = {}
    for path, params in itertools.product(options.files, _variants(options)):
        candidate = propose(
            workspace,
            Proposal(text=read_text(path), params=params, target=options.target or "", task=options.task, proposer="command line"),
        ).candidate
        shown = ", ".join(f"{name}={value}" for name, value in params.items())
        names.setdefault(candidate.id, f"{path} {shown}".strip())
    found = rank.rank(workspace, list(names), task=options.task, shape=options.shape, device=options.device)
    if options.format == "json":
        print(json.dumps(plain({"names": names, "rejected": found.rejected, **found.ranking}), indent=2))
    else:
        print(
            f"predicted for {found.device}, {found.task} {found.shape} ({', '.join(f'{k}={v}' for k, v in found.axes.items())}); nothing was run"
        )
        for group in found.ranking["groups"]:
            for identifier in group["tied"]:
                print(f"{group['rank']:>3}  {names[identifier]}  [{identifier}]\n     {found.sentences[identifier]}")
        for identifier, why in [*found.ranking["last"].items(), *found.ranking["withheld"].items()]:
            reason = why if isinstance(why, str) else f"{why['code']}: {why['reason']}"
            print(f"  -  {names[identifier]}  [{identifier}]\n     {reason}")
        for identifier, reason in found.rejected.items():
            print(f"  x  {names[identifier]}  [{identifier}]\n     {reason}")
    return 0 if found.ranking["groups"] or found.ranking["last"] else 1


def _variants(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The given parameters with every combination of the swept ones."""
    base = assignments(options.param)
    axes = []
    for pair in options.sweep:
        name, equals, values = pair.partition("=")
        if not equals or not values:
            raise argparse.ArgumentTypeError(f"`{pair[:60]}` is not NAME=V1,V2,..")
        axes.append([assignments([f"{name}={value}"]) for value in values.split(",")])
    return [{**base, **{k: v for part in combination for k, v in part.items()}} for combination in itertools.product(*axes)]
