"""Prompts: the main flow as a slash command, for clients that have them. None is required."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from .state import ServerState


def register(server: "MCPServer[ServerState]") -> None:
    """Add every prompt to the server."""

    @server.prompt(title="Write a kernel", description="Write a GPU kernel for a task in Cake IR and bring it through the whole loop")
    def write_kernel(
        task: Annotated[str, Field(description="Task, such as gemm; cake://tasks lists them")],
        target: Annotated[str, Field(description="Architecture, such as sm_90a")] = "sm_90a",
    ) -> str:
        return (
            f"Write a kernel for the task `{task}` on `{target}` in Cake IR.\n"
            "1. Read cake://language, cake://targets and the task's entry in cake://tasks; cake://tactics says which edits pay.\n"
            f"2. propose_candidate with the whole text and task={task}. Send fixes of its findings back as edits with the candidate as parent, "
            "until the verdict is pass.\n"
            "3. Propose a few variants (parent and params), rank them, and compile_and_run what it says is worth running.\n"
            "4. diagnose the run; edit what it routes to the candidate; repeat while there is something to gain.\n"
            "5. If a run failed that the gates let through, propose_rule with the run as evidence.\n"
            "Report measured, simulated and predicted figures as what they are."
        )
