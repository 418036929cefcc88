"""`cake init [FOLDER]`: make a workspace."""

import sys
from collections.abc import Sequence
from pathlib import Path

from .. import workspace as workspaces
from .arguments import Parser


def main(argv: Sequence[str]) -> int:
    """Make it, keeping what is there."""
    parser = Parser(prog="cake init", description="Make a workspace: the store, and the folders people review and version.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(workspaces.FOLDER), help="default: .cake")
    options = parser.parse_args(argv)
    try:
        workspace = workspaces.create(options.folder)
        _ = workspace.store
    except workspaces.WorkspaceError as error:
        print(f"cake init: {error}", file=sys.stderr)
        return 1
    print(f"workspace in {workspace.root}: {workspaces.DATABASE}, {', '.join(f'{name}/' for name in workspaces.KNOWLEDGE)}")
    print("next: `cake serve` for agents, `cake doctor` to see what this machine can do")
    return 0
