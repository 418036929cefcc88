"""`cake review`: a person decides about what was proposed. No tool can."""

import getpass
import sys
from collections.abc import Sequence

from .. import workspace as workspaces
from ..operations.misuse import Misuse
from .arguments import BAD_USAGE, Parser, add_workspace_option


def main(argv: Sequence[str]) -> int:
    """List what waits; show one proposal; approve or reject it."""
    parser = Parser(prog="cake review", description="List what waits for a decision; show one proposal; approve or reject it.")
    parser.add_argument("proposal", nargs="?", help="id (p_...) of a proposal; without it, everything that waits is listed")
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_true", help="put the rule in force: writes its file to the workspace's rules/")
    decision.add_argument("--reject", action="store_true", help="turn it down")
    parser.add_argument("--reason", default="", help="why; kept with the decision")
    parser.add_argument("--reviewer", default="", help="who decides; default: the login name")
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    root = workspaces.locate(options.workspace)
    if root is None:
        print("cake review: no workspace here: run `cake init`, or give --workspace", file=sys.stderr)
        return BAD_USAGE
    try:
        workspace = workspaces.load(root)
        if options.proposal is None:
            return _list(workspace)
        if options.approve or options.reject:
            return _decide(workspace, options.proposal, options.approve, options.reviewer or _login(), options.reason)
        return _show(workspace, options.proposal)
    except (Misuse, workspaces.WorkspaceError) as error:
        print(f"cake review: {error}", file=sys.stderr)
        return 1


def _list(workspace: workspaces.Workspace) -> int:
    from ..operations import rules

    waiting = workspace.store.rules.in_state("pending")
    for rule in waiting:
        report = rule.report
        print(f"{rule.id}  {rule.kind:<8} {rule.title}")
        print(
            f"    rejects {len(report['evidence'])} of its evidence, {len(report['also_rejects'])} other failed candidates, nothing that passed"
        )
        for remark in report["remarks"]:
            print(f"    remark: {remark}")
    in_force = rules.approved(workspace)
    print(f"{len(waiting)} waiting, {len(in_force)} in force: {', '.join(c.code for c in in_force) or 'none'}")
    for name, reason in rules.broken(workspace).items():
        print(f"not in force: rules/{name}: {reason}")
    return 0


def _show(workspace: workspaces.Workspace, identifier: str) -> int:
    import json

    rule = workspace.store.rules.get(identifier)
    if rule is None:
        raise Misuse(f"no proposal {identifier}")
    proposal = rule.proposal
    print(f"{rule.id} ({rule.state})  {rule.title}\n\n{proposal['statement']}\n")
    print(
        f"{proposal['severity']}: {proposal['message']}\nhelp: {proposal['help'] or '-'}\ntargets: {', '.join(proposal['targets']) or 'all'}\n"
    )
    print(f"{proposal['sql'].strip()}\n\ntrial:\n{json.dumps(rule.report, indent=2)}")
    for review in workspace.store.rules.reviews(identifier):
        print(f"{review['decision']} by {review['reviewer']}: {review['reason'] or '-'}")
    if rule.state == "pending":
        print(f"\ndecide: cake review {rule.id} --approve | --reject  [--reason TEXT]")
    return 0


def _decide(workspace: workspaces.Workspace, identifier: str, approve: bool, reviewer: str, reason: str) -> int:
    from ..operations import rules

    if approve:
        rule = rules.approve(workspace, identifier, reviewer=reviewer, reason=reason)
        print(f"{rule.id} approved as {rule.code}: {workspace.root / (rule.path or '')}")
    else:
        rules.reject(workspace, identifier, reviewer=reviewer, reason=reason)
        print(f"{identifier} rejected")
    return 0


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user in the password file, as in some containers
        return "unknown"
