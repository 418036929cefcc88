"""`cake serve`: the MCP server over stdio, streamable HTTP or SSE."""

import logging
import os
import sys
from collections.abc import Sequence

from .. import workspace as workspaces
from .arguments import BAD_USAGE, Parser, add_workspace_option

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
TOKEN_VARIABLE = "CAKE_TOKEN"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def main(argv: Sequence[str]) -> int:
    """Serve until the client leaves."""
    parser = Parser(
        prog="cake serve", description="Run the MCP server. Standard input and output carry the protocol; logs go to standard error."
    )
    parser.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio")
    parser.add_argument("--host", default="127.0.0.1", help=f"address to listen on; beyond this machine only with ${TOKEN_VARIABLE}")
    parser.add_argument("--port", type=int, default=8723)
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="HOST:PORT", help="Host header to accept; for a host that is not loopback"
    )
    parser.add_argument("--read-only", action="store_true", help="offer only the tools that change nothing")
    parser.add_argument("--log-level", choices=_LEVELS, default="WARNING")
    add_workspace_option(parser)
    options = parser.parse_args(argv)
    token = os.environ.get(TOKEN_VARIABLE, "")
    if options.transport != "stdio" and options.host not in _LOOPBACK and not token:
        parser.error(f"--host {options.host} is reachable from other machines: set ${TOKEN_VARIABLE}, or listen on 127.0.0.1")
    if token and len(token) < 16:
        parser.error(f"${TOKEN_VARIABLE} must have at least 16 characters")
    try:
        workspace = workspaces.locate_or_create(options.workspace)
    except workspaces.WorkspaceError as error:
        print(f"cake serve: {error}", file=sys.stderr)
        return BAD_USAGE
    from .. import transports
    from ..state import ServerState

    # Before the SDK sets up its own: one plain line a record, never a page of rendered traceback.
    logging.basicConfig(level=options.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    state = ServerState(workspace)
    try:
        if options.transport == "stdio":
            transports.serve_stdio(state, read_only=options.read_only, log_level=options.log_level)
        else:
            transports.serve_http(
                state, kind=options.transport, host=options.host, port=options.port, token=token, allowed=options.allow_host,
                read_only=options.read_only, log_level=options.log_level,
            )  # fmt: skip
    finally:
        if "dispatcher" in state.__dict__:
            state.dispatcher.stop()
    return 0
