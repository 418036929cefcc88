"""`cake explain CODE`: the page of a diagnostic code."""

import sys
from collections.abc import Sequence

from .arguments import BAD_USAGE, Parser, add_workspace_option


def main(argv: Sequence[str]) -> int:
    """Print the page."""
    parser = Parser(prog="cake explain", description="Print what a diagnostic code means, why it matters and what to write instead.")
    parser.add_argument("code", help="for example S003, HW071 for a hardware contract, or R001 for a rule of the workspace")
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    import cake_verify

    page = cake_verify.explain(options.code.upper())
    if page is None and options.code.upper().startswith("HW"):
        from cake_verify import contracts

        page = contracts.explain(options.code.upper())
    if page is None and options.code.upper().startswith("R"):
        page = _rule_page(options.workspace, options.code.upper())
    if page is None:
        print(f"cake explain: no code `{options.code[:20]}`; codes are a letter for the gate and three digits", file=sys.stderr)
        return BAD_USAGE
    print(page)
    return 0


def _rule_page(explicit: object, code: str) -> str | None:
    from .. import workspace as workspaces
    from ..operations import rules

    root = workspaces.locate(explicit)  # type: ignore[arg-type]  # argparse gives a Path or None
    return rules.page(workspaces.load(root), code) if root is not None else None
