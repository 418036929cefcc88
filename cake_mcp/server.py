"""Puts the server together: tools, resources, prompts, and the lifespan that keeps standard output clean."""

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from mcp.server import MCPServer

from . import __version__
from .binding import bind
from .state import ServerState
from .tools import all_tools

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.auth.settings import AuthSettings

INSTRUCTIONS = """\
Cake lets you write GPU kernels as schedules in Cake IR, a restricted Python syntax in which every hardware decision is written down, and \
answers at every step with located evidence.
The loop: propose_candidate (stores and verifies; fixes in the findings can be sent back as edits) -> variants with parent + params -> rank \
(predictions, no GPU) -> compile_and_run (real compiler; a GPU if there is one, else the simulator) -> diagnose -> propose_rule when a \
failure should be caught earlier next time (a person decides).
Read cake://language before writing; cake://targets for limits; cake://codes/CODE explains a finding. A rejected kernel or wrong numbers is \
a normal answer with ok=false; isError means the call itself was wrong and says how. Figures are labelled measured, simulated or predicted: \
never report a prediction as a measurement. Ids (c_, r_, j_, p_) stay valid across restarts.
"""

WRITING = frozenset({"propose_candidate", "compile_and_run", "propose_rule", "cancel_job"})


def build(
    state: ServerState,
    *,
    read_only: bool = False,
    auth: "AuthSettings | None" = None,
    token_verifier: "TokenVerifier | None" = None,
    log_level: str = "WARNING",
) -> MCPServer[ServerState]:
    """The server of a workspace. With `read_only`, tools that write or run anything are not even listed."""
    from . import prompts, resources

    @contextlib.asynccontextmanager
    async def lifespan(_: MCPServer[ServerState]) -> AsyncIterator[ServerState]:
        # The SDK keeps the wire for itself; what else prints to standard output would reach the client when it is flushed at exit.
        with contextlib.redirect_stdout(sys.stderr):
            yield state

    tools = [bind(spec, state) for spec in all_tools() if not (read_only and spec.name in WRITING)]
    server: MCPServer[ServerState] = MCPServer(
        "cake",
        title="Cake",
        description="Write, prove, rank, run and diagnose GPU kernels as schedules in Cake IR",
        instructions=INSTRUCTIONS,
        version=__version__,
        tools=tools,
        lifespan=lifespan,
        auth=auth,
        token_verifier=token_verifier,
        log_level=log_level,  # type: ignore[arg-type]  # checked by the command line's choices
    )
    resources.register(server, state)
    prompts.register(server)
    return server
